// graph_dot: a recorded graph as text that Graphviz draws. Pure.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::inline v0::detail {

struct DotArgument {
    std::string name;  // of the kernel's parameter; empty: the operation does not name its buffers
    ArgumentUse use = ArgumentUse::value;
    std::string buffer;  // which memory it is
};

struct DotOperation {
    std::string name;
    bool kernel = false;
    std::vector<DotArgument> arguments;
    std::uint64_t stream = 0;
    std::string device;
    std::vector<std::uint32_t> after;  // indices of the operations that it directly follows
};

// In the DOT language: one box for each operation, kernels drawn apart from copies and fills; an edge leads to what
// follows. Equal operations give equal text.
std::string graph_dot(std::string_view title, const std::vector<DotOperation>& operations);

// The content of a quoted string of the DOT language: whatever the text is, it ends neither the string nor a line.
std::string dot_escaped(std::string_view text);

}  // namespace isthmus::inline v0::detail
