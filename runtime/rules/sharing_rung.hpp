// declared use × what both ends can do → the rung by which memory is shared between processes, and why. Pure.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/sharing_rung.hpp>
#include <isthmus/sharing_use.hpp>

#include <string_view>

namespace isthmus::rules {

// What one end can do. Every answer is its own; a CPU device has none of them.
struct SharingEnd {
    bool gpu = false;         // its device is a GPU
    bool posix_fd = false;    // exports and imports physical memory as a file descriptor (attributes 102 and 103)
    bool fabric = false;      // a fabric handle went there and back: the attribute alone promises nothing
    bool legacy_ipc = false;  // has cuIpcMemHandle: unified addressing, and memory of its own (Orin's driver refuses)
    friend constexpr bool operator==(const SharingEnd&, const SharingEnd&) noexcept = default;
};
SharingEnd sharing_end(const Capabilities& device);

struct RungAnswer {
    SharingRung rung = SharingRung::none;
    std::string_view reason;  // one sentence; static storage
    std::string_view remedy;  // of a refusal: what works instead
};
// same_machine: both processes run under one kernel.
RungAnswer choose_rung(SeenBy seen, const SharingEnd& exporter, const SharingEnd& importer, bool same_machine);

// How a device uses shared memory of the host, as one sentence; static storage. `host_kind`: of what is copied.
std::string_view host_rung_reason(bool is_cpu, MemoryKind kind, LaunchPath path, MemoryKind host_kind) noexcept;

}  // namespace isthmus::rules
