// SPDX-License-Identifier: Apache-2.0
// FarBuffers: the buffers that some stream's device uses although it did not make them, or does not reach their kind of
// memory. After a fault they are asked whether that device may use them at all.
#pragma once

#include "process.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct Books;
struct BufferState;
class FarPlace;

// Thread-safe. Its mutex may be taken with a buffer's lock held; a visit only tries the locks of buffers. In a forked
// child all of it does nothing: another thread of the parent may have held the mutex.
class FarBuffers {
public:
    // At the first use by such a stream: launches that follow do not come here. Expects the buffer's lock.
    void add(BufferState& buffer, const std::shared_ptr<Books>& books);
    void remove(const FarPlace& leaving) noexcept;
    template <class Visit>
    void visit(Visit visit_one) const {
        if (generation_ != process::generation()) return;
        const std::lock_guard lock(mutex_);
        for (BufferState* const buffer : buffers_) visit_one(*buffer);
    }

private:
    const std::uint64_t generation_ = process::generation();
    mutable std::mutex mutex_;
    std::vector<BufferState*> buffers_;
};

// A buffer's place in the list of one runtime. The last member of the buffer: it leaves the list before anything else
// of it ends.
class FarPlace {
public:
    FarPlace() = default;
    FarPlace(const FarPlace&) = delete;
    FarPlace& operator=(const FarPlace&) = delete;
    ~FarPlace();
    bool any() const noexcept { return entry_ != nullptr; }

private:
    friend class FarBuffers;
    friend struct BufferState;
    struct Entry {
        std::shared_ptr<Books> books;
        std::size_t place = 0;  // guarded by the list's mutex
    };
    std::unique_ptr<Entry> entry_;  // nullptr: in no list
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
