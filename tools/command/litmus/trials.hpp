// SPDX-License-Identifier: Apache-2.0
// Plays the rows of a plan on a device, one after the other, and reports each as it goes.
#pragma once

#include "field.hpp"
#include "plan.hpp"

#include <isthmus/runtime.hpp>

#include <functional>
#include <vector>

namespace isthmus::tools::litmus {

// How large the trials are on a device.
struct Setting {
    FieldSize size;
    unsigned threads = 1;
    std::uint32_t clock_khz = 1'000'000;
};
// `processors` that this process may use. A simulated machine plays little: there is nothing to find there.
Setting setting_for(const DeviceFacts& device, const MachineFacts& machine, const Request& request,
                    unsigned processors);

// Calls report(index) whenever a row has changed: also before its end, so that what was seen before a hang is known.
void run_trials(Device& device, const Request& request, const Setting& setting, std::vector<Row>& rows,
                const std::function<void(std::size_t index)>& report);

}  // namespace isthmus::tools::litmus
