// SharingRung: how the same memory comes to two processes.
#pragma once

#include <isthmus/export.hpp>

#include <cstdint>
#include <string_view>

namespace isthmus::inline v0 {

// From the one that asks least of a machine to the one that asks most of those who use it.
enum class SharingRung : std::uint8_t {
    none,         // refused
    host_memory,  // a sealed file of shared memory, which each side registers with its device
    posix_fd,     // device memory as a file descriptor: one machine
    fabric,       // device memory by a fabric handle: across machines of one fabric
    legacy_ipc,   // cuIpcMemHandle: the exporter has to outlive every importer
};
inline constexpr int sharing_rung_count = 5;
ISTHMUS_API std::string_view name(SharingRung rung) noexcept;

// Who touches what is shared, on any end.
enum class SeenBy : std::uint8_t {
    cpus_and_gpus,  // a CPU writes or reads it, a GPU may
    gpus_only,      // no CPU ever touches it
};
ISTHMUS_API std::string_view name(SeenBy seen) noexcept;

}  // namespace isthmus::inline v0
