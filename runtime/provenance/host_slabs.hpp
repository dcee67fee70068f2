// Host memory on the nodes that were asked for, cut out of slabs: the system is asked once per slab, not per
// allocation.
#pragma once

#include <isthmus/facts.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>

#include <platform/os.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace isthmus::inline v0::detail {

// Makes a slab known to a device and forgets it again; both empty: slabs are not registered. Called once per slab, on
// the thread that grows or trims, with no lock held that allocate() or release() take, so that they may call the
// driver; they must not call the slabs. What `add` could not do leaves no slab behind; a slab that `remove` could not
// forget stays mapped, because the device may still reach it.
struct SlabRegistration {
    std::function<Result<std::uint64_t>(void* data, std::size_t bytes)> add;  // the device's address of `data`
    std::function<Result<void>(void* data)> remove;
};

struct SlabOptions {
    HostPlacement placement;  // `local` is the node of the thread that allocates
    int near_node = -1;       // the device's closest CPU node; -1: none stated
    MachineFacts machine;
    std::size_t slab_bytes = std::size_t{8} << 20;  // rounded up to pages; a larger piece gets a slab of its own
    SlabRegistration registration;
    platform::os::Workers touchers;  // large slabs are touched by them together
    const platform::os::SystemCalls* calls = &platform::os::SystemCalls::real();
};

// One allocation. Its memory is the slabs'; content of recycled memory is whatever stood there.
struct SlabPiece {
    void* data = nullptr;
    std::uint64_t device_address = 0;               // where the device finds it; 0: not registered
    std::size_t bytes = 0;                          // usable: as asked, rounded up to the granule
    std::shared_ptr<const PlacementReport> report;  // of the slab; never null
};

// Thread-safe. Pieces begin at multiples of 256 bytes or of the alignment asked for, whichever is more, and share no
// 128-byte line with each other. Destruction gives every slab back, whether or not pieces are still out.
class HostSlabs {
public:
    explicit HostSlabs(SlabOptions options);
    ~HostSlabs();
    HostSlabs(const HostSlabs&) = delete;
    HostSlabs& operator=(const HostSlabs&) = delete;

    // `alignment` is a power of two. invalid_argument: 0 bytes, a bad alignment, an overflow, before any call;
    // otherwise what HostPages::allocate or the registration refuse. A failure changes nothing.
    Result<SlabPiece> allocate(std::size_t bytes, std::size_t alignment);

    // Null is a no-op. invalid_argument: an address that is not of these slabs, or inside a piece; invalid_handle: a
    // piece that was released before. A refusal changes nothing. A slab made for one large piece goes back with it.
    Result<void> release(void* data);

    std::size_t reserved_bytes() const;  // of all slabs
    std::size_t used_bytes() const;      // of pieces that are out, as rounded

    // Gives back slabs without pieces; the bytes given back.
    std::size_t trim();

private:
    struct Books;
    std::unique_ptr<Books> books_;
};

}  // namespace isthmus::inline v0::detail
