// numbers of memory now × capabilities × kind × bytes → whether it can be had without harm. Pure.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace isthmus::rules {

// What the system and the driver say now, in bytes; a total of 0: nothing is said.
struct MemoryNow {
    std::uint64_t host_total = 0;      // platform::os::HostMemory
    std::uint64_t host_available = 0;  // the smaller of MemAvailable and what the cgroup leaves
    bool cgroup_decides = false;       // host_available is what the cgroup leaves
    std::uint64_t device_total = 0;    // cuMemGetInfo
    std::uint64_t device_free = 0;
};

struct BudgetOptions {
    // Kept free of host memory: the larger of both. Where it is used up the system swaps, stalls or kills. Not given:
    // default_reserve_bytes() of the total.
    std::optional<std::uint64_t> reserve_bytes;
    std::uint32_t reserve_permille = 20;  // of the host's total
    // Managed memory may exceed the device's free memory, where the driver moves its pages on demand.
    bool allow_oversubscription = false;
};

// 64 MiB, or an eighth of the total where that is less, as in a small container.
std::uint64_t default_reserve_bytes(std::uint64_t host_total_bytes) noexcept;

enum class BudgetVerdict : std::uint8_t {
    fits,
    refused,
    uncounted,  // nothing is taken (imported memory), or nobody says how much there is: the allocation itself decides
};
// Which number decided.
enum class BudgetSource : std::uint8_t { none, host, cgroup, device, device_and_host };
std::string_view name(BudgetVerdict verdict) noexcept;
std::string_view name(BudgetSource source) noexcept;

struct BudgetAnswer {
    BudgetVerdict verdict = BudgetVerdict::uncounted;
    BudgetSource source = BudgetSource::none;
    std::uint64_t requested_bytes = 0;
    std::uint64_t free_bytes = 0;     // as stated by `source`
    std::uint64_t reserve_bytes = 0;  // of it, kept free
    std::string_view reason;          // static storage, as remedy
    std::string_view remedy;          // empty unless refused
    explicit operator bool() const noexcept { return verdict != BudgetVerdict::refused; }
};

// On shared DRAM every kind is counted against the host's available memory, once. Elsewhere device kinds are counted
// against the device's free memory, host kinds against the host's, managed memory against the device's unless asked
// for.
BudgetAnswer memory_budget(const Capabilities& device, const MemoryNow& now, MemoryKind kind, std::uint64_t bytes,
                           const BudgetOptions& options = {});

}  // namespace isthmus::rules
