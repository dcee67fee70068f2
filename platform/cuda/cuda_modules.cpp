// SPDX-License-Identifier: Apache-2.0
// Loads ready-made images, asks about their functions, and launches them.
#include "cuda_modules.hpp"

#include "launch_shape.hpp"

#include <isthmus/module_launch.hpp>

#include <algorithm>
#include <array>

namespace isthmus::platform::cuda {
namespace {

using isthmus::detail::ModuleLaunch;

CUmodule module_of(ModuleHandle module) noexcept {
    return reinterpret_cast<CUmodule>(static_cast<std::uintptr_t>(module));
}
CUfunction function_of(FunctionHandle function) noexcept {
    return reinterpret_cast<CUfunction>(static_cast<std::uintptr_t>(function));
}

// Where the driver's compiler writes its errors; the options of cuModuleLoadDataEx and cuLinkCreate.
class CompilerLog {
public:
    unsigned count() const noexcept { return 2; }
    CUjit_option* options() noexcept { return options_.data(); }
    void** values() noexcept { return values_.data(); }
    void tell(std::string& out) const {
        out.assign(text_.data(), static_cast<std::size_t>(std::find(text_.begin(), text_.end(), '\0') - text_.begin()));
        while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
    }

private:
    std::array<char, 4096> text_{};
    std::array<CUjit_option, 2> options_{jit_option::error_log_buffer, jit_option::error_log_buffer_size_bytes};
    std::array<void*, 2> values_{text_.data(), reinterpret_cast<void*>(text_.size() - 1)};
};

// The parameters of one launch, as the driver takes them.
class Arguments {
public:
    Arguments(const LaunchRequest& request, const ModuleLaunch& launch) {
        // The driver copies the arguments before it returns; it takes void* and does not write to them.
        auto* const pack = static_cast<unsigned char*>(const_cast<void*>(request.pack));
        if (launch.own_layout) {
            few_[0] = const_cast<Extent*>(&request.extent);
            few_[1] = pack + launch.pack_offset;
            return;
        }
        const std::uint32_t count = request.kernel->parameter_count;
        if (count > few_.size()) many_.resize(count);
        void** const to = count > few_.size() ? many_.data() : few_.data();
        for (std::uint32_t at = 0; at < count; ++at) to[at] = pack + request.kernel->parameter[at].offset_bytes;
    }
    void** get() noexcept { return many_.empty() ? few_.data() : many_.data(); }

private:
    std::array<void*, 32> few_{};
    std::vector<void*> many_;
};

std::uint32_t known(int value) noexcept {
    return value > 0 ? static_cast<std::uint32_t>(value) : 0;
}

}  // namespace

bool CudaModules::complete(const Api& api) noexcept {
    return api.module_load_data_ex && api.module_get_global && api.function_get_attribute && api.function_set_attribute;
}

Status CudaModules::load(const void* image, std::string& log, ModuleHandle& out) {
    CompilerLog compiler;
    CUmodule module = nullptr;
    const Status status = context_.inside("cuModuleLoadDataEx", [&] {
        return context_.api().module_load_data_ex(&module, image, compiler.count(), compiler.options(),
                                                  compiler.values());
    });
    compiler.tell(log);
    if (status.ok()) out = handle_of<ModuleHandle>(module);
    return status;
}

Status CudaModules::unload(ModuleHandle module) {
    return context_.give_back("cuModuleUnload", [&] { return context_.api().module_unload(module_of(module)); });
}

Status CudaModules::find(ModuleHandle module, const char* name, FunctionHandle& out) {
    CUfunction function = nullptr;
    const Status status = context_.inside(
        "cuModuleGetFunction", [&] { return context_.api().module_get_function(&function, module_of(module), name); });
    if (status.ok()) out = handle_of<FunctionHandle>(function);
    return status;
}

Status CudaModules::global(ModuleHandle module, const char* name, std::uint64_t& address, std::size_t& bytes) {
    CUdeviceptr found = 0;
    const Status status = context_.inside("cuModuleGetGlobal_v2", [&] {
        return context_.api().module_get_global(&found, &bytes, module_of(module), name);
    });
    address = found;
    return status;
}

Status CudaModules::parameter(FunctionHandle function, std::size_t index, std::size_t& offset, std::size_t& bytes) {
    if (!context_.api().function_get_parameter) return {Code::unsupported, 0, "cuFuncGetParamInfo"};
    return context_.inside("cuFuncGetParamInfo", [&] {
        return context_.api().function_get_parameter(function_of(function), index, &offset, &bytes);
    });
}

Status CudaModules::limits(FunctionHandle function, FunctionLimits& out) {
    using namespace function_attribute;
    int threads = 0, own = 0, dynamic = 0;
    Status status = context_.inside("cuFuncGetAttribute", [&] {
        const auto ask = [&](int& value, CUfunction_attribute attribute) {
            return context_.api().function_get_attribute(&value, attribute, function_of(function));
        };
        CUresult code = ask(threads, max_threads_per_block);
        if (code == result::success) code = ask(own, shared_size_bytes);
        if (code == result::success) code = ask(dynamic, max_dynamic_shared_size_bytes);
        return code;
    });
    if (!status.ok()) return status;
    // MAX_BLOCK_DIM_X to MAX_GRID_DIM_Z, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, CLUSTER_LAUNCH; one that the driver does
    // not know is not checked.
    constexpr std::array<CUdevice_attribute, 8> asked{2, 3, 4, 5, 6, 7, 97, 120};
    std::array<int, 8> told{};
    for (std::size_t at = 0; at < asked.size(); ++at) {
        status = context_.anywhere("cuDeviceGetAttribute", [&] {
            return context_.api().device_get_attribute(&told[at], asked[at], context_.device());
        });
        if (status.code == Code::invalid_argument) continue;
        if (!status.ok()) return status;
    }
    out.threads = known(threads);
    out.static_shared = known(own);
    out.dynamic_shared = known(dynamic);
    out.most_shared = known(told[6]);
    for (std::size_t at = 0; at < 3; ++at) {
        out.block[at] = known(told[at]);
        out.grid[at] = known(told[at + 3]);
    }
    out.clusters = told[7] > 0 && context_.api().launch_kernel_ex != nullptr;
    return {};
}

Status CudaModules::allow_shared(FunctionHandle function, std::uint32_t dynamic_bytes) {
    return context_.inside("cuFuncSetAttribute", [&] {
        return context_.api().function_set_attribute(
            function_of(function), function_attribute::max_dynamic_shared_size_bytes, static_cast<int>(dynamic_bytes));
    });
}

Status CudaModules::compile(const char* ptx, std::size_t bytes, std::string& log, std::vector<std::byte>& out) {
    const Api& api = context_.api();
    if (!api.link_create || !api.link_add_data || !api.link_complete || !api.link_destroy) {
        return {Code::unsupported, 0, "cuLinkCreate_v2"};
    }
    CompilerLog compiler;
    CUlinkState state = nullptr;
    Status status = context_.inside("cuLinkCreate_v2", [&] {
        return api.link_create(compiler.count(), compiler.options(), compiler.values(), &state);
    });
    if (!status.ok()) return status;
    status = context_.inside("cuLinkAddData_v2", [&] {
        // Its text is not written to (documented: the memory stays the caller's).
        return api.link_add_data(state, jit_input_ptx, const_cast<char*>(ptx), bytes, "module.ptx", 0, nullptr,
                                 nullptr);
    });
    void* made = nullptr;
    std::size_t made_bytes = 0;
    if (status.ok()) {
        status = context_.inside("cuLinkComplete", [&] { return api.link_complete(state, &made, &made_bytes); });
    }
    // The state owns the result.
    if (status.ok()) {
        out.assign(static_cast<const std::byte*>(made), static_cast<const std::byte*>(made) + made_bytes);
    }
    compiler.tell(log);
    (void)context_.give_back("cuLinkDestroy", [&] { return api.link_destroy(state); });
    return status;
}

Status CudaModules::stand_in(FunctionHandle function, const StandInEntry& entry) {
    if (!simulated()) return {Code::unsupported, 0, "isthmus_sim_set_stand_in"};
    std::vector<isthmus_sim_parameter> views;
    for (const ParameterInfo& view : entry.views) {
        views.push_back({view.offset_bytes, view.size_bytes, view.element_bytes, static_cast<std::uint32_t>(view.use)});
    }
    isthmus_sim_stand_in description{};
    description.struct_bytes = sizeof(description);
    // isthmus_sim_extent and Extent have one layout (register_twin compares them).
    description.run = reinterpret_cast<decltype(description.run)>(reinterpret_cast<void*>(entry.run));
    description.self = entry.self;
    description.view = views.data();
    description.view_count = static_cast<std::uint32_t>(views.size());
    const int code = context_.library().set_stand_in(function_of(function), &description);
    return code == 0 ? Status{} : Status{Code::invalid_handle, 0, "isthmus_sim_set_stand_in"};
}

Status launch_of_module(DeviceContext& context, const LaunchRequest& request) {
    const auto& launch = *static_cast<const ModuleLaunch*>(request.pack);
    LaunchShape shape;
    if (launch.own_layout) {
        KernelInfo kernel{};
        kernel.rank = launch.item_rank;
        shape = launch_shape(kernel, request.extent);
        if (shape.empty) return {};
        if (!shape.possible) return {Code::invalid_argument, 0, "cuLaunchKernel"};
    } else {  // the runtime has compared them with the limits
        const std::uint64_t grid[3] = {request.extent.x, request.extent.y, request.extent.z};
        for (int at = 0; at < 3; ++at) {
            shape.grid[at] = static_cast<unsigned>(grid[at]);
            shape.block[at] = launch.block[at];
        }
    }
    Arguments arguments(request, launch);
    auto* const function = reinterpret_cast<CUfunction>(static_cast<std::uintptr_t>(launch.function));
    if (launch.cluster[0] == 0) {
        return context.on_stream("cuLaunchKernel", request.stream, [&] {
            return context.api().launch_kernel(function, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
                                               shape.block[1], shape.block[2], launch.shared_bytes,
                                               stream_of(request.stream), arguments.get(), nullptr);
        });
    }
    CUlaunchAttribute cluster{};
    cluster.id = launch_attribute::cluster_dimension;
    cluster.value.clusterDim = {launch.cluster[0], launch.cluster[1], launch.cluster[2]};
    CUlaunchConfig config{};
    config.gridDimX = shape.grid[0];
    config.gridDimY = shape.grid[1];
    config.gridDimZ = shape.grid[2];
    config.blockDimX = shape.block[0];
    config.blockDimY = shape.block[1];
    config.blockDimZ = shape.block[2];
    config.sharedMemBytes = launch.shared_bytes;
    config.hStream = stream_of(request.stream);
    config.attrs = &cluster;
    config.numAttrs = 1;
    return context.on_stream("cuLaunchKernelEx", request.stream, [&] {
        return context.api().launch_kernel_ex(&config, function, arguments.get(), nullptr);
    });
}

}  // namespace isthmus::platform::cuda
