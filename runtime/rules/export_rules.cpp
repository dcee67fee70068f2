// SPDX-License-Identifier: Apache-2.0
// Each refusal has its own text, which names what to allocate instead.
#include "export_rules.hpp"

namespace isthmus::rules {
namespace {

AccessAnswer no(std::string_view reason, std::string_view remedy) {
    return {Verdict::no, reason, remedy};
}

}  // namespace

AccessAnswer exportable(MemoryKind kind, ExportOrigin origin) {
    if (origin == ExportOrigin::view) {
        return no("a view is a way to look at memory, not the memory: a handle names a whole allocation",
                  "export the buffer that the view was made of");
    }
    if (origin == ExportOrigin::foreign) {
        return no("this runtime did not allocate the memory: its owner alone may give it to others, and take it back",
                  "let the owner export it, or copy it into memory that was created exportable");
    }
    if (origin == ExportOrigin::shared) {
        return no("the memory is shared between processes already: the ExportableBuffer that it was made as exports it",
                  "call export_memory() with that buffer itself, in the process that made it");
    }
    switch (kind) {
        case MemoryKind::managed:
        case MemoryKind::managed_pool:
            return no("managed memory moves between CPU and GPU within one process; the driver gives no handle for it",
                      "copy it into memory that was created exportable");
        case MemoryKind::pool:
            return no("a handle to pool memory would stay valid for whatever the pool puts there next",
                      "allocate what is exported apart from pools");
        case MemoryKind::graph:
            return no("memory of a graph exists only while that graph runs", "copy it into a buffer within the graph");
        case MemoryKind::imported:
            return no("the memory is another process's already", "let its exporter give a handle to the third process");
        case MemoryKind::host:
        case MemoryKind::host_numa:
        case MemoryKind::pinned:
        case MemoryKind::registered:
        case MemoryKind::write_combined:
            return no("this host memory is private to the process", "create it as shared host memory");
        case MemoryKind::device:
            return {Verdict::not_verified,
                    "an older handle of memory of cuMemAlloc names the whole piece that it was cut out of",
                    "create it exportable"};
        case MemoryKind::vmm:
            return {Verdict::not_verified, "whether physical memory is exportable was fixed at its creation",
                    "ask the physical memory behind the mapping"};
        case MemoryKind::unknown: break;
    }
    return {Verdict::not_verified, "nothing is known about how this memory was obtained",
            "allocate it through the runtime"};
}

}  // namespace isthmus::rules
