// SPDX-License-Identifier: Apache-2.0
// Facts → capabilities: pure, total, keyed on attributes only (never on a product, family or link name).
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/facts.hpp>

#include <optional>
#include <string>
#include <vector>

namespace isthmus::platform {

// The attributes that detect() and the rest of the runtime read, queried when a device is opened. Ascending.
std::vector<int> deciding_attributes();

// Unknown combinations map to the weakest row that fits, never to an error.
Capabilities detect(const MachineFacts& machine, const DeviceFacts& device);

// Result of a real attempt. A failed one lowers the feature to no; a successful one turns yes into probed and leaves no
// unchanged: a probe never widens.
struct Probe {
    Feature feature;
    bool works = false;
    int driver_code = 0;  // of the failure
    std::string finding;  // one sentence
};
void apply_probe(Capabilities& capabilities, const Probe& probe);

}  // namespace isthmus::platform
