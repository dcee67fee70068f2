// SPDX-License-Identifier: Apache-2.0
// SmallSlabs: the places of one device's small memory, cut out of larger pieces (slabs), so that it shares pages.
#pragma once

#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>

#include "brief_mutex.hpp"
#include "piece.hpp"
#include "small_rules.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// What places have in common that may lie in one slab.
struct SlabSort {
    MemoryKind kind = MemoryKind::unknown;
    HostPlacement placement;
    std::size_t place_bytes = 0;  // rules::small_place()
};

// Thread-safe; calls neither the driver nor the system, and allocates only for a new slab. A slab goes back as a whole,
// with its last place. A place that something may still use at its release is not cut again: the driver waits for such
// uses as it frees the slab.
class SmallSlabs {
public:
    SmallSlabs();
    SmallSlabs(const SmallSlabs&) = delete;
    SmallSlabs& operator=(const SmallSlabs&) = delete;
    // A slab whose places did not all come back is kept until the process ends.
    ~SmallSlabs();

    // A place becomes `piece`. false: no slab of this sort has one that is free.
    bool cut(const SlabSort& sort, Piece& piece);
    // How large a further slab should be.
    std::size_t next_bytes(const SlabSort& sort, std::size_t page_bytes) const;
    // Takes over a new slab, and cuts the first place out of it. Of memory of the system, `whole.block` says where it
    // is.
    void add(const SlabSort& sort, Piece whole, Piece& piece);
    // The place comes back. Yields the slab's own piece if that was its last one: the caller frees it.
    // piece.unused: nothing uses it, so that it may be cut again.
    Piece give_back(const Piece& piece);

    std::uint64_t slab_bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }  // of all slabs
    std::uint64_t idle_bytes() const noexcept { return idle_.load(std::memory_order_relaxed); }   // of these, not cut

private:
    struct Slab;
    struct Set;
    // Expect the lock.
    Set* find(const SlabSort& sort) const;
    void leave_with_room(Slab& slab);
    void take_place(Slab& slab, Piece& piece);

    mutable BriefMutex mutex_;
    std::vector<std::unique_ptr<Set>> sets_;
    std::atomic<std::uint64_t> bytes_{0};
    std::atomic<std::uint64_t> idle_{0};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
