// SPDX-License-Identifier: Apache-2.0
// graph_dot: nodes, their labels and edges.
#include "graph_dot.hpp"

#include "composed.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

std::string_view text_of(ArgumentUse use) noexcept {
    switch (use) {
        case ArgumentUse::read: return "reads";
        case ArgumentUse::write: return "writes";
        case ArgumentUse::read_write: return "reads and writes";
        case ArgumentUse::concurrent: return "uses concurrently";
        default: return "value";
    }
}

// \l ends a line of a DOT label and aligns it left.
void append_line(std::string& label, std::string_view text) {
    label.append(dot_escaped(text)).append("\\l");
}

std::string label_of(const DotOperation& operation) {
    std::string label;
    append_line(label, operation.name);
    for (const DotArgument& argument : operation.arguments) {
        std::string line = argument.name;
        line.append(line.empty() ? "" : ": ").append(text_of(argument.use)).append(" ").append(argument.buffer);
        append_line(label, line);
    }
    append_line(label, composed("stream {}, {}", operation.stream, operation.device));
    return label;
}

}  // namespace

std::string dot_escaped(std::string_view text) {
    std::string escaped;
    escaped.reserve(text.size());
    for (const char one : text) {
        const auto byte = static_cast<unsigned char>(one);
        if (one == '"' || one == '\\') {
            escaped.append(1, '\\').append(1, one);
        } else if (byte < 0x20 || byte == 0x7f) {
            escaped.append(1, ' ');  // bytes above are UTF-8, DOT's own encoding
        } else {
            escaped.append(1, one);
        }
    }
    return escaped;
}

std::string graph_dot(std::string_view title, const std::vector<DotOperation>& operations) {
    std::string text = "digraph \"" + dot_escaped(title) + "\" {\n";
    text.append("  node [shape=box, fontname=monospace];\n");
    for (std::size_t at = 0; at < operations.size(); ++at) {
        text.append("  n").append(std::to_string(at)).append(" [label=\"").append(label_of(operations[at]));
        text.append(operations[at].kernel ? "\"];\n" : "\", style=rounded];\n");
    }
    for (std::size_t at = 0; at < operations.size(); ++at) {
        for (const std::uint32_t before : operations[at].after) {
            text.append("  n").append(std::to_string(before)).append(" -> n").append(std::to_string(at)).append(";\n");
        }
    }
    return text.append("}\n");
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
