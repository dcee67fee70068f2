// SPDX-License-Identifier: Apache-2.0
// After a fault in a kernel: what may have caused it, in words. Pure; device_state.cpp gathers the facts.
#pragma once

#include "device_session.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace isthmus {
inline namespace v0 {
namespace detail {

// What a sticky code of the driver can come from. `memory`: an address that the device may not use; `kernel`: a kernel,
// but no such address; `nobody`: no kernel (a context that other code destroyed, a failed link).
enum class Blame : std::uint8_t { nobody, kernel, memory };
constexpr Blame blame_of(int driver_code) noexcept {
    switch (driver_code) {
        case 700:                        // ILLEGAL_ADDRESS
        case 717:                        // INVALID_ADDRESS_SPACE
        case 719: return Blame::memory;  // LAUNCH_FAILED: "dereferencing an invalid device pointer" and others
        case 702:                        // LAUNCH_TIMEOUT
        case 710:                        // ASSERT
        case 714:                        // HARDWARE_STACK_ERROR
        case 715:                        // ILLEGAL_INSTRUCTION
        case 716:                        // MISALIGNED_ADDRESS
        case 718: return Blame::kernel;  // INVALID_PC
        default: return Blame::nobody;
    }
}

// So many are named: the text is one line of a log, and an error has room for it without the heap.
inline constexpr std::size_t most_buffers_named = 2;
inline constexpr std::size_t most_work_named = 4;

// Work that the device got and is not known to have ended. `name`: the kernel's, or what the operation is; nullptr: too
// long ago.
struct WorkInFlight {
    const char* name = nullptr;
    std::uint64_t position = 0;
    std::uint64_t stream = 0;
};
// A buffer that such work uses and that the device may not access, or for which that is not known.
struct SuspectBuffer {
    WorkInFlight last_use;  // by this device
    std::uint64_t bytes = 0;
    Words memory;             // "device memory of H200 (device 1)"
    std::string_view reason;  // of the access rules
};
struct FaultFacts {
    std::span<const SuspectBuffer> buffers;
    std::uint64_t more_buffers = 0;      // not among them
    std::span<const WorkInFlight> work;  // the newest of each stream first
    std::uint64_t more_work = 0;         // not among them
    bool all_asked = true;               // false: a buffer or a list was locked, and was left out
};

// Appended to the driver's sentence: "; it may have been caused by a buffer of 4096 bytes, device memory of H200
// (device 1), used by 'scale' (operation 17 of stream 3): peer access to the owner is not enabled; …". Empty where
// nothing is known.
Suspects fault_suspects(Blame blame, const FaultFacts& facts);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
