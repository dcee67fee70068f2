// SPDX-License-Identifier: Apache-2.0
// Functions and kernels: their attributes, their parameters, and stand-ins for their code.
#include "call.hpp"
#include "launch.hpp"
#include "module.hpp"

#include <driver_abi/sim_registration.h>
#include <program.hpp>

#include <memory>

namespace isthmus::sim {
namespace {

int local_bytes(const Function& function) {
    return function.twin->entry != nullptr ? static_cast<int>(function.twin->entry->local_bytes) : 0;
}

int constant_bytes_of(const Function& function) {
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
        case 2: *value = constant_bytes_of(function); return result::ok;
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

int attribute_of(const Function& function, int id) {
    const auto set = function.set_attributes.find(id);
    return set != function.set_attributes.end() ? set->second : 0;
}

extern "C" {

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
