// SPDX-License-Identifier: Apache-2.0
// capabilities × foreign memory × declared use → how a device uses memory that was not allocated for it. Pure.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstddef>
#include <string_view>

namespace isthmus::rules {

// Facts about the memory, as the driver and the system report them.
struct ForeignMemory {
    MemoryKind kind = MemoryKind::unknown;  // as the driver reports it; unknown: ordinary host memory
    bool own_device = true;                 // device memory: it belongs to this device
    bool readable = true;                   // by the CPU; ordinary and page-locked memory only
    bool writable = true;
    bool constant = false;        // its owner forbids what the mapping may allow: no side writes it
    bool driver_mapping = false;  // VM_IO or VM_PFNMAP: there are no pages to pin or to fault in
    bool dma_buf = false;         // the mapping of one: an access by the CPU needs the kernel's cache operations
    bool io_memory = false;       // a driver mapping that other code registered with the driver as device memory
                                  // (IOMEMORY)
};

struct AdoptedAs {
    MemoryKind kind = MemoryKind::host;  // the memory that the device uses
    LaunchPath path = LaunchPath::pass;  // stage: `kind` is device memory
    std::string_view reason;             // one sentence, static storage
    bool io_memory = false;              // device memory: its loads, stores and atomics are not reliable
};

struct AdoptionPlan {
    bool imports = false;    // a dma-buf: first try to import it; on success `imported` applies
    bool registers = false;  // try to register the memory: on success `registered` applies, otherwise `otherwise`
    bool read_only = false;  // register it for reading only
    bool insists = false;    // the caller asked for registered memory: a failure is an error
    AdoptedAs imported;
    AdoptedAs registered;
    AdoptedAs otherwise;
};

// Refuses (Code::not_accessible, unsupported, wrong_device) a declared use that this memory cannot serve.
Result<AdoptionPlan> plan_adoption(const Capabilities& device, const ForeignMemory& memory, const SharedUse& use,
                                   std::size_t bytes);

}  // namespace isthmus::rules
