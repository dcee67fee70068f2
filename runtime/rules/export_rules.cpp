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

AccessAnswer dma_buf_export(const Capabilities& device, MemoryKind kind) {
    if (device.memory == MemoryModel::host) {
        return no("the CPU device has no driver that exports memory",
                  "let the other driver use memory of this process (V4L2: USERPTR), or a dma-buf of a heap "
                  "(/dev/dma_heap), adopted by Device::adopt_dma_buf()");
    }
    const bool of_device = kind == MemoryKind::device || kind == MemoryKind::vmm;
    if (!of_device && kind != MemoryKind::pinned) {
        return no("the driver exports memory of cuMemAlloc, cuMemMap and cuMemHostAlloc only",
                  "make it as an ExportableBuffer with ExportableOptions::dma_buf");
    }
    if (of_device ? device.has(Feature::dma_buf) : device.has(Feature::host_dma_buf)) {
        return {Verdict::yes,
                of_device ? "the driver exports device memory as dma-bufs"
                          : "the driver exports pinned host memory as dma-bufs",
                {}};
    }
    if (of_device) {
        return device.has(Feature::host_dma_buf)
                   ? no("this driver exports no device memory as dma-bufs (attribute 124)",
                        "ask for memory that CPUs see (ExportableOptions::seen_by): it is exported here")
                   : no("this driver exports no device memory as dma-bufs (attribute 124)",
                        "let the other driver write into host memory (V4L2: USERPTR), or adopt its dma-buf");
    }
    return device.has(Feature::dma_buf)
               ? no("this driver exports no pinned host memory as dma-bufs (attribute 146)",
                    "ask for device memory (SeenBy::gpus_only): it is exported here")
               : no("this driver exports no pinned host memory as dma-bufs (attribute 146)",
                    "let the other driver write into host memory (V4L2: USERPTR), or adopt its dma-buf");
}

}  // namespace isthmus::rules
