// SPDX-License-Identifier: Apache-2.0
// Findings as JSON.
#include "doctor_json.hpp"

#include "doctor_fine.hpp"

#include <nlohmann/json.hpp>

namespace isthmus::tools {

using Json = nlohmann::ordered_json;

std::string doctor_json(const DoctorFacts& facts, const std::vector<Finding>& findings) {
    Json list = Json::array();
    for (const Finding& finding : findings) {
        list.push_back({{"id", finding.id},
                        {"title", finding.title},
                        {"weight", name(finding.weight)},
                        {"evidence", finding.evidence},
                        {"remedy", finding.remedy}});
    }
    Json checked = Json::array();
    for (const Check& check : all_checks()) checked.push_back(check.id);
    Json devices = Json::array();
    for (const DeviceSighting& device : facts.opening.devices) devices.push_back(device.name);
    const Json document{{"format", 1},
                        {"driver_version", facts.machine.driver_version},
                        {"simulated", facts.machine.simulated},
                        {"module_version", facts.module_version},
                        {"library", facts.opening.library},
                        {"devices", devices},
                        {"findings", list},
                        {"fine", fine(facts, findings)},
                        {"checked", checked}};
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace isthmus::tools
