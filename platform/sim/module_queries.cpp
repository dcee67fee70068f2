// SPDX-License-Identifier: Apache-2.0
// What modules, libraries and kernels say about themselves.
#include "call.hpp"
#include "module.hpp"

#include <algorithm>
#include <vector>

namespace isthmus::sim {
namespace {

std::vector<std::string> names_in(const Module& module) {
    if (!module.contents) return twins_of_image(module.image);
    std::vector<std::string> names;
    for (const images::ImageEntry& entry : module.contents->entries) names.push_back(entry.name);
    return names;
}

// 0, the code of a handle that is none, or the one that the library's image has.
Result check_module(Driver& d, const Module* module) {
    const std::lock_guard lock(d.mutex);
    if (!d.modules.alive(module)) return lost_or_unknown(d.modules, module);
    return module->code;
}

Result count_entries(Driver& d, unsigned* count, const Module* module) {
    if (!count) return result::invalid_value;
    const std::lock_guard lock(d.mutex);
    if (!d.modules.alive(module)) return lost_or_unknown(d.modules, module);
    // Observed: a library whose image is wrong has 0.
    *count = module->code != result::ok ? 0 : static_cast<unsigned>(names_in(*module).size());
    return result::ok;
}

// Documented: at most `count`.
Result enumerate(Driver& d, Function** functions, unsigned count, Module* module) {
    if (!functions) return result::invalid_value;
    std::vector<std::string> names;
    {
        const std::lock_guard lock(d.mutex);
        if (!d.modules.alive(module)) return lost_or_unknown(d.modules, module);
        if (module->code != result::ok) return result::ok;  // observed (580, H200): a library whose image is wrong
        names = names_in(*module);
    }
    for (unsigned at = 0; at < count && at < names.size(); ++at) {
        if (const Result code = find_function(d, module, names[at].c_str(), &functions[at])) return code;
    }
    return result::ok;
}

// Body: Result(Function&), called with the driver's mutex held.
template <class Body>
Result call_for_kernel(CallId id, const Function* kernel, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.functions.alive(kernel)) return lost_or_unknown(d.functions, kernel);
        return body(*const_cast<Function*>(kernel));
    });
}

Result give_module(const Function& function, Module** module) {
    if (!module) return result::invalid_value;
    *module = function.module;
    return result::ok;
}

Result check_preference(int preference) {
    return preference >= 0 && preference <= 3 ? result::ok : result::invalid_value;
}

}  // namespace

Result give_name(Driver& d, const Function* function, const char** name) {
    if (!function || !name) return result::invalid_value;
    const std::lock_guard lock(d.mutex);
    if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
    *name = function->twin->symbol.c_str();
    return result::ok;
}

extern "C" {

Result cuLibraryGetKernelCount(unsigned* count, Module* library) {
    return call(CallId::cuLibraryGetKernelCount, [&](Driver& d) { return count_entries(d, count, library); });
}

Result cuLibraryEnumerateKernels(Function** kernels, unsigned count, Module* library) {
    return call(CallId::cuLibraryEnumerateKernels, [&](Driver& d) { return enumerate(d, kernels, count, library); });
}

Result cuModuleGetFunctionCount(unsigned* count, Module* module) {
    return call_in_context(CallId::cuModuleGetFunctionCount,
                           [&](Driver& d, Context&) { return count_entries(d, count, module); });
}

Result cuModuleEnumerateFunctions(Function** functions, unsigned count, Module* module) {
    return call_in_context(CallId::cuModuleEnumerateFunctions,
                           [&](Driver& d, Context&) { return enumerate(d, functions, count, module); });
}

Result cuLibraryGetGlobal(Address* address, std::size_t* bytes, Module* library, const char* name) {
    return call_in_context(CallId::cuLibraryGetGlobal, [&](Driver& d, Context&) -> Result {
        if (const Result code = check_module(d, library)) return code;
        return find_variable(d, address, bytes, library, name);
    });
}

Result cuLibraryGetManaged(Address* address, std::size_t* bytes, Module* library, const char* name) {
    return call(CallId::cuLibraryGetManaged, [&](Driver& d) -> Result {
        if (const Result code = check_module(d, library)) return code;
        Address found = 0;
        std::size_t size = 0;
        if (const Result code = find_variable(d, &found, &size, library, name)) return code;
        const std::lock_guard lock(d.mutex);
        const Found place = d.regions.find(found);
        if (!place || place.region->kind != Kind::managed) return result::not_found;
        if (address) *address = found;
        if (bytes) *bytes = size;
        return result::ok;
    });
}

Result cuKernelGetName(const char** name, Function* kernel) {
    return call(CallId::cuKernelGetName, [&](Driver& d) { return give_name(d, kernel, name); });
}

Result cuKernelGetLibrary(Module** library, Function* kernel) {
    return call_for_kernel(CallId::cuKernelGetLibrary, kernel,
                           [&](const Function& f) { return give_module(f, library); });
}

Result cuFuncGetModule(Module** module, Function* function) {
    return call(CallId::cuFuncGetModule, [&](Driver& d) -> Result {
        if (!function) return result::invalid_value;  // observed (580, H100)
        const std::lock_guard lock(d.mutex);
        if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
        return give_module(*function, module);
    });
}

// A function is ready once it has a handle.
Result cuFuncIsLoaded(int* state, Function* function) {
    return call_for_kernel(CallId::cuFuncIsLoaded, function, [&](const Function&) -> Result {
        if (!state) return result::invalid_value;
        *state = 1;  // CU_FUNCTION_LOADING_STATE_LOADED
        return result::ok;
    });
}

// Preferences: hints that change nothing here.
Result cuFuncSetCacheConfig(Function* function, int preference) {
    return call_for_kernel(CallId::cuFuncSetCacheConfig, function,
                           [&](const Function&) { return check_preference(preference); });
}

Result cuKernelSetCacheConfig(Function* kernel, int preference, DeviceOrdinal device) {
    return call_for_kernel(CallId::cuKernelSetCacheConfig, kernel, [&](const Function&) -> Result {
        if (!driver()->valid(device)) return result::invalid_device;
        return check_preference(preference);
    });
}
}

}  // namespace isthmus::sim
