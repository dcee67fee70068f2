// SPDX-License-Identifier: Apache-2.0
// graph_dot: a recorded graph as Graphviz text. Pure.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DotArgument {
    std::string name;  // name of the kernel's parameter; empty: the operation does not name its buffers
    ArgumentUse use = ArgumentUse::value;
    std::string buffer;  // identifies the memory
};

struct DotOperation {
    std::string name;
    bool kernel = false;
    std::vector<DotArgument> arguments;
    std::uint64_t stream = 0;
    std::string device;
    std::vector<std::uint32_t> after;  // indices of its direct predecessors
};

// Text in the DOT language: one box per operation, with rounded corners for copies and fills; edges lead to successors.
// Equal operations give equal text.
std::string graph_dot(std::string_view title, const std::vector<DotOperation>& operations);

// Escapes text for a quoted DOT string: no input ends the string or the line.
std::string dot_escaped(std::string_view text);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
