// EventPool: driver events between two uses, by kind.
#pragma once

#include <platform/driver.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus::inline v0::detail {

// A driver event, shared by all who lean on its latest record: the fences of a stream, users' events, waits.
// Whoever is alone with it may record it anew.
struct FenceEvent {
    platform::EventHandle handle = platform::EventHandle::none;
    platform::EventKind kind = platform::EventKind::plain;
    std::atomic<int> references{0};

    void keep() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
    // Pairs with the release in EventPool::drop(): what others did with it is over.
    bool shared() const noexcept { return references.load(std::memory_order_acquire) > 1; }
};

// Thread-safe. An event may be used again while what was recorded behind it still runs: streams that were made to wait
// took the record that was current then, and a new record leaves them alone. Its first use is always a record, so that
// what it stood for before (pending work, a capture) is never asked. Interprocess events are not used again: another
// process may still look at one.
class EventPool {
public:
    static constexpr std::size_t most_idle = 256;  // of each kind; more are destroyed when they come back

    // One reference for the caller.
    platform::Status take(platform::Execution& driver, platform::EventKind kind, FenceEvent*& out);
    // … of an interprocess event that was opened; it is destroyed with the last one.
    FenceEvent* adopt(platform::EventHandle opened);
    void drop(platform::Execution& driver, FenceEvent* event) noexcept;
    // Destroys every driver event, idle or not. Nothing else is called afterwards.
    void close(platform::Execution& driver) noexcept;

    std::size_t idle() const;

private:
    FenceEvent* reuse(platform::EventKind kind);
    FenceEvent* shell();

    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<FenceEvent>> all_;  // as many as were ever in use at once
    std::array<std::vector<FenceEvent*>, 2> idle_;  // plain, timing
    std::vector<FenceEvent*> shells_;               // whose driver event is destroyed
};

}  // namespace isthmus::inline v0::detail
