// SPDX-License-Identifier: Apache-2.0
// EventPool: idle driver events for reuse, by kind.
#pragma once

#include <platform/driver.hpp>

#include "process.hpp"
#include "sealed_step.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceSession;

// A driver event, shared by everything that depends on its last record: fences of a stream, users' events, waits. The
// holder of the only reference may record it again.
struct FenceEvent {
    FenceEvent() noexcept = default;
    ~FenceEvent() { free_block(); }
    FenceEvent(const FenceEvent&) = delete;
    FenceEvent& operator=(const FenceEvent&) = delete;

    platform::EventHandle handle = platform::EventHandle::none;
    platform::EventKind kind = platform::EventKind::plain;
    std::atomic<int> references{0};
    // Memory of the user's event that was made with this one (EventAllocator). It stays here while the driver event is
    // idle, so that one lock of the pool gives both.
    void* block = nullptr;
    // Set while that memory is given back: whose pool this is, and what keeps that until then.
    DeviceSession* owner = nullptr;
    std::shared_ptr<void> keeps_owner;

    void free_block() noexcept { ::operator delete(std::exchange(block, nullptr)); }
    void keep() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
    // Pairs with the release in EventPool::drop(): other holders' uses are over.
    bool shared() const noexcept { return references.load(std::memory_order_acquire) > 1; }
};

// Thread-safe. An event may be reused while the work before its record still runs: streams that were made to wait use
// the record that was current then, and a new record does not affect them. The first use is always a record, so the
// previous record (pending work, a capture) is never queried. Interprocess events are not reused: another process may
// still query one.
class EventPool {
public:
    // Of each kind, beside one for each place; further events are destroyed when they are returned.
    static constexpr std::size_t max_idle = 256;

    // One reference, owned by the caller. `seal`: the sealed scope of the call, which may refuse a further event.
    platform::Status take(platform::Execution& driver, platform::EventKind kind, SealBook* seal, FenceEvent*& out) {
        if (kind == platform::EventKind::plain) {
            if (FenceEvent* const event = own_place().take()) return out = only_of(event), platform::Status();
        }
        return take_from_all(driver, kind, seal, out);
    }
    // The same for an opened interprocess event; it is destroyed with the last reference.
    FenceEvent* adopt(platform::EventHandle opened);
    void drop(platform::Execution& driver, FenceEvent* event) noexcept {
        // Only a holder adds references: the only one needs no exchange. Acquire: as in shared().
        if (event->references.load(std::memory_order_acquire) != 1 &&
            event->references.fetch_sub(1, std::memory_order_acq_rel) != 1) {
            return;
        }
        if (event->kind == platform::EventKind::plain && own_place().put(event)) return;
        give_to_all(driver, event);
    }
    // Destroys every driver event, idle or not. The last call on the pool.
    void close(platform::Execution& driver) noexcept;

    std::size_t idle() const;

private:
    // One idle event without timing for the threads of a number: taken and put back by one exchange, without the lock.
    // Any thread may take it. Release: what the last holder wrote is seen by the next one.
    struct alignas(64) Place {
        std::atomic<FenceEvent*> idle{nullptr};
        FenceEvent* take() noexcept {
            if (idle.load(std::memory_order_relaxed) == nullptr) return nullptr;
            return idle.exchange(nullptr, std::memory_order_acquire);
        }
        bool put(FenceEvent* event) noexcept {
            FenceEvent* none = nullptr;
            return idle.load(std::memory_order_relaxed) == nullptr &&
                   idle.compare_exchange_strong(none, event, std::memory_order_release, std::memory_order_relaxed);
        }
    };
    static constexpr std::size_t place_count = 16;
    Place& own_place() noexcept { return places_[process::thread_number() % place_count]; }
    static FenceEvent* only_of(FenceEvent* event) noexcept {
        event->references.store(1, std::memory_order_relaxed);
        return event;
    }

    // take() and drop() where the place of the thread does not serve.
    platform::Status take_from_all(platform::Execution& driver, platform::EventKind kind, SealBook* seal,
                                   FenceEvent*& out);
    void give_to_all(platform::Execution& driver, FenceEvent* event) noexcept;
    FenceEvent* reuse(platform::EventKind kind);
    FenceEvent* shell();

    std::array<Place, place_count> places_;
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<FenceEvent>> all_;  // as many as were ever in use at the same time
    std::array<std::vector<FenceEvent*>, 2> idle_;  // plain, timing
    std::vector<FenceEvent*> shells_;               // without a driver event: it was destroyed
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
