// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: reserved addresses, physical memory behind handles, and the mappings between them, which
// are in the table of regions.
#pragma once

#include "handles.hpp"
#include "regions.hpp"
#include "types.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::sim {

class Driver;

inline constexpr std::size_t granularity_bytes = std::size_t{2} << 20;  // observed

struct Physical;

// What every handle of a multicast object shows: its devices and what is bound. For an exportable object it is in the
// object's file, so that other processes, which simulate the same machine, see it too. New, it is zeroed.
struct TeamBoard {
    struct Entry {  // a bound range, as bytes of a memory file (named_file.hpp)
        enum State : std::uint32_t { unused, taken, bound };
        std::atomic<std::uint32_t> state;
        std::int32_t device;
        std::uint64_t offset_bytes, bytes, memory_offset_bytes;
        std::int32_t process, file;
        std::uint64_t nonce;
    };
    static constexpr std::size_t most_entries = 256;
    std::atomic<std::uint64_t> joined;  // one bit for each device
    Entry entries[most_entries];
};

// The devices of a multicast object, and the memory bound to it.
struct Team {
    struct Bound {
        std::size_t offset_bytes = 0, bytes = 0;
        Physical* memory = nullptr;
        TeamBoard::Entry* entry = nullptr;
    };
    static constexpr int max_devices = 64;
    Team() = default;
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    unsigned size = 0;
    std::shared_ptr<TeamBoard> board;
    std::vector<Bound> bound;                                     // by this process
    std::map<std::uint64_t, std::pair<void*, std::size_t>> seen;  // memory files of the board, mapped here, by nonce
    bool has(int device) const {
        return device >= 0 && device < max_devices && (board->joined.load() >> device & 1) != 0;
    }
    unsigned count() const { return static_cast<unsigned>(__builtin_popcountll(board->joined.load())); }
    bool complete() const { return count() == size; }
    bool add(int device);  // false: the device has joined already, or the team is complete
    // Enters a range on the board; nullptr: it is full.
    TeamBoard::Entry* enter(const Physical& memory, std::size_t offset, std::size_t memory_offset, std::size_t bytes);
    void leave(const Bound& range);
    // The address of the byte at `offset` of the object in this device's memory; nullptr: nothing is bound there.
    void* replica(int device, std::size_t offset, std::size_t bytes);
};
// Creates a team of `size` devices; none has joined. `file`: the memory file of an exportable object (memory_file.hpp);
// -1: none. nullptr: the system has no memory.
std::shared_ptr<Team> make_team(unsigned size, int file);

// Memory without an address, in a memory file, so that several mappings, also in other processes, show the same bytes.
struct Physical {
    AllocationProperties properties = {};  // as granted
    std::size_t bytes = 0;
    int device = -1;  // -1: the host's
    int file = -1;
    bool counted = false;        // included in the figures of its device, or of the host; imported memory is not
    unsigned references = 0;     // handles that the program must release
    std::size_t uses = 0;        // mappings, multicast objects
    std::shared_ptr<Team> team;  // of a multicast object, which has no bytes of its own
};

struct VirtualMemory {
    Handles<Physical> objects;
    std::map<Address, std::size_t> reservations;
    // Of reservations that their program divides into blocks (isthmus_sim_lend), by their first address: bytes in use,
    // by the block's first address; 0: released.
    std::map<Address, std::map<Address, std::size_t>> blocks;
    std::vector<Region*> mappings;
    std::condition_variable teams_changed;  // with the driver's mutex
};

// All functions below require the driver's mutex.

MemoryHandle handle_of(const Physical* physical) noexcept;
// nullptr: the program has no such handle.
Physical* find_physical(Driver& d, MemoryHandle handle);
// Creates an object with one reference over this file, and takes ownership of the file.
Physical* add_physical(Driver& d, const AllocationProperties& properties, std::size_t bytes, int device, int file);
// Destroys it when neither handles nor mappings are left.
void forget_if_unused(Driver& d, Physical* physical);

// Waits until all devices were added to a multicast object, as the driver does; releases the driver's mutex meanwhile.
// In seeded mode no other thread can add them: returns 801 after printing the reason.
Result wait_for_team(Driver& d, std::unique_lock<std::mutex>& lock, MemoryHandle handle, const char* call);

// A multimem access of a device. Writes the addresses of each device's memory, and their number; otherwise returns why
// the GPU faults.
struct MultimemAccess {
    int device;
    Address address;
    std::size_t bytes;
    bool writes;
};
const char* find_replicas(Driver& d, const MultimemAccess& access, void** addresses, std::size_t most,
                          std::int32_t& count);

// The mappings that a range touches, in order; `gapless`: together they cover all of it.
std::vector<Region*> mappings_of(const Driver& d, Address address, std::size_t bytes, bool& gapless);
// Why the device may not access the whole range; empty: it may. Device -1: whether any device may.
std::string check_mappings(const Driver& d, int device, Address address, std::size_t bytes, bool writes);
// isthmus_sim_lend() of mapped memory: a block begins here, and its first bytes may be accessed; 0: it is released.
// From the first one on, what is no block of the reservation may not be accessed.
void lend_block(Driver& d, Address address, std::size_t bytes);
// Why a range is no part of one block; nullptr: it is, or its reservation has no blocks.
const char* check_blocks(const Driver& d, Address address, std::size_t bytes);
// Adds the devices whose keys are on mappings that this device may access.
void add_mapped_devices(const Driver& d, int device, std::set<int>& devices);

// The code that the device answers after a fault; for host memory (-1), that of the current context's device.
Result lost_code(Driver& d, int device);
// 0 where memory with these properties can exist on this machine; otherwise the answer of cuMemCreate. `granted` gets
// the properties that the memory would have.
Result check_properties(Driver& d, const AllocationProperties* properties, AllocationProperties& granted);

}  // namespace isthmus::sim
