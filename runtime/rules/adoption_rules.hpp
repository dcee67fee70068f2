// capabilities × foreign memory × declared use → how a device uses memory that it was not allocated for. Pure.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstddef>
#include <string_view>

namespace isthmus::rules {

// What driver and system say of it.
struct ForeignMemory {
    MemoryKind kind = MemoryKind::unknown;  // as the driver knows it; unknown: ordinary memory of the host
    bool own_device = true;                 // device memory: it is this device's
    bool readable = true;                   // by the CPU; ordinary and page-locked memory only
    bool writable = true;
    bool driver_mapping = false;  // VM_IO or VM_PFNMAP: there are no pages to pin or to fault in
    bool io_memory = false;       // … and other code registered it with the driver, as memory of a device (IOMEMORY)
};

struct AdoptedAs {
    MemoryKind kind = MemoryKind::host;  // what the device is given
    LaunchPath path = LaunchPath::pass;  // stage: `kind` is device memory
    std::string_view reason;             // one sentence, static storage
    bool io_memory = false;              // of a device: nobody may rely on its loads and stores, nor on atomics
};

struct AdoptionPlan {
    bool registers = false;  // try to register it; then `registered` holds, else `otherwise`
    bool read_only = false;  // … for reading
    bool insists = false;    // the caller asked for registered memory: a failure is an error
    AdoptedAs registered;
    AdoptedAs otherwise;
};

// Refuses (Code::not_accessible, unsupported, wrong_device) what the declared use needs and this memory cannot give.
Result<AdoptionPlan> plan_adoption(const Capabilities& device, const ForeignMemory& memory, const SharedUse& use,
                                   std::size_t bytes);

}  // namespace isthmus::rules
