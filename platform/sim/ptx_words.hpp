// SPDX-License-Identifier: Apache-2.0
// What a PTX assembler refuses at first sight, in texts that the room of PTX may know in part.
#pragma once

#include <string>
#include <string_view>

namespace isthmus::sim {

// The first instruction that PTX does not have, a brace without its other one, or a call of an external function that
// neither the text nor the driver has, as the assembler's message; empty: none. Instructions that PTX has are never
// named, whether they can run here or not.
std::string ptx_error(std::string_view text);

}  // namespace isthmus::sim
