// SPDX-License-Identifier: Apache-2.0
// Which figure decides for which kind of memory, and the text for each refusal.
#include "memory_budget.hpp"

#include <platform/capability_table.hpp>

#include <algorithm>

namespace isthmus::rules {
namespace {

using Text = std::string_view;

enum class Taken : std::uint8_t { nothing, from_host, from_device, from_device_first };

// The memory that an allocation of this kind takes on a device with memory of its own.
Taken taken_by(MemoryKind kind) {
    switch (kind) {
        case MemoryKind::host:
        case MemoryKind::pinned:
        case MemoryKind::registered:
        case MemoryKind::write_combined:
        case MemoryKind::host_numa: return Taken::from_host;
        case MemoryKind::device:
        case MemoryKind::pool:
        case MemoryKind::graph:
        case MemoryKind::vmm: return Taken::from_device;
        case MemoryKind::managed:
        case MemoryKind::managed_pool: return Taken::from_device_first;
        case MemoryKind::unknown:
        case MemoryKind::imported: break;
    }
    return Taken::nothing;  // already allocated by other code
}

struct Source {
    BudgetSource source = BudgetSource::none;
    std::uint64_t free_bytes = 0;
    std::uint64_t reserve_bytes = 0;
    bool known = false;
    Text enough;
    Text too_little;
    Text remedy;
};

Source host_source(const MemoryNow& now, const BudgetOptions& options, bool shared) {
    Source source;
    source.source = now.cgroup_decides ? BudgetSource::cgroup : BudgetSource::host;
    source.known = now.host_total > 0;
    source.free_bytes = now.host_available;
    // The division comes first, so that the product cannot overflow.
    const std::uint64_t share = now.host_total / 1000 * std::min<std::uint64_t>(options.reserve_permille, 1000);
    source.reserve_bytes = std::max(options.reserve_bytes.value_or(default_reserve_bytes(now.host_total)), share);
    source.enough = now.cgroup_decides ? Text("what the memory cgroup leaves suffices")
                                       : Text("the host's available memory suffices");
    if (now.cgroup_decides) {
        source.too_little = shared ? Text("CPU and GPU share one DRAM, of which the memory cgroup leaves less")
                                   : Text("the memory cgroup leaves less");
        source.remedy =
            "raise the limit (memory.max; docker: --memory), free memory, or lower the reserve "
            "(RuntimeOptions::host_reserve_bytes and host_reserve_permille; isthmus --host-reserve)";
    } else {
        source.too_little = shared ? Text("CPU and GPU share one DRAM, of which less is available (MemAvailable)")
                                   : Text("less host memory is available (MemAvailable)");
        source.remedy =
            "free memory of this or another program, or lower the reserve "
            "(RuntimeOptions::host_reserve_bytes and host_reserve_permille; isthmus --host-reserve)";
    }
    return source;
}

Source device_source(const MemoryNow& now) {
    Source source;
    source.source = BudgetSource::device;
    source.known = now.device_total > 0;
    source.free_bytes = std::min(now.device_free, now.device_total);
    source.enough = "the device's free memory suffices";
    source.too_little = "less memory of the device is free (cuMemGetInfo)";
    source.remedy = "release device memory, trim pools, or share host memory instead (allocate_shared)";
    return source;
}

// Pages move between device and host on demand, so the limit is the sum of both. The host keeps its reserve.
Source device_and_host_source(const Source& device, const Source& host) {
    Source source;
    source.source = BudgetSource::device_and_host;
    source.known = device.known && host.known;
    const std::uint64_t most = ~std::uint64_t{0};
    source.free_bytes = device.free_bytes > most - host.free_bytes ? most : device.free_bytes + host.free_bytes;
    source.reserve_bytes = std::min(host.reserve_bytes, host.free_bytes);
    source.enough = "managed memory beyond the device's was asked for, and device and host together suffice";
    source.too_little = "device and host together have less free memory";
    source.remedy = "release memory of the device or of the host";
    return source;
}

BudgetAnswer judged(const Source& source, std::uint64_t bytes) {
    BudgetAnswer answer;
    answer.requested_bytes = bytes;
    if (!source.known) {
        answer.reason = "the system does not say how much memory there is; the allocation itself decides";
        return answer;
    }
    answer.source = source.source;
    answer.free_bytes = source.free_bytes;
    answer.reserve_bytes = source.reserve_bytes;
    const std::uint64_t usable = source.free_bytes - std::min(source.reserve_bytes, source.free_bytes);
    const bool fits = bytes <= usable;
    answer.verdict = fits ? BudgetVerdict::fits : BudgetVerdict::refused;
    answer.reason = fits ? source.enough : source.too_little;
    if (!fits) answer.remedy = source.remedy;
    return answer;
}

BudgetAnswer judge_managed(const Capabilities& device, const MemoryNow& now, std::uint64_t bytes,
                           const BudgetOptions& options) {
    Source own = device_source(now);
    // Without concurrent access the device has no page faults that move pages (CUDA programming guide: such devices
    // cannot oversubscribe).
    const bool on_demand = device.has(Feature::concurrent_managed);
    own.too_little = on_demand ? Text("managed memory beyond the device's free memory is refused unless asked for")
                               : Text(
                                     "managed memory beyond the device's free memory cannot be had: this device moves "
                                     "no pages on demand");
    own.remedy = on_demand ? Text("release device memory, or allow oversubscription: pages then move back and forth")
                           : Text("release device memory, or use pinned memory");
    BudgetAnswer answer = judged(own, bytes);
    if (answer || !on_demand || !options.allow_oversubscription) return answer;
    return judged(device_and_host_source(own, host_source(now, options, false)), bytes);
}

}  // namespace

std::uint64_t default_reserve_bytes(std::uint64_t host_total_bytes) noexcept {
    return std::min(std::uint64_t{64} << 20, host_total_bytes / 8);
}

BudgetAnswer memory_budget(const Capabilities& device, const MemoryNow& now, MemoryKind kind, std::uint64_t bytes,
                           const BudgetOptions& options) {
    const Taken taken = taken_by(kind);
    if (taken == Taken::nothing) {
        BudgetAnswer answer;
        answer.requested_bytes = bytes;
        answer.reason = "other code allocated it: nothing more is taken";
        return answer;
    }
    // Where the driver's figure does not count, device and host memory are the same DRAM, which is counted once.
    const bool own_memory = platform::traits_of(device).memory_info_counts.value;
    const bool shared = device.memory == MemoryModel::shared_dram;
    if (!own_memory || taken == Taken::from_host) return judged(host_source(now, options, shared), bytes);
    if (taken == Taken::from_device) return judged(device_source(now), bytes);
    return judge_managed(device, now, bytes, options);
}

std::string_view name(BudgetVerdict verdict) noexcept {
    switch (verdict) {
        case BudgetVerdict::fits: return "fits";
        case BudgetVerdict::refused: return "refused";
        case BudgetVerdict::uncounted: return "uncounted";
    }
    return "unknown";
}

std::string_view name(BudgetSource source) noexcept {
    switch (source) {
        case BudgetSource::none: return "none";
        case BudgetSource::host: return "host";
        case BudgetSource::cgroup: return "cgroup";
        case BudgetSource::device: return "device";
        case BudgetSource::device_and_host: return "device_and_host";
    }
    return "unknown";
}

}  // namespace isthmus::rules
