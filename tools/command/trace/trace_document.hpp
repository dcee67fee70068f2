// SPDX-License-Identifier: Apache-2.0
// A file of libisthmus-trace, and what its events hold: nothing is expected of a stranger's file.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace isthmus::tools::trace {

using Json = nlohmann::json;

struct Document {
    Json json;
    std::string problem;                                           // empty: `json` has both of these
    const Json& events() const { return json.at("traceEvents"); }  // an array
    const Json& other() const { return json.at("otherData"); }     // an object: counts
};
Document read_document(std::string_view text);

// The value of a key; empty or 0 where it is missing or of another type.
std::string text_of(const Json& object, const char* key);
std::uint64_t count_of(const Json& object, const char* key);
double number_of(const Json& object, const char* key);
// An event's "args"; an empty object where it has none.
const Json& arguments_of(const Json& event);
// "upload: brighten" is of "brighten".
std::string without_category(const std::string& name);

}  // namespace isthmus::tools::trace
