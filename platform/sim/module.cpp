// SPDX-License-Identifier: Apache-2.0
// Loads images, and finds functions and variables in them.
#include "module.hpp"

#include "access.hpp"
#include "allocate.hpp"
#include "call.hpp"
#include "packed_images.hpp"
#include "ptx_kernels.hpp"
#include "ptx_words.hpp"
#include "written_bytes.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <span>
#include <vector>

namespace isthmus::sim {
namespace {

void drop(Driver& d, Module* module) {
    for (const auto& [name, id] : module->variables) release_region(d, d.regions.find_id(id));
    d.modules.destroy(module);
}

// Gives each variable of the image memory. false: there is none. Requires the driver's mutex.
bool place_variables(Driver& d, Context* context, Module& module, const images::ImageContents& contents,
                     ptx::Program* program) {
    if (program != nullptr && !place_program(d, context, module, *program)) return false;
    for (const images::ImageGlobal& global : contents.globals) {
        if (global.size_bytes == 0 || module.variables.count(global.name) != 0) continue;
        // A library's lie on the first device, as place_program() has it.
        const int device = context != nullptr ? context->device : 0;
        Region* const region = allocate_device_memory(d, device, context, static_cast<std::size_t>(global.size_bytes));
        if (!region) return false;
        module.variables[global.name] = region->id;
    }
    // Variables without a value are 0.
    for (const auto& [name, id] : module.variables) written_bytes::all_written(d.regions.find_id(id)->host);
    return true;
}

std::uint32_t capability_of(const Driver& d, int device) {
    return static_cast<std::uint32_t>(d.fact(device, attribute::cc_major) * 10 + d.fact(device, attribute::cc_minor));
}
// Libraries belong to no device: they are judged for the newest.
std::uint32_t newest_capability(const Driver& d) {
    std::uint32_t newest = 0;
    for (int device = 0; d.valid(device); ++device) newest = std::max(newest, capability_of(d, device));
    return newest;
}

// Observed (580, H100): a load waits for every stream of its context, one that is refused does not. That of a library
// waits where a context first uses it, which is not modelled.
Result wait_for_work(Driver& d, const Context* context) {
    return context != nullptr ? d.engine().synchronize_context(legacy_stream_of(d, *context)) : result::ok;
}

// An image without registered twins: PTX, a cubin or a fatbin of other code.
Result load_ready_made(Driver& d, Context* context, Module** module, std::span<const std::byte> given,
                       std::string& log) {
    const std::vector<std::byte> unpacked = unpacked_image(given);
    const std::span<const std::byte> image = unpacked.empty() ? given : unpacked;
    auto contents = std::make_shared<images::ImageContents>(images::read_image(image));
    const std::uint32_t capability = context == nullptr ? newest_capability(d) : capability_of(d, context->device);
    const Result code = judge_image(*contents, machine().record().facts.driver_version, capability, log);
    if (code != result::ok) return code;
    std::string error;
    if (contents->format == images::ImageFormat::ptx)
        error = ptx_error({reinterpret_cast<const char*>(image.data()), image.size()});
    std::shared_ptr<ptx::Program> program;
    if (error.empty()) program = read_program(image, capability, error);
    if (!error.empty() && !contents->binaries.empty()) {
        say("the image's PTX cannot run here: %s", error.c_str());  // a driver takes the machine code
    } else if (!error.empty()) {
        log = "ptxas application ptx input, " + error + "\nptxas fatal   : Ptx assembly aborted due to errors";
        return result::invalid_ptx;
    }
    constexpr std::uint64_t most_constant_bytes = 64 << 10;
    if (program && constant_bytes(*program) > most_constant_bytes) {
        char words[96];
        std::snprintf(words, sizeof words, "File uses too much global constant data (0x%llx bytes, 0x10000 max)",
                      static_cast<unsigned long long>(constant_bytes(*program)));
        log = "ptxas error   : " + std::string(words);
        return result::ptx_too_new;  // observed (580, H100)
    }
    const int device = context != nullptr ? context->device : 0;
    if (has_managed_variables(program.get()) && d.fact(device, attribute::managed) == 0) return result::not_supported;
    if (const Result lost = wait_for_work(d, context)) return lost;
    const std::lock_guard lock(d.mutex);
    Module* const made = d.modules.create();
    bool placed = false;
    try {
        placed = place_variables(d, context, *made, *contents, program.get());
    } catch (const std::bad_alloc&) {
        placed = false;
    }
    if (!placed) {
        drop(d, made);
        return result::out_of_memory;
    }
    made->context = context;
    made->program = std::move(program);
    if (contents->format == images::ImageFormat::ptx) {
        made->most_registers = stated_register_limit({reinterpret_cast<const char*>(image.data()), image.size()});
    }
    made->contents = std::move(contents);
    *module = made;
    return result::ok;
}

Result load_any(Driver& d, Context* context, Module** module, const void* image, std::string& log) {
    ImageName name = name_of_image(image);
    if (name.hash.empty() || (ptx_always() && has_program(image))) {
        if (const std::size_t bytes = image_bytes(image)) {
            return load_ready_made(d, context, module, {static_cast<const std::byte*>(image), bytes}, log);
        }
        say("what lies at %p is no image, and no kernel with a CPU twin (isthmus_sim_register_kernel) names it; this "
            "becomes CUDA_ERROR_INVALID_IMAGE (200)",
            image);
        return result::invalid_image;
    }
    if (const Result lost = wait_for_work(d, context)) return lost;
    const std::lock_guard lock(d.mutex);
    Module* made = d.modules.create();
    made->image = std::move(name);
    made->context = context;
    *module = made;
    return result::ok;
}

Result load(Driver& d, Context* context, Module** module, const void* image, std::string& log) {
    if (!module || !image) return result::invalid_value;
    const Result code = load_any(d, context, module, image, log);
    update_managed_access(d);
    return code;
}

void limit_registers(Driver& d, Module& module, std::uint32_t most) {
    const std::lock_guard lock(d.mutex);
    if (most != 0) module.most_registers = most;
}

Result load_in_context(CallId id, Module** module, const void* image, unsigned count = 0, const int* options = nullptr,
                       void** values = nullptr) {
    return call_in_context(id, [&](Driver& d, Context& context) -> Result {
        // Observed for allocations; documented for modules: loading may synchronise the context.
        if (const Result code = d.engine().unsafe_call()) return code;
        CompilerLogs logs;
        if (const Result code = logs.read(count, options, values)) return code;
        std::string log;
        const Result code = load(d, &context, module, image, log);
        if (code == result::ok) limit_registers(d, **module, logs.most_registers);
        logs.write(log);
        return code;
    });
}

Result unload(Driver& d, Module* module, Result unknown) {
    if (const Result code = d.engine().unsafe_call()) return code;
    std::map<std::string, std::uint64_t> variables;
    {
        const std::lock_guard lock(d.mutex);
        if (!d.modules.alive(module)) return d.modules.lost(module) ? result::context_is_destroyed : unknown;
        variables = module->variables;
        for (const auto& [name, id] : variables) {
            if (Region* const region = d.regions.find_id(id)) region->freed = true;
        }
    }
    for (const auto& [name, id] : variables) {
        Region* region = nullptr;
        {
            const std::lock_guard lock(d.mutex);
            region = d.regions.find_id(id);
        }
        if (!region) continue;  // its context was destroyed
        if (const Result code = wait_and_release(d, region, region->device)) return code;
    }
    const std::lock_guard lock(d.mutex);
    for (const auto& [name, function] : module->functions) d.functions.destroy(function);
    d.modules.destroy(module);
    return result::ok;
}

}  // namespace

// All constant variables of the module lie in one bank.
std::uint64_t constant_bytes(const ptx::Program& program) {
    std::uint64_t bytes = 0;
    for (const ptx::GlobalVariable& variable : program.variables()) {
        if (!variable.is_constant) continue;
        const std::uint64_t alignment = std::max<std::uint64_t>(variable.alignment_bytes, 1);
        bytes = (bytes + alignment - 1) / alignment * alignment + variable.size_bytes;
    }
    return bytes;
}

Result find_function(Driver& d, Module* module, const char* name, Function** function) {
    if (!function || !name || !*name) return result::invalid_value;
    const std::lock_guard lock(d.mutex);
    if (!d.modules.alive(module)) return lost_or_unknown(d.modules, module);
    if (module->code != result::ok) return module->code;
    const auto known = module->functions.find(name);
    if (known != module->functions.end()) {
        *function = known->second;
        return result::ok;
    }
    const Twin* twin = nullptr;
    std::shared_ptr<const Twin> own;
    if (module->contents) {
        const images::ImageEntry* const entry = module->contents->entry(name);
        if (!entry && !module->contents->readable) {
            say("the image is compressed, so that its entry %s cannot be found", name);
            return result::not_supported;
        }
        if (entry) own = twin_of_entry(*entry, module->program);
        twin = own.get();
    } else {
        twin = find_twin(module->image, name);
    }
    if (!twin) return result::not_found;
    Function* made = d.functions.create();
    made->twin = twin;
    made->own_twin = std::move(own);
    made->module = module;
    module->functions[name] = made;
    *function = made;
    return result::ok;
}

Result find_variable(Driver& d, Address* address, std::size_t* bytes, const Module* module, const char* name) {
    const std::lock_guard lock(d.mutex);
    if (!name || !*name) return result::invalid_value;
    if (!d.modules.alive(module)) return lost_or_unknown(d.modules, module);
    const auto known = module->variables.find(name);
    if (known == module->variables.end()) return result::not_found;
    const Region* const region = d.regions.find_id(known->second);
    if (!region) return result::not_found;
    if (address) *address = region->base;
    if (bytes) *bytes = region->bytes;
    return result::ok;
}

extern "C" {

Result cuModuleLoadData(Module** module, const void* image) {
    return load_in_context(CallId::cuModuleLoadData, module, image);
}

Result cuModuleLoadDataEx(Module** module, const void* image, unsigned count, int* options, void** values) {
    return load_in_context(CallId::cuModuleLoadDataEx, module, image, count, options, values);
}

Result cuModuleLoadFatBinary(Module** module, const void* image) {
    return load_in_context(CallId::cuModuleLoadFatBinary, module, image);
}

Result cuModuleUnload(Module* module) {
    return call_in_context(CallId::cuModuleUnload,
                           [&](Driver& d, Context&) { return unload(d, module, result::invalid_handle); });
}

Result cuModuleGetFunction(Function** function, Module* module, const char* name) {
    return call_in_context(CallId::cuModuleGetFunction,
                           [&](Driver& d, Context&) { return find_function(d, module, name, function); });
}

Result cuModuleGetGlobal_v2(Address* address, std::size_t* bytes, Module* module, const char* name) {
    return call_in_context(CallId::cuModuleGetGlobal_v2,
                           [&](Driver& d, Context&) { return find_variable(d, address, bytes, module, name); });
}

Result cuModuleGetLoadingMode(int* mode) {
    return call(CallId::cuModuleGetLoadingMode, [&](Driver&) -> Result {
        if (!mode) return result::invalid_value;
        *mode = 2;  // CU_MODULE_LAZY_LOADING, the default since 12.2
        return result::ok;
    });
}

Result cuLibraryLoadData(Module** library, const void* image, int* options, void** values, unsigned count, int*, void**,
                         unsigned) {
    return call(CallId::cuLibraryLoadData, [&](Driver& d) -> Result {
        CompilerLogs stated;
        if (options && values) stated.read(count, options, values);
        std::string log;
        const Result code = load(d, nullptr, library, image, log);
        if (code == result::ok) limit_registers(d, **library, stated.most_registers);
        const bool later = code == result::invalid_image || code == result::no_binary || code == result::invalid_ptx ||
                           code == result::ptx_too_new;
        if (!later) return code;
        // Observed: what is wrong with an image is said at its first use.
        const std::lock_guard lock(d.mutex);
        *library = d.modules.create();
        (*library)->code = code;
        return result::ok;
    });
}

Result cuLibraryUnload(Module* library) {
    return call(CallId::cuLibraryUnload, [&](Driver& d) {
        {
            // Observed: a real driver crashes.
            const std::lock_guard lock(d.mutex);
            if (d.modules.was_alive(library)) undefined("cuLibraryUnload of a library that is already unloaded");
        }
        return unload(d, library, result::invalid_handle);
    });
}

Result cuLibraryGetKernel(Function** kernel, Module* library, const char* name) {
    return call(CallId::cuLibraryGetKernel, [&](Driver& d) { return find_function(d, library, name, kernel); });
}

Result cuLibraryGetModule(Module** module, Module* library) {
    return call_in_context(CallId::cuLibraryGetModule, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!module) return result::invalid_value;
        if (!d.modules.alive(library)) return result::invalid_handle;
        if (library->code != result::ok) return library->code;
        *module = library;
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
