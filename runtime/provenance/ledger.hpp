// Ledger: every piece of memory that a runtime handed out and has not taken back, by identity, with what undoes it.
#pragma once

#include <isthmus/adopt.h>
#include <isthmus/allocator.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>

#include <platform/driver.hpp>
#include <platform/os.hpp>

#include "address_map.hpp"
#include "host_slabs.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace isthmus::inline v0::detail {

struct PoolState;

// Identities are unique in the process, so that another runtime's and a stale one are told apart from ours.
std::uint64_t reserve_ids(std::uint64_t count) noexcept;  // the first of them

// The system's memory: pages of its own, or cut out of slabs.
struct HostPart {
    platform::os::HostPages pages;
    bool registered = false;  // the pages, with the device's driver
    std::shared_ptr<HostSlabs> slabs;
    SlabPiece cut;
    std::size_t bytes() const noexcept { return slabs ? cut.bytes : pages.bytes(); }
};

// Memory that somebody else owns, and what tells its owner that nobody uses it any more.
class AdoptedPart {
public:
    using Release = std::function<void(void*, std::size_t)>;
    AdoptedPart(void* memory, std::size_t length, Release release, isthmus_adopt_callbacks c_release);
    AdoptedPart(const AdoptedPart&) = delete;
    AdoptedPart& operator=(const AdoptedPart&) = delete;
    ~AdoptedPart();                           // tells, unless this is a forked child: the parent still has it
    void forget() noexcept { told_ = true; }  // it was never taken

    void* const pointer;
    const std::size_t bytes;
    bool registered = false;            // with the device's driver
    std::shared_ptr<void> own_mapping;  // that it lies in; null: it is somebody else's memory

private:
    Release release_;
    isthmus_adopt_callbacks c_release_;
    std::uint64_t generation_;
    bool told_ = false;
};

// What gives memory back. Movable; frees nothing by itself but the pages.
struct Piece {
    platform::Allocation allocation;       // of the driver; bytes 0: none
    std::shared_ptr<PoolState> pool;       // that the allocation came from
    std::unique_ptr<HostPart> host_part;   // of the system
    std::unique_ptr<AdoptedPart> adopted;  // somebody else's
    MemoryBlock block;                     // as it stood in the books; set by take()
};

// Thread-safe. Every live piece stands in the address map too, with both of its ranges where the device finds it
// elsewhere than the host (K23). A piece leaves map and ledger before the driver frees it: its addresses may be
// somebody else's right after.
class Ledger {
public:
    explicit Ledger(provenance::AddressMap& addresses) : addresses_(addresses) {}

    // Enters new memory of the device with this index and returns its identity. What stood in the map at its addresses
    // is gone: the driver would not have handed them out twice. On an error nothing is entered, and `piece` is the
    // caller's still.
    Result<std::uint64_t> enter(const MemoryBlock& block, std::size_t device, Piece& piece);
    // As enter(), for memory that was not handed out: in_use where a live allocation of this runtime, or memory that it
    // adopted before, overlaps it.
    Result<std::uint64_t> enter_adopted(const MemoryBlock& block, std::size_t device, Piece& piece);
    Result<void> refuse_overlap(const MemoryBlock& block) const;
    // Of memory that was entered here and grows or shrinks where it is: it keeps its identity. On an error nothing has
    // changed.
    Result<void> resize(std::uint64_t id, std::size_t bytes);
    // Into the address map alone, in place of whatever is stale there: the driver has just handed the addresses out.
    Result<void> insert(const provenance::Record& record);
    // Enters memory of a user's own allocator: known by address for as long as its buffer lives. Where it was cut out
    // of memory that is known already, the owner's record stays the answer.
    std::uint64_t enter_users(const MemoryBlock& block, std::size_t device);
    void leave(std::uint64_t id);

    // Takes the piece out: from now on it is the caller's to free, and every other release is refused. Errors, which
    // change nothing: unknown_pointer, interior_pointer, already_released, wrong_device (K8).
    Result<Piece> take(const MemoryBlock& block, std::size_t device);
    // Enters again what take() took out and what could not be freed, with the identity that it had.
    void put_back(std::size_t device, Piece& piece);
    // Lets the address map call adopted memory plain host memory, because the driver counts it as registered still
    // although no buffer has it: copies from and to it then wait as for pageable memory. Until leave(piece.block.id).
    void enter_unreturned(std::size_t device, Piece& piece);
    // Takes what the driver told of this address out of the map: it is not so any more.
    void forget_foreign(const void* address);
    // Adopted memory that went back to its owner although a lost device's driver has it registered for good: other
    // devices' drivers take for pinned what lies there next.
    void leave_registered(const void* address, std::size_t bytes);
    bool left_registered(std::uint64_t address, std::size_t bytes) const;  // does any of it meet such memory?
    // Takes out whatever a device has left, when it closes.
    std::vector<Piece> take_all(std::size_t device);

    PlacementReport placement(std::uint64_t id) const;
    struct Origin {
        bool known = false;
        std::size_t device = 0;
        std::shared_ptr<PoolState> pool;  // nullptr: it came from none
    };
    Origin origin(std::uint64_t id) const;
    std::shared_ptr<PoolState> pool_of(std::uint64_t id) const { return origin(id).pool; }
    std::size_t size() const;

private:
    struct Entry {
        MemoryBlock block;
        std::size_t device = 0;
        Piece piece;
    };
    struct Range {
        std::uint64_t first;
        std::uint64_t last;
    };
    std::uint64_t next_id();                  // expects mutex_ to be held
    bool handed_out(std::uint64_t id) const;  // expects mutex_ to be held
    Error refusal(const MemoryBlock& block) const;
    Result<void> map(const MemoryBlock& block, std::size_t device);
    void unmap(const MemoryBlock& block);

    provenance::AddressMap& addresses_;
    mutable std::mutex mutex_;
    std::unordered_map<std::uint64_t, Entry> entries_;
    std::vector<Range> ours_;  // identities that are this ledger's, ascending
    std::vector<Range> left_;  // addresses, first and last
    std::atomic<bool> any_left_{false};
    std::uint64_t next_ = 1;  // beyond last_: a further range is needed
    std::uint64_t last_ = 0;
};

}  // namespace isthmus::inline v0::detail
