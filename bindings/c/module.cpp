// SPDX-License-Identifier: Apache-2.0
// Ready-made code: modules, their entries with parameters declared at run time, and launches.
#include <isthmus/module.hpp>

#include "arguments.hpp"
#include "calls.hpp"
#include "handles.hpp"
#include "private_calls.hpp"
#include "some.hpp"

#include <bit>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <vector>

using namespace isthmus;

struct isthmus_module {
    isthmus_module(isthmus_runtime& of, Module module) : runtime(of), cpp(std::move(module)), entries(cpp.entries()) {}
    isthmus::c::Ref<isthmus_runtime> runtime;
    Module cpp;
    std::vector<std::string> entries;
};

struct isthmus_module_kernel {
    isthmus_module_kernel(isthmus_runtime& of, std::size_t bytes,
                          std::shared_ptr<const detail::ModuleKernelState> found)
        : runtime(of), pack_bytes(bytes), cpp(std::move(found)) {}
    isthmus::c::Ref<isthmus_runtime> runtime;
    std::size_t pack_bytes;
    std::shared_ptr<const detail::ModuleKernelState> cpp;
};

namespace isthmus::c {

template struct Reach<FindKernel, &Module::find_kernel>;

}  // namespace isthmus::c

namespace {

using Pack = c::Some<std::max_align_t, 64>;  // 1 KiB without the heap

constexpr std::size_t most_parameters = 4096, most_bytes = 32764;
constexpr std::size_t first_shape = sizeof(isthmus_launch_shape);
constexpr std::size_t first_options = sizeof(isthmus_module_options);

std::size_t rounded_up(std::size_t offset, std::size_t alignment) noexcept {
    return (offset + alignment - 1) / alignment * alignment;
}

// What a parameter is for the entry, and in the pack of a launch.
struct Declared {
    std::vector<ParameterInfo> parameters;
    std::vector<detail::BlockParameter> block;
    std::size_t pack_bytes = 0;
};

// Adds one parameter; `block_bytes` is the size of the entry's parameters so far.
Result<void> declare(const c::Call& call, const std::string& where, const isthmus_parameter& from, Declared& to,
                     std::size_t& block_bytes) {
    if (from.reserved != 0) return call.refuse(where + ".reserved", "is not 0", "leave it 0");
    if (from.bytes == 0 || from.bytes > most_bytes) {
        return call.refuse(where + ".bytes", "is " + std::to_string(from.bytes),
                           "give the size of the value, or of an element of the memory");
    }
    ParameterInfo info{};
    std::size_t bytes = sizeof(void*), alignment = alignof(void*);
    if (from.flags == 0) {
        info.use = ArgumentUse::value;
        bytes = from.bytes;
        alignment = from.alignment == 0 ? from.bytes : from.alignment;
        if (!std::has_single_bit(alignment) || alignment > 16) {
            return call.refuse(where + ".alignment", "is " + std::to_string(alignment),
                               "give the alignment of the value's type: 1, 2, 4, 8 or 16");
        }
        info.size_bytes = from.bytes;
        to.pack_bytes = rounded_up(to.pack_bytes, alignment);
    } else {
        ISTHMUS_TRY(info.use, c::use_of_flags(call, (where + ".flags").c_str(), from.flags));
        info.element_bytes = from.bytes;
        info.size_bytes = 16;  // a View: address and count
        to.pack_bytes = rounded_up(to.pack_bytes, 8);
    }
    info.offset_bytes = static_cast<std::uint32_t>(to.pack_bytes);
    to.pack_bytes += info.size_bytes;
    block_bytes = rounded_up(block_bytes, alignment);
    to.block.push_back({static_cast<std::uint32_t>(block_bytes), static_cast<std::uint32_t>(bytes)});
    block_bytes += bytes;
    to.parameters.push_back(info);
    if (block_bytes > most_bytes) return call.refuse(where, "makes more than 32764 bytes", "pass memory as a buffer");
    return {};
}

Result<Declared> declared(const c::Call& call, const char* argument, const isthmus_parameter* parameters,
                          std::size_t count) {
    if (count > most_parameters) {
        return call.refuse("count", "is " + std::to_string(count), "no entry has more than 4096 parameters");
    }
    if (count > 0) ISTHMUS_TRY(call.needs({{argument, parameters}}));
    Declared all;
    all.pack_bytes = sizeof(detail::ModuleLaunch);
    std::size_t block_bytes = 0;
    for (std::size_t at = 0; at < count; ++at) {
        const std::string where = std::string(argument) + "[" + std::to_string(at) + "]";
        ISTHMUS_TRY(declare(call, where, parameters[at], all, block_bytes));
    }
    return all;
}

Result<StandIn> stand_in_of(const c::Call& call, const std::string& where, const isthmus_stand_in& from) {
    ISTHMUS_TRY(call.needs({{(where + ".entry").c_str(), from.entry},
                            {(where + ".run").c_str(), reinterpret_cast<const void*>(from.run)}}));
    ISTHMUS_TRY(const Declared all,
                declared(call, (where + ".parameters").c_str(), from.parameters, from.parameter_count));
    StandIn made;
    made.entry = from.entry;
    for (const detail::BlockParameter& one : all.block) made.parameters.push_back(one.size_bytes);
    made.run = [run = from.run, context = from.context](const StandInCall& launch, void* const* parameters) {
        isthmus_launch_shape shape = ISTHMUS_LAUNCH_SHAPE_INIT;
        shape.grid[0] = launch.grid.x, shape.grid[1] = launch.grid.y, shape.grid[2] = launch.grid.z;
        shape.block[0] = launch.block.x, shape.block[1] = launch.block.y, shape.block[2] = launch.block.z;
        shape.shared_bytes = launch.shared_bytes;
        run(context, &shape, parameters);
    };
    return made;
}

Result<ModuleOptions> options_of(const c::Call& call, const isthmus_module_options* from) {
    constexpr isthmus_module_options otherwise = ISTHMUS_MODULE_OPTIONS_INIT;
    ISTHMUS_TRY(const isthmus_module_options given, c::read_struct(call, "options", from, first_options, otherwise));
    ModuleOptions options;
    if (given.cache_folder != nullptr) options.cache_folder = given.cache_folder;
    if (given.stand_in_count > most_parameters) {
        return call.refuse("options.stand_in_count", "is " + std::to_string(given.stand_in_count), "at most 4096");
    }
    if (given.stand_in_count > 0) ISTHMUS_TRY(call.needs({{"options.stand_ins", given.stand_ins}}));
    for (std::size_t at = 0; at < given.stand_in_count; ++at) {
        const std::string where = "options.stand_ins[" + std::to_string(at) + "]";
        ISTHMUS_TRY(StandIn made, stand_in_of(call, where, given.stand_ins[at]));
        options.stand_ins.push_back(std::move(made));
    }
    return options;
}

Extent extent_of(const uint64_t (&from)[3]) noexcept {
    return {from[0], from[1], from[2]};
}

}  // namespace

isthmus_code isthmus_device_load_module(isthmus_device* device, const void* image, size_t bytes,
                                        const isthmus_module_options* options, isthmus_module** module,
                                        isthmus_error** error) {
    return c::guarded("isthmus_device_load_module", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"device", device}, {"image", image}, {"module", module}}));
        ISTHMUS_TRY(const ModuleOptions asked, options_of(call, options));
        const std::span whole(static_cast<const std::byte*>(image), bytes);
        return c::make_handle(module, device->cpp->load_module(whole, asked), *device->runtime);
    });
}

isthmus_code isthmus_device_load_module_file(isthmus_device* device, const char* path,
                                             const isthmus_module_options* options, isthmus_module** module,
                                             isthmus_error** error) {
    return c::guarded("isthmus_device_load_module_file", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"device", device}, {"path", path}, {"module", module}}));
        ISTHMUS_TRY(const ModuleOptions asked, options_of(call, options));
        return c::make_handle(module, device->cpp->load_module(std::string_view(path), asked), *device->runtime);
    });
}

void isthmus_module_free(isthmus_module* module) {
    delete module;
}
size_t isthmus_module_entry_count(const isthmus_module* module) {
    return module == nullptr ? 0 : module->entries.size();
}
const char* isthmus_module_entry(const isthmus_module* module, size_t index) {
    return module == nullptr || index >= module->entries.size() ? nullptr : module->entries[index].c_str();
}

isthmus_code isthmus_module_find(const isthmus_module* module, const char* entry, const isthmus_parameter* parameters,
                                 size_t count, isthmus_module_kernel** kernel, isthmus_error** error) {
    return c::guarded("isthmus_module_find", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"module", module}, {"entry", entry}, {"kernel", kernel}}));
        ISTHMUS_TRY(const Declared all, declared(call, "parameters", parameters, count));
        const detail::ModuleSignature signature{all.parameters.data(),
                                                static_cast<std::uint32_t>(count),
                                                static_cast<std::uint32_t>(all.pack_bytes),
                                                all.block.data(),
                                                static_cast<std::uint32_t>(count),
                                                false,
                                                0,
                                                0};
        return c::make_handle(kernel, (module->cpp.*member_of(c::FindKernel{}))(entry, signature), *module->runtime,
                              all.pack_bytes);
    });
}

void isthmus_module_kernel_free(isthmus_module_kernel* kernel) {
    delete kernel;
}

isthmus_code isthmus_stream_launch_module(isthmus_stream* stream, const isthmus_module_kernel* kernel,
                                          const isthmus_launch_shape* shape, const isthmus_argument* arguments,
                                          size_t count, isthmus_error** error) {
    return c::guarded("isthmus_stream_launch_module", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"kernel", kernel}, {"shape", shape}}));
        ISTHMUS_TRY(const isthmus_launch_shape given, c::read_struct(call, "shape", shape, first_shape, *shape));
        const KernelInfo& info = detail::info_of(*kernel->cpp);
        Pack pack(kernel->pack_bytes / sizeof(std::max_align_t) + 1);
        auto* const bytes = reinterpret_cast<std::byte*>(pack.data());
        new (bytes) detail::ModuleLaunch;
        c::Some<detail::LaunchArgument, 12> described(info.parameter_count);
        ISTHMUS_TRY(c::pack_arguments(call, info, arguments, count, bytes, described.data()));
        const LaunchShape blocks{extent_of(given.grid), extent_of(given.block), extent_of(given.cluster),
                                 given.shared_bytes};
        Result<LaunchReport> launched = detail::launch_module_kernel(stream->cpp, LaunchOptions{}, *kernel->cpp, blocks,
                                                                     bytes, described.data(), count);
        return launched ? Result<void>() : std::move(launched).error();
    });
}
