// SPDX-License-Identifier: Apache-2.0
// ShareMethod: the method by which two processes share memory.
#pragma once

#include <isthmus/export.hpp>

#include <cstdint>
#include <string_view>

namespace isthmus {
inline namespace v0 {

// Ordered from the fewest requirements on the machine to the most requirements on its users.
enum class ShareMethod : std::uint8_t {
    none,         // refused
    host_memory,  // a sealed shared-memory file; each side registers it with its device
    posix_fd,     // device memory as a file descriptor, within one machine
    fabric,       // device memory as a fabric handle, across the machines of one fabric
    legacy_ipc,   // cuIpcMemHandle: the exporter has to outlive every importer
};
inline constexpr int share_method_count = 5;
ISTHMUS_API std::string_view name(ShareMethod method) noexcept;

// Which processors access the shared memory, in any process.
enum class SeenBy : std::uint8_t {
    cpus_and_gpus,  // a CPU reads or writes it; GPUs may
    gpus_only,      // no CPU ever accesses it
};
ISTHMUS_API std::string_view name(SeenBy seen) noexcept;

}  // namespace v0
}  // namespace isthmus
