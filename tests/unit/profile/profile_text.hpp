// SPDX-License-Identifier: Apache-2.0
// A profile as text, of which tests change one member.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace profile_text {

using Members = std::vector<std::pair<std::string, std::string>>;  // the name, and the value as JSON

inline std::string object(const Members& members) {
    std::string text;
    for (const auto& [name, value] : members) text += (text.empty() ? "{\"" : ",\n\"") + name + "\": " + value;
    return text.empty() ? "{}" : text + "}";
}
inline Members with(Members members, const std::string& name, const std::string& value) {
    for (auto& [each, old] : members) {
        if (each == name) old = value;
    }
    return members;
}
inline Members without(Members members, const std::string& name) {
    std::erase_if(members, [&](const auto& each) { return each.first == name; });
    return members;
}

inline Members use(const std::string& rows = "[[1, 0, 0]]") {
    return {{"device", "\"reads\""},
            {"host", "\"writes\""},
            {"host_often", "false"},
            {"prefer", "\"throughput\""},
            {"rows", rows}};
}
inline Members way(const std::string& kind) {
    return {{"kind", '"' + kind + '"'}, {"locality", "\"anywhere\""}};
}
inline Members device(const Members& use) {
    return {{"uuid", "\"GPU-01020304-0506-0708-090a-0b0c0d0e0f10\""},
            {"name", "\"a GPU\""},
            {"driver_version", "13000"},
            {"kernel_release", "\"6.8.0-generic\""},
            {"simulated", "false"},
            {"translation", "\"none\""},
            {"memory", "\"separate\""},
            {"measured_on", "\"2026-11-24\""},
            {"ways", "[" + object(way("pinned")) + "," + object(way("device")) + "]"},
            {"choices", "[" + object(use) + "]"},
            {"turns", "[{\"seconds\": [1.5e-6, -0.0, 12, null, true]}]"}};
}
inline std::string file(const Members& device) {
    return object({{"schema", "\"isthmus-profile-1\""}, {"devices", "[" + object(device) + "]"}});
}

}  // namespace profile_text
