// SPDX-License-Identifier: Apache-2.0
// Runs the rows of a plan on a device, one after the other, and reports each as it proceeds.
#pragma once

#include "field.hpp"
#include "plan.hpp"

#include <isthmus/runtime.hpp>

#include <functional>
#include <vector>

namespace isthmus::tools::litmus {

// The sizes of the trials on a device.
struct Setting {
    FieldSize size;
    unsigned threads = 1;
    std::uint32_t clock_khz = 1'000'000;
};
// `processors`: the number that this process may use. A simulated machine gets small trials: they cannot find anything
// about hardware.
Setting setting_for(const DeviceFacts& device, const MachineFacts& machine, const Request& request,
                    unsigned processors);

// Calls report(index) whenever a row has changed, also before its end, so that its counts are known when the device
// hangs.
void run_trials(Device& device, const Request& request, const Setting& setting, std::vector<Row>& rows,
                const std::function<void(std::size_t index)>& report);

}  // namespace isthmus::tools::litmus
