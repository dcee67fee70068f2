// SPDX-License-Identifier: Apache-2.0
// KeptBlocks: memory of small objects that come and go, kept for the next one.
#pragma once

#include "brief_mutex.hpp"
#include "process.hpp"
#include "seal_book.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Blocks of one size and alignment. Thread-safe. The owner closes it; it lives until the last block comes back, because
// an object may hold its owner until then. In a forked child no lock is taken, because another thread of the parent may
// have held it: blocks come from the heap and go back there. The idle ones stay as they are, and nobody asks for them.
class KeptBlocks {
public:
    static constexpr std::size_t most = 256;

    // `idle`: blocks that are kept at most; further ones go back to the heap.
    explicit KeptBlocks(std::size_t idle = most, std::size_t alignment = alignof(std::max_align_t)) noexcept
        : most_(idle), alignment_(std::align_val_t{alignment}) {}
    KeptBlocks(const KeptBlocks&) = delete;
    KeptBlocks& operator=(const KeptBlocks&) = delete;

    bool any_idle() const noexcept {
        const std::lock_guard lock(mutex_);
        return idle_ != nullptr;
    }
    // Always of the same size, of at least a pointer's. `fresh`: set if there was no idle one.
    void* take(std::size_t bytes, bool* fresh = nullptr) {
        if (generation_ != process::generation()) return ::operator new(bytes, alignment_);
        {
            const std::lock_guard lock(mutex_);
            ++lent_;
            if (void* const idle = take_idle()) return idle;
        }
        note_heap("operator new");
        if (fresh != nullptr) *fresh = true;
        return ::operator new(bytes, alignment_);
    }
    // A block for an object that several threads may be about to make: what there() finds, or what make(memory) made
    // and published. One of the threads takes a block, and the others none. make() answers nullptr where another thread
    // has published one that is not of these blocks. Both are called with the lock, and take no other one.
    template <class There, class Make>
    auto make_once(std::size_t bytes, There there, Make make) -> decltype(there()) {
        if (generation_ != process::generation()) {  // a forked child has one thread
            auto* const made = there();
            return made != nullptr ? made : make(::operator new(bytes, alignment_));
        }
        void* fresh = nullptr;
        while (true) {
            {
                const std::lock_guard lock(mutex_);
                if (auto* const made = there()) {
                    if (fresh != nullptr) keep(fresh);
                    return made;
                }
                void* const block = fresh != nullptr ? std::exchange(fresh, nullptr) : take_idle();
                if (block != nullptr) {
                    ++lent_;
                    if (auto* const made = make(block)) return made;
                    --lent_;
                    keep(block);
                    return there();
                }
            }
            note_heap("operator new");
            fresh = ::operator new(bytes, alignment_);
        }
    }
    // Keeps as many idle ones as another sort has blocks, lent or idle, beyond those that are lent here: each of these
    // may then take one without the heap. So many are kept from then on. Who makes a further block of the other sort
    // calls it again, where keeps_for_each() says that it was called.
    void keep_for_each_of(const KeptBlocks& others, std::size_t bytes) {
        if (generation_ != process::generation()) return;
        {
            const std::lock_guard lock(mutex_);
            for_each_ = true;  // before the others are counted
        }
        std::size_t all = 0;
        {
            const std::lock_guard lock(others.mutex_);
            all = others.lent_ + others.idle_count_;
        }
        while (true) {
            {
                const std::lock_guard lock(mutex_);
                most_ = std::max(most_, all);
                if (lent_ + idle_count_ >= all) return;
            }
            void* const block = ::operator new(bytes, alignment_);
            const std::lock_guard lock(mutex_);
            keep(block);
        }
    }
    bool keeps_for_each() const noexcept {
        const std::lock_guard lock(mutex_);
        return for_each_;
    }
    void give_back(void* block) noexcept {
        if (generation_ != process::generation()) return ::operator delete(block, alignment_);
        bool last = false;
        {
            const std::lock_guard lock(mutex_);
            last = --lent_ == 0 && closed_;
            if (!closed_ && idle_count_ < most_) return keep(block);
        }
        ::operator delete(block, alignment_);
        if (last) delete this;
    }
    void close() noexcept {
        if (generation_ != process::generation()) return;
        bool last = false;
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
            last = lent_ == 0;
            while (idle_ != nullptr) ::operator delete(std::exchange(idle_, idle_->next), alignment_);
        }
        if (last) delete this;
    }
    struct Close {
        void operator()(KeptBlocks* blocks) const noexcept { blocks->close(); }
    };

private:
    struct Idle {
        Idle* next;
    };
    ~KeptBlocks() = default;

    // Expect the lock.
    void* take_idle() noexcept {
        Idle* const idle = idle_;
        if (idle == nullptr) return nullptr;
        idle_ = idle->next;
        --idle_count_;
        return idle;
    }
    void keep(void* block) noexcept {
        idle_ = ::new (block) Idle{idle_};
        ++idle_count_;
    }

    const std::uint64_t generation_ = process::generation();
    std::size_t most_;
    const std::align_val_t alignment_;
    mutable BriefMutex mutex_;
    Idle* idle_ = nullptr;
    std::size_t idle_count_ = 0;
    std::size_t lent_ = 0;
    bool for_each_ = false;
    bool closed_ = false;
};
using OwnedBlocks = std::unique_ptr<KeptBlocks, KeptBlocks::Close>;

// For std::allocate_shared().
template <class T>
struct KeptAllocator {
    using value_type = T;
    explicit KeptAllocator(KeptBlocks& kept) noexcept : blocks(&kept) {}
    template <class U>
    KeptAllocator(const KeptAllocator<U>& other) noexcept : blocks(other.blocks) {}
    T* allocate(std::size_t count) { return static_cast<T*>(blocks->take(count * sizeof(T))); }
    void deallocate(T* block, std::size_t) noexcept { blocks->give_back(block); }
    friend bool operator==(const KeptAllocator&, const KeptAllocator&) noexcept = default;
    KeptBlocks* blocks;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
