// SPDX-License-Identifier: Apache-2.0
#include "components.hpp"

namespace test {

bool has_component(std::string_view component) {
    std::string_view rest = ISTHMUS_TEST_COMPONENTS;
    while (!rest.empty()) {
        const std::size_t end = rest.find(',');
        if (rest.substr(0, end) == component) return true;
        rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
    return false;
}

}  // namespace test
