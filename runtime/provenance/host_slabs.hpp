// SPDX-License-Identifier: Apache-2.0
// Host memory on the requested NUMA nodes, cut out of slabs: the system is asked once per slab, not per allocation.
#pragma once

#include <isthmus/facts.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>

#include <platform/os.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Registers a slab with a device and unregisters it; both empty: slabs are not registered. Called once per slab, on the
// thread that grows or trims, without any lock that allocate() or release() take. They may therefore call the driver;
// they must not call the slabs. If `add` fails, the slab is not kept. If `remove` fails, the slab stays mapped, because
// the device may still access it.
struct SlabRegistration {
    std::function<Result<std::uint64_t>(void* data, std::size_t bytes)> add;  // answers the device address of `data`
    std::function<Result<void>(void* data)> remove;
};

struct SlabOptions {
    HostPlacement placement;  // `local` means the node of the allocating thread
    int near_node = -1;       // the device's closest CPU node; -1: none stated
    MachineFacts machine;
    std::size_t slab_bytes = std::size_t{8} << 20;  // rounded up to pages; a larger piece gets its own slab
    SlabRegistration registration;
    platform::os::Workers touchers;  // workers that touch large slabs together
    const platform::os::SystemCalls* calls = &platform::os::SystemCalls::real();
};

// One allocation. The slabs own its memory; recycled memory keeps its old content.
struct SlabPiece {
    void* data = nullptr;
    std::uint64_t device_address = 0;               // address for the device; 0: not registered
    std::size_t bytes = 0;                          // usable: the request, rounded up to the granule
    std::shared_ptr<const PlacementReport> report;  // of the slab; never null
};

// Thread-safe. Pieces are aligned to 256 bytes or to the requested alignment, whichever is larger, and no two share a
// 128-byte line. The destructor frees every slab, whether or not pieces are outstanding.
class HostSlabs {
public:
    explicit HostSlabs(SlabOptions options);
    ~HostSlabs();
    HostSlabs(const HostSlabs&) = delete;
    HostSlabs& operator=(const HostSlabs&) = delete;

    // `alignment` is a power of two. Errors: invalid_argument (0 bytes, a bad alignment, an overflow), before any
    // system call; otherwise those of HostPages::allocate or of the registration. A failure changes nothing.
    Result<SlabPiece> allocate(std::size_t bytes, std::size_t alignment);

    // Null is a no-op. Errors: invalid_argument (an address outside these slabs, or inside a piece), invalid_handle (a
    // piece that was released before). A refusal changes nothing. A slab made for one large piece is freed with it.
    Result<void> release(void* data);

    std::size_t reserved_bytes() const;  // of all slabs
    std::size_t used_bytes() const;      // of outstanding pieces, after rounding

    // Frees slabs without pieces; answers the number of bytes freed.
    std::size_t trim();

private:
    struct Books;
    std::unique_ptr<Books> books_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
