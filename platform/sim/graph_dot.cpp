// SPDX-License-Identifier: Apache-2.0
// A graph as a file for Graphviz: its nodes with their types, its edges, child graphs and bodies as clusters. The
// driver does not document the words; these are the simulator's.
#include "call.hpp"
#include "graph_objects.hpp"

#include <cstdio>
#include <string>

namespace isthmus::sim {
namespace {

constexpr unsigned all_flags = (1u << 16) - 1, verbose = 1, with_handles = 1u << 10;

const char* word_for(int type) {
    switch (type) {
        case 0: return "KERNEL";
        case 1: return "MEMCPY";
        case 2: return "MEMSET";
        case 3: return "HOST";
        case 4: return "GRAPH";
        case 6: return "WAIT_EVENT";
        case 7: return "EVENT_RECORD";
        case 8: return "EXT_SEMAS_SIGNAL";
        case 9: return "EXT_SEMAS_WAIT";
        case 10: return "MEM_ALLOC";
        case 11: return "MEM_FREE";
        case 12: return "BATCH_MEM_OP";
        case 13: return "CONDITIONAL";
        default: return "EMPTY";
    }
}

// As a text in quotes.
std::string in_quotes(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    return out + "\"";
}

std::string name_of(const engine::GraphNode& node) {
    return "node_" + std::to_string(node.id);
}

void describe(const engine::Graph& graph, unsigned flags, std::string& out) {
    for (engine::NodeIndex i = 0; i < graph.size(); ++i) {
        const engine::GraphNode& node = graph.node(i);
        std::string label = std::to_string(i) + "\n" + word_for(type_of(node));
        if (node.operation.kind == engine::Kind::kernel && !node.child) label += "\n" + node.operation.label;
        if ((flags & (verbose | with_handles)) != 0) label += "\nid " + std::to_string(node.id);
        out += name_of(node) + " [label=" + in_quotes(label) + "];\n";
        for (const engine::NodeIndex before : node.dependencies) {
            out += name_of(graph.node(before)) + " -> " + name_of(node) + ";\n";
        }
        if (!node.child || node.child->size() == 0) continue;
        out += "subgraph cluster_" + std::to_string(node.id) +
               " {\nlabel=" + in_quotes("inside node " + std::to_string(i)) + ";\n";
        describe(*node.child, flags, out);
        out += "}\n";
    }
}

bool write_file(const char* path, const std::string& text) {
    std::FILE* const file = std::fopen(path, "we");
    if (!file) return false;
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    return std::fclose(file) == 0 && written;
}

}  // namespace

extern "C" {

Result cuGraphDebugDotPrint(GraphObject* graph, const char* path, unsigned flags) {
    return call(CallId::cuGraphDebugDotPrint, [&](Driver& d) -> Result {
        std::string text = "digraph dot {\n";
        {
            const std::lock_guard lock(d.mutex);
            if (!path || flags > all_flags || !d.graphs.alive(graph)) return result::invalid_value;
            if (const Result code = look(d, *graph, [&](const engine::Graph& all) { describe(all, flags, text); })) {
                return code;
            }
        }
        return write_file(path, text + "}\n") ? result::ok : result::operating_system;
    });
}
}

}  // namespace isthmus::sim
