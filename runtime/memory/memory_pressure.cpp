// SPDX-License-Identifier: Apache-2.0
// The retries after a shortage of memory, and the memory budget.
#include "memory_pressure.hpp"

#include <platform/os.hpp>

#include "device_state.hpp"
#include "exhausted_memory.hpp"
#include "memory_budget.hpp"
#include "memory_errors.hpp"
#include "piece_release.hpp"
#include "stream_state.hpp"
#include "timed_lock.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Waits for the work that stream-ordered frees are behind. A stream that does not finish in time is skipped: the next
// attempt's result decides.
void wait_for_pending_frees(DeviceState& device) {
    for (const std::shared_ptr<StreamState>& stream : device.live_streams()) {
        (void)stream->wait_until(stream->issued, Wait{});
    }
}

// `asked`: the driver's status, if the driver was asked.
rules::MemoryNow memory_now(DeviceState& device, bool ask_driver, platform::Status& asked) {
    rules::MemoryNow now;
    const platform::os::HostMemory host = platform::os::host_memory();
    now.host_total = host.total_bytes;
    now.host_available = host.available_bytes;
    now.cgroup_decides = host.cgroup_decides;
    if (ask_driver) asked = device.driver->memory().memory_info(now.device_free, now.device_total);
    return now;
}

Error out_of_memory(DeviceState& device, MemoryKind kind, std::size_t bytes, const Error& last) {
    const bool of_host = rules::takes_host_memory(kind, device.capabilities.memory);
    const DevicePools::Amounts amounts = device.usable() ? device.pools.amounts(device) : DevicePools::Amounts{};
    platform::Status asked;  // if not asked, the driver's code is 0
    const rules::MemoryNow now = memory_now(device, !of_host && device.usable(), asked);
    const std::uint64_t put_off =
        device.put_off_bytes.load(std::memory_order_relaxed) + device.unreturned.bytes() + device.dropped.bytes();
    // A refusal by the budget makes no driver call and carries its own remedy.
    const bool advised = last.call().empty() && !last.remedy().empty();
    const std::string_view remedy = advised ? last.remedy() : "release memory, ask for less";
    return make_error<errors::memory_exhausted>(bytes, name(kind), of_host ? now.host_available : now.device_free,
                                                amounts.cached_bytes + device.cache.usage().bytes,
                                                amounts.pending_bytes + put_off, last.message(), remedy)
        .from_call(last.call(), last.driver_code());
}

constinit thread_local bool gives_back [[gnu::tls_model("initial-exec")]] = false;

// Answers how many bytes went. A free would wait for a running service.
std::uint64_t give_back_of(DeviceState& device) {
    if (!device.usable() || device.services.any()) return 0;
    // What another thread has taken out is about to be room: without a wait, this one would find nothing and be
    // refused. Users' code that comes here again waits for nobody, and nobody for longer than for work.
    std::unique_lock<std::mutex> lock(device.giving_back, std::defer_lock);
    if (!gives_back && !lock.try_lock()) {
        Wait wait;
        lock = lock_within(device.giving_back, wait, device.config->wait_timeout, device.config->wait_policy);
    }
    const bool again = std::exchange(gives_back, true);
    std::uint64_t bytes = end_all_dropped_buffers(device, Wait{});  // some may go straight to the driver
    bytes += trim_cache(device, 0);
    gives_back = again;
    return bytes;
}

}  // namespace

bool give_back_kept(DeviceState& device, std::uint64_t before) {
    std::uint64_t bytes = give_back_of(device);
    for (std::size_t index = 0; index < device.books->launches.devices.size(); ++index) {
        const std::shared_ptr<DeviceState> other = device.books->launches.devices.at(index);
        if (other && other.get() != &device) bytes += give_back_of(*other);
    }
    return bytes > 0 || freed_by_others() != before;
}

Result<void> within_budget(DeviceState& device, MemoryKind kind, std::size_t bytes, std::size_t asked_bytes) {
    const bool shared = device.capabilities.memory == MemoryModel::shared_dram;
    const bool managed = kind == MemoryKind::managed || kind == MemoryKind::managed_pool;
    if (device.synchronous || (!shared && !managed)) return {};
    // A query costs more than many allocations: after one, a sixteenth of the free memory is granted without asking.
    std::atomic<std::uint64_t>& credit = device.budget_credit_bytes;
    std::uint64_t left = credit.load(std::memory_order_relaxed);
    while (shared && bytes <= left) {
        if (credit.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return {};
    }
    platform::Status asked;
    const rules::MemoryNow now = memory_now(device, !shared, asked);
    if (!asked.ok()) return device.failure(asked, "asking how much memory the device has free");
    const rules::BudgetAnswer answer =
        rules::memory_budget(device.capabilities, now, kind, bytes, device.config->budget);
    if (!answer) {
        LaunchBooks::count(device.books->launches.budget_refusals);
        device.observer().mark(Mark::budget_refused, name(kind), [&] {
            ObservedFacts facts = device.observed();
            facts.bytes = bytes;
            facts.kind = kind;
            facts.reason = answer.reason;
            return facts;
        });
        const std::size_t named_bytes = asked_bytes != 0 ? asked_bytes : bytes;
        return make_error<errors::memory_kept_back>(named_bytes, name(kind), answer.free_bytes, answer.reserve_bytes,
                                                    answer.reason, answer.remedy);
    }
    if (shared && answer.verdict == rules::BudgetVerdict::fits) {
        const std::uint64_t free_bytes = answer.free_bytes - std::min(answer.free_bytes, answer.reserve_bytes);
        credit.store((free_bytes - bytes) / 16, std::memory_order_relaxed);
    }
    return {};
}

Result<void> make_room(DeviceState& device, MemoryKind kind, std::size_t bytes, Result<void> made, std::uint64_t before,
                       const Attempt& attempt) {
    const auto short_of_memory = [&] { return made.code() == Code::out_of_memory; };
    if (device.books->captures.here()) return made;  // any further call could end the capture
    if (give_back_kept(device, before)) made = attempt();
    if (!short_of_memory()) return made;
    // While a service runs, freeing slabs and pieces would wait for it: only the pools and the user's handler make
    // room.
    std::optional<CallInFlight> freeing = device.services.enter(rules::DriverUse::free_pinned);
    if (!freeing) {
        const bool may_trim = device.services.allow(rules::DriverUse::trim_pool, "making room").ok();
        if (short_of_memory() && may_trim && device.usable() && device.pools.trim(device)) made = attempt();
        while (short_of_memory() && device.make_room(bytes)) made = attempt();
        return short_of_memory() ? out_of_memory(device, kind, bytes, made.error()) : made;
    }
    const bool slabs = device.slabs.trim() > 0;
    const bool pieces = device.copies.bounce.trim(device);  // pinned bounce buffers for copies of pageable memory
    freeing->leave();
    if (slabs || pieces) made = attempt();
    if (short_of_memory() && device.usable() && device.pools.trim(device)) {
        made = attempt();
        if (short_of_memory() && device.pools.amounts(device).pending_bytes > 0) {
            wait_for_pending_frees(device);
            (void)device.pools.trim(device);
            made = attempt();
        }
    }
    while (short_of_memory() && device.make_room(bytes)) made = attempt();
    if (!short_of_memory()) return made;
    return out_of_memory(device, kind, bytes, made.error());
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
