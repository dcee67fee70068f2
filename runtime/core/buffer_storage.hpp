// SPDX-License-Identifier: Apache-2.0
// BufferStorage: what memory a buffer is. Made once, read-only afterwards.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/memory_kind.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus::platform::os {
class DmaBuf;
}

namespace isthmus {
inline namespace v0 {
namespace detail {

struct PoolState;

using Seams = std::vector<std::size_t>;  // the bytes where the handles of mapped memory meet, ascending

// What the maker of a buffer fills in. The order keeps what a launch, a claim and a view read in two cache lines of
// BufferState: the members before `lead_bytes` in the first, those after `dma_buf` in the third.
struct StorageFacts {
    std::uint64_t device_address = 0;
    std::size_t bytes = 0;

    std::size_t lead_bytes = 0;             // the driver's allocation begins so many bytes before it (alignment)
    std::string_view reason;                // why the memory is of this kind; static storage
    std::shared_ptr<const PoolState> pool;  // the pool of the memory, if any: it records which devices have access (A5)
    std::unique_ptr<Seams> seams;           // of mapped host memory; nullptr: none
    void* relay = nullptr;  // pinned memory that copies use in place of `host`; nullptr: they use `host`
    // Of a dma-buf: the cache operations around each use by the CPU. Part of the adopted memory, which ends behind the
    // last view.
    const platform::os::DmaBuf* dma_buf = nullptr;

    alignas(16) std::uint64_t recorded_in = 0;  // memory of a graph: the recording that allocated it
    void* host = nullptr;                       // nullptr: the CPU may not view it
    MemoryKind kind = MemoryKind::unknown;
    MemoryKind host_kind = MemoryKind::unknown;
    LaunchPath path = LaunchPath::pass;
    bool in_several = false;       // parts of it lie on other devices: kernel access is checked each time
    bool adopted = false;          // other code owns the memory (Device::adopt)
    bool registered_here = false;  // this runtime registered it, and unregisters it
    bool read_only = false;        // it may not be written
    bool io_memory = false;        // of an I/O device: no atomics, and no concurrent use
    bool shared = false;           // between processes, by a descriptor (shared_memory.hpp)
    bool aliased = false;          // two of its addresses are the same memory: its parts cannot be used separately

    bool staged() const noexcept { return path == LaunchPath::stage; }
};

class BufferStorage {
public:
    BufferStorage() = default;
    explicit BufferStorage(StorageFacts facts) noexcept : facts_(std::move(facts)) {}
    BufferStorage(const BufferStorage&) = delete;
    BufferStorage& operator=(const BufferStorage&) = delete;

    const StorageFacts* operator->() const noexcept { return &facts_; }

    // The only change: a growable buffer grows or shrinks at its end, and exportable memory is zeroed up to its
    // granularity before it gets the requested size. Expects the buffer's lock, and no other user.
    void change_size(std::size_t bytes) noexcept { facts_.bytes = bytes; }
    // The places where its handles meet change with it. Expects the buffer's lock.
    void add_seam(std::size_t byte) {
        if (!facts_.seams) facts_.seams = std::make_unique<Seams>();
        facts_.seams->push_back(byte);
    }
    void drop_seams_from(std::size_t byte) noexcept {
        while (facts_.seams && !facts_.seams->empty() && facts_.seams->back() >= byte) facts_.seams->pop_back();
    }

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

    StorageFacts facts_;
    std::atomic<signed char> of_file_{-1};  // -1: not asked yet
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
