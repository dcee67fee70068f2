// SPDX-License-Identifier: Apache-2.0
// BufferStorage: what memory a buffer is. Made once, read-only afterwards.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/memory_kind.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

// What the maker of a buffer fills in; what few buffers have is in BufferExtras. A launch over device memory reads it
// beside FirstUse, in one cache line.
struct StorageFacts {
    std::uint64_t device_address = 0;
    std::size_t bytes = 0;
    void* host = nullptr;  // nullptr: the CPU may not view it
    MemoryKind kind = MemoryKind::unknown;
    MemoryKind host_kind = MemoryKind::unknown;
    LaunchPath path = LaunchPath::pass;
    bool in_several : 1 = false;       // parts of it lie on other devices: kernel access is checked each time
    bool adopted : 1 = false;          // other code owns the memory (Device::adopt)
    bool registered_here : 1 = false;  // this runtime registered it, and unregisters it
    bool read_only : 1 = false;        // it may not be written
    bool io_memory : 1 = false;        // of an I/O device: no atomics, and no concurrent use
    bool shared : 1 = false;           // between processes, by a descriptor (shared_memory.hpp)
    bool aliased : 1 = false;          // two of its addresses are the same memory: its parts cannot be used separately
    bool of_graph : 1 = false;         // a recording allocated it: BufferExtras::recorded_in
    std::uint16_t reason = 0;          // why the memory is of this kind: its number in DeviceState::reasons

    bool staged() const noexcept { return path == LaunchPath::stage; }
};

class BufferStorage : StorageFacts {  // a base, so that what follows lies behind its last byte
public:
    BufferStorage() = default;
    explicit BufferStorage(const StorageFacts& facts) noexcept : StorageFacts(facts) {}
    BufferStorage(const BufferStorage&) = delete;
    BufferStorage& operator=(const BufferStorage&) = delete;

    const StorageFacts* operator->() const noexcept { return this; }

    // The only change: a growable buffer grows or shrinks at its end, and exportable memory is zeroed up to its
    // granularity before it gets the requested size. Expects the buffer's lock, and no other user.
    void change_size(std::size_t size_bytes) noexcept { bytes = size_bytes; }

    // Whether it is memory of a file. A mapping does not change while a buffer lies in it: a thread calls ask() only if
    // it comes before the first answer.
    template <class Ask>
    bool of_file(Ask ask) {
        signed char known = of_file_.load(std::memory_order_relaxed);
        if (known < 0) {
            known = ask() ? 1 : 0;
            of_file_.store(known, std::memory_order_relaxed);
        }
        return known != 0;
    }

private:
    friend class NewBuffer;

    std::atomic<signed char> of_file_{-1};  // -1: not asked yet

public:
    // Something may use the memory that the runtime does not see, or its driver was told more about it than its
    // content: it goes back to the driver, and is not kept for the next allocation.
    std::atomic<bool> exposed{false};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
