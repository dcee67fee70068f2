// SPDX-License-Identifier: Apache-2.0
// Launches as before CUDA 4: block, shared memory and parameters are set in the function one by one, then it is
// launched. Deprecated, but every driver has them, and older programs use them.
#include "call.hpp"
#include "launch.hpp"
#include "module.hpp"

#include <algorithm>
#include <cstring>

namespace isthmus::sim {
namespace {

constexpr std::size_t most_parameter_bytes = 32764;  // of a launch

// Body: Result(OldLaunch&), called with the driver's mutex held.
template <class Body>
Result set_in_function(CallId id, const Function* function, Body&& body) {
    return call_in_context(id, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
        Function& mine = *const_cast<Function*>(function);
        if (!mine.old_launch) mine.old_launch = std::make_shared<OldLaunch>();
        return body(d, *mine.old_launch);
    });
}

Result set_parameter(CallId id, const Function* function, int offset, const void* value, std::size_t bytes) {
    return set_in_function(id, function, [&](const Driver&, OldLaunch& launch) -> Result {
        if (!value || offset < 0) return result::invalid_value;
        const auto start = static_cast<std::size_t>(offset);
        if (start > most_parameter_bytes || bytes > most_parameter_bytes - start) return result::invalid_value;
        if (launch.parameters.size() < start + bytes) launch.parameters.resize(start + bytes);
        std::memcpy(launch.parameters.data() + start, value, bytes);
        return result::ok;
    });
}

Result launch_grid(CallId id, const Function* function, int width, int height, Stream* stream) {
    return call_in_context(id, [&](Driver& d, Context&) -> Result {
        OldLaunch now;
        bool takes_nothing = false;
        {
            const std::lock_guard lock(d.mutex);
            if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
            if (function->old_launch) now = *function->old_launch;
            takes_nothing = function->twin->block.empty();
        }
        // Observed (580, H100): parameters that nobody set are 0, also where no size was set.
        if (!takes_nothing) now.parameter_bytes = std::max<std::size_t>(now.parameter_bytes, 1);
        if (width < 1 || height < 1) return result::invalid_value;
        now.parameters.resize(now.parameter_bytes);
        void* extra[] = {reinterpret_cast<void*>(1), now.parameters.data(), reinterpret_cast<void*>(2),
                         &now.parameter_bytes, nullptr};
        LaunchRequest request;
        request.function = const_cast<Function*>(function);
        request.shape = {{static_cast<unsigned>(width), static_cast<unsigned>(height), 1},
                         {now.block[0], now.block[1], now.block[2]},
                         now.shared_bytes};
        request.extra = now.parameter_bytes == 0 ? nullptr : extra;
        return launch_in_stream(d, request, stream);
    });
}

}  // namespace

extern "C" {

Result cuFuncSetBlockShape(Function* function, int x, int y, int z) {
    return set_in_function(CallId::cuFuncSetBlockShape, function, [&](const Driver& d, OldLaunch& launch) -> Result {
        if (x < 1 || y < 1 || z < 1) return result::invalid_value;
        const unsigned wanted[3] = {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)};
        const Context* const context = function->module->context;
        if (context && !is_block(d, context->device, wanted)) return result::invalid_value;
        std::copy_n(wanted, 3, launch.block);
        return result::ok;
    });
}

Result cuFuncSetSharedSize(Function* function, unsigned bytes) {
    return set_in_function(CallId::cuFuncSetSharedSize, function, [&](const Driver& d, OldLaunch& launch) -> Result {
        const Context* const context = function->module->context;
        const int most = context ? d.devices[static_cast<std::size_t>(context->device)].limits.shared_bytes : 0;
        if (most > 0 && bytes > static_cast<unsigned>(most)) return result::invalid_value;
        launch.shared_bytes = bytes;
        return result::ok;
    });
}

Result cuParamSetSize(Function* function, unsigned bytes) {
    return set_in_function(CallId::cuParamSetSize, function, [&](const Driver&, OldLaunch& launch) -> Result {
        if (bytes > most_parameter_bytes) return result::invalid_value;
        launch.parameter_bytes = bytes;
        return result::ok;
    });
}

Result cuParamSeti(Function* function, int offset, unsigned value) {
    return set_parameter(CallId::cuParamSeti, function, offset, &value, sizeof value);
}

Result cuParamSetf(Function* function, int offset, float value) {
    return set_parameter(CallId::cuParamSetf, function, offset, &value, sizeof value);
}

Result cuParamSetv(Function* function, int offset, void* value, unsigned bytes) {
    return set_parameter(CallId::cuParamSetv, function, offset, value, bytes);
}

Result cuLaunch(Function* function) {
    return launch_grid(CallId::cuLaunch, function, 1, 1, nullptr);
}

Result cuLaunchGrid(Function* function, int width, int height) {
    return launch_grid(CallId::cuLaunchGrid, function, width, height, nullptr);
}

Result cuLaunchGridAsync(Function* function, int width, int height, Stream* stream) {
    return launch_grid(CallId::cuLaunchGridAsync, function, width, height, stream);
}
}

}  // namespace isthmus::sim
