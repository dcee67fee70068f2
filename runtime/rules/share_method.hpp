// SPDX-License-Identifier: Apache-2.0
// declared use × capabilities of both ends → the method by which two processes share memory, and why. Pure.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/share_method.hpp>
#include <isthmus/sharing_use.hpp>

#include <string_view>

namespace isthmus::rules {

// Capabilities of one end. Each is independent of the others; a CPU device has none of them.
struct SharingEnd {
    bool gpu = false;         // its device is a GPU
    bool posix_fd = false;    // exports and imports physical memory as a file descriptor (attributes 102 and 103)
    bool fabric = false;      // a fabric handle was exported and imported successfully: the attribute alone guarantees
                              // nothing
    bool legacy_ipc = false;  // supports cuIpcMemHandle: unified addressing, and memory of its own (Orin's driver
                              // refuses)
    friend constexpr bool operator==(const SharingEnd&, const SharingEnd&) noexcept = default;
};
SharingEnd sharing_end(const Capabilities& device);

struct ShareMethodAnswer {
    ShareMethod method = ShareMethod::none;
    std::string_view reason;  // one sentence; static storage
    std::string_view remedy;  // for a refusal: what works instead
};
// same_machine: both processes run under one kernel.
ShareMethodAnswer choose_share_method(SeenBy seen, const SharingEnd& exporter, const SharingEnd& importer,
                                      bool same_machine);

// How a device uses shared host memory, as one sentence; static storage. `host_kind`: kind of the memory that is
// copied.
std::string_view host_method_reason(bool is_cpu, MemoryKind kind, LaunchPath path, MemoryKind host_kind) noexcept;

}  // namespace isthmus::rules
