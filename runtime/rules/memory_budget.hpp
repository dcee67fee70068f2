// SPDX-License-Identifier: Apache-2.0
// current memory figures × capabilities × kind × bytes → whether an allocation is harmless. Pure.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace isthmus::rules {

// Figures that the system and the driver report now, in bytes; a total of 0: not reported.
struct MemoryNow {
    std::uint64_t host_total = 0;      // platform::os::HostMemory
    std::uint64_t host_available = 0;  // the smaller of MemAvailable and the cgroup's remainder
    bool cgroup_decides = false;       // host_available is the cgroup's remainder
    std::uint64_t device_total = 0;    // cuMemGetInfo
    std::uint64_t device_free = 0;
};

struct BudgetOptions {
    // Host memory to keep free: the larger of both values. Without free memory the system swaps, stalls or kills
    // processes. Not set: default_reserve_bytes() of the total.
    std::optional<std::uint64_t> reserve_bytes;
    std::uint32_t reserve_permille = 20;  // of the host's total
    // Managed memory may exceed the device's free memory where the driver moves its pages on demand.
    bool allow_oversubscription = false;
};

// 64 MiB, or an eighth of the total where that is less, as in a small container.
std::uint64_t default_reserve_bytes(std::uint64_t host_total_bytes) noexcept;

enum class BudgetVerdict : std::uint8_t {
    fits,
    refused,
    uncounted,  // no memory is taken (imported memory), or no figure is known: the allocation itself decides
};
// The figure that decided.
enum class BudgetSource : std::uint8_t { none, host, cgroup, device, device_and_host };
std::string_view name(BudgetVerdict verdict) noexcept;
std::string_view name(BudgetSource source) noexcept;

struct BudgetAnswer {
    BudgetVerdict verdict = BudgetVerdict::uncounted;
    BudgetSource source = BudgetSource::none;
    std::uint64_t requested_bytes = 0;
    std::uint64_t free_bytes = 0;     // as reported by `source`
    std::uint64_t reserve_bytes = 0;  // the part of it to keep free
    std::string_view reason;          // static storage, as is remedy
    std::string_view remedy;          // empty unless refused
    explicit operator bool() const noexcept { return verdict != BudgetVerdict::refused; }
};

// On shared DRAM every kind counts against the host's available memory, once. Elsewhere device kinds count against the
// device's free memory, host kinds against the host's, and managed memory against the device's unless oversubscription
// is allowed.
BudgetAnswer memory_budget(const Capabilities& device, const MemoryNow& now, MemoryKind kind, std::uint64_t bytes,
                           const BudgetOptions& options = {});

}  // namespace isthmus::rules
