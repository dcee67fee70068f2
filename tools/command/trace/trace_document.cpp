// SPDX-License-Identifier: Apache-2.0
#include "trace_document.hpp"

#include <utility>

namespace isthmus::tools::trace {

Document read_document(std::string_view text) {
    Json document = Json::parse(text, nullptr, false);
    if (document.is_discarded()) return {{}, "it is no whole JSON document"};
    const auto other = document.is_object() ? document.find("otherData") : document.end();
    const auto events = document.is_object() ? document.find("traceEvents") : document.end();
    if (!document.is_object() || events == document.end() || !events->is_array()) {
        return {{}, "it has no traceEvents: it is no trace"};
    }
    if (other == document.end() || !other->is_object() || !other->contains("isthmus")) {
        return {{}, "isthmus did not write it"};
    }
    return {std::move(document), {}};
}

std::string text_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
std::uint64_t count_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}
double number_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

const Json& arguments_of(const Json& event) {
    static const Json nothing = Json::object();
    const auto found = event.find("args");
    return found != event.end() && found->is_object() ? *found : nothing;
}

std::string without_category(const std::string& name) {
    const std::size_t colon = name.find(": ");
    return colon == std::string::npos ? name : name.substr(colon + 2);
}

}  // namespace isthmus::tools::trace
