// SPDX-License-Identifier: Apache-2.0
// Loads images, finds functions, and answers queries about them.
#include "module.hpp"

#include "access.hpp"
#include "allocate.hpp"
#include "call.hpp"
#include "packed_images.hpp"
#include "ptx_kernels.hpp"
#include "ptx_words.hpp"
#include "written_bytes.hpp"

#include <driver_abi/sim_registration.h>

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

Result load_in_context(CallId id, Module** module, const void* image, unsigned count = 0, const int* options = nullptr,
                       void** values = nullptr) {
    return call_in_context(id, [&](Driver& d, Context& context) -> Result {
        // Observed for allocations; documented for modules: loading may synchronise the context.
        if (const Result code = d.engine().unsafe_call()) return code;
        CompilerLogs logs;
        if (const Result code = logs.read(count, options, values)) return code;
        std::string log;
        const Result code = load(d, &context, module, image, log);
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

int local_bytes(const Function& function) {
    return function.twin->entry != nullptr ? static_cast<int>(function.twin->entry->local_bytes) : 0;
}
int constant_bytes(const Function& function) {
    return function.twin->program ? static_cast<int>(constant_bytes(*function.twin->program)) : 0;
}

// That of .target (580, H100).
int virtual_version(const Function& function, int device_version) {
    return function.twin->program ? static_cast<int>(function.twin->program->target()) : device_version;
}

// Numbers of CUfunction_attribute. Registers of PTX are an estimate; those of twins are a plausible constant.
Result get_attribute(const Driver& d, int device, const Function& function, int id, int* value) {
    if (!value) return result::invalid_value;
    const auto set = function.set_attributes.find(id);
    const int version = d.fact(device, attribute::cc_major) * 10 + d.fact(device, attribute::cc_minor);
    switch (id) {
        case 0: *value = max_threads(d, device, function); return result::ok;
        case 1: *value = static_shared_bytes(function); return result::ok;
        case 2: *value = constant_bytes(function); return result::ok;
        case 3: *value = local_bytes(function); return result::ok;
        case 4: *value = registers_of(function); return result::ok;
        case 5: *value = virtual_version(function, version); return result::ok;
        case 6: *value = version; return result::ok;
        case 7: *value = 0; return result::ok;
        case 8:
            *value = set != function.set_attributes.end()
                         ? set->second
                         : d.fact(device, attribute::max_shared_per_block) - static_shared_bytes(function);
            return result::ok;
        case function_attribute::carveout:
            *value = set != function.set_attributes.end() ? set->second : -1;
            return result::ok;
        // Observed (580): of .explicitcluster alone, which nvcc writes for __cluster_dims__, too.
        case function_attribute::cluster_required: *value = needs_cluster(function) ? 1 : 0; return result::ok;
        case function_attribute::cluster_width:
            *value = static_cast<int>(required_cluster(function).x);
            return result::ok;
        case function_attribute::cluster_height:
            *value = static_cast<int>(required_cluster(function).y);
            return result::ok;
        case function_attribute::cluster_depth:
            *value = static_cast<int>(required_cluster(function).z);
            return result::ok;
        case function_attribute::any_cluster:
        case function_attribute::cluster_scheduling:
            *value = set != function.set_attributes.end() ? set->second : 0;
            return result::ok;
        default: return result::invalid_value;
    }
}

// The values that may be set; the codes of clusters are assumed.
Result set_attribute(const Driver& d, int device, Function& function, int id, int value) {
    const int most = d.fact(device, attribute::max_shared_optin) - static_shared_bytes(function);
    const auto between = [&](int least, int largest) { return value >= least && value <= largest; };
    bool right = false;
    switch (id) {
        case function_attribute::dynamic_shared: right = between(0, most); break;
        case function_attribute::carveout: right = between(-1, 100); break;
        case function_attribute::cluster_width:
        case function_attribute::cluster_height:
        case function_attribute::cluster_depth:
            if (states_cluster(function)) return result::not_permitted;  // documented
            right = value >= 0;
            break;
        case function_attribute::any_cluster: right = between(0, 1); break;
        case function_attribute::cluster_scheduling: right = between(0, 2); break;
        default: break;
    }
    if (!right) return result::invalid_value;
    function.set_attributes[id] = value;
    return result::ok;
}

// Body: Result(Driver&, Context&, Function&), called with the driver's mutex held.
template <class Body>
Result call_for_function(CallId id, Function* function, Body&& body) {
    return call_in_context(id, [&](Driver& d, Context& context) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
        return body(d, context, *function);
    });
}

// Kernels of registered images take the extent and the pack.
Result parameter_info(const Twin& twin, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    if (!offset) return result::invalid_value;
    BlockParameter found = {0, 0};
    if (twin.ready_made) {
        if (index >= twin.block.size()) return result::invalid_value;
        found = twin.block[index];
    } else {
        if (index > 1) return result::invalid_value;
        const auto extent = static_cast<std::uint32_t>(sizeof(isthmus_sim_extent));
        found = index == 0 ? BlockParameter{0, extent} : BlockParameter{extent, twin.pack_bytes};
    }
    *offset = found.offset_bytes;
    if (bytes) *bytes = found.size_bytes;
    return result::ok;
}

}  // namespace

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

Result cuLibraryLoadData(Module** library, const void* image, int*, void**, unsigned, int*, void**, unsigned) {
    return call(CallId::cuLibraryLoadData, [&](Driver& d) -> Result {
        std::string log;
        const Result code = load(d, nullptr, library, image, log);
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

Result cuKernelGetFunction(Function** function, Function* kernel) {
    return call_for_function(CallId::cuKernelGetFunction, kernel, [&](Driver&, Context&, Function& f) -> Result {
        if (!function) return result::invalid_value;
        *function = &f;
        return result::ok;
    });
}

Result cuKernelGetAttribute(int* value, int id, Function* kernel, DeviceOrdinal device) {
    return call(CallId::cuKernelGetAttribute, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.valid(device)) return result::invalid_device;
        if (!d.functions.alive(kernel)) return result::invalid_handle;
        return get_attribute(d, device, *kernel, id, value);
    });
}

Result cuFuncGetAttribute(int* value, int id, Function* function) {
    return call_for_function(CallId::cuFuncGetAttribute, function, [&](Driver& d, Context& context, Function& f) {
        return get_attribute(d, context.device, f, id, value);
    });
}

Result cuFuncSetAttribute(Function* function, int id, int value) {
    return call_for_function(CallId::cuFuncSetAttribute, function, [&](Driver& d, Context& context, Function& f) {
        return set_attribute(d, context.device, f, id, value);
    });
}

Result cuKernelSetAttribute(int id, int value, Function* kernel, DeviceOrdinal device) {
    return call(CallId::cuKernelSetAttribute, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.valid(device)) return result::invalid_device;
        if (!d.functions.alive(kernel)) return result::invalid_handle;
        return set_attribute(d, device, *kernel, id, value);
    });
}

Result cuFuncGetParamInfo(Function* function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    return call(CallId::cuFuncGetParamInfo, [&](Driver& d) -> Result {
        if (!function) return result::invalid_value;  // observed (580, H100)
        const std::lock_guard lock(d.mutex);
        if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
        return parameter_info(*function->twin, index, offset, bytes);
    });
}

Result cuKernelGetParamInfo(Function* kernel, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    return call(CallId::cuKernelGetParamInfo, [&](Driver& d) -> Result {
        if (!kernel || !offset) return result::invalid_value;
        Context* context = nullptr;  // observed (580, H100): needed, unlike for functions
        if (const Result refused = need_context(d, context)) return refused;
        const std::lock_guard lock(d.mutex);
        if (!d.functions.alive(kernel)) return result::invalid_handle;
        return parameter_info(*kernel->twin, index, offset, bytes);
    });
}

Result cuFuncGetName(const char** name, Function* function) {
    return call(CallId::cuFuncGetName, [&](Driver& d) { return give_name(d, function, name); });
}

Result cuFuncLoad(Function* function) {
    return call_for_function(CallId::cuFuncLoad, function,
                             [](Driver&, Context&, Function&) -> Result { return result::ok; });
}
}

}  // namespace isthmus::sim

extern "C" __attribute__((visibility("default"))) int isthmus_sim_set_stand_in(void* function,
                                                                               const isthmus_sim_stand_in* stand_in) {
    using namespace isthmus::sim;
    Driver* const d = driver();
    if (!d || !stand_in || stand_in->struct_bytes < sizeof(isthmus_sim_stand_in) || !stand_in->run) return 1;
    const std::lock_guard lock(d->mutex);
    auto* const known = static_cast<Function*>(function);
    if (!d->functions.alive(known) || !known->own_twin) return 1;
    auto made = std::make_shared<Twin>(*known->own_twin);
    made->pointers.clear();
    for (std::uint32_t at = 0; at < stand_in->view_count; ++at) {
        const isthmus_sim_parameter& view = stand_in->view[at];
        if (view.offset_bytes > made->pack_bytes || view.size_bytes > made->pack_bytes - view.offset_bytes) return 1;
        made->pointers.push_back({view.offset_bytes, view.size_bytes, view.element_bytes, view.use});
    }
    made->stand_in = stand_in->run;
    made->self = stand_in->self;
    known->twin = made.get();
    known->own_twin = std::move(made);
    return 0;
}
