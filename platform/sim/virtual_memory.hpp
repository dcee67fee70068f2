// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: reserved addresses, physical memory behind handles, and the mappings between them, which
// stand in the table of regions.
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
#include <vector>

namespace isthmus::sim {

class Driver;

inline constexpr std::size_t granularity_bytes = std::size_t{2} << 20;  // observed

struct Physical;

// The devices of a multicast object, and what memory of theirs it stands for.
struct Team {
    struct Bound {
        std::size_t offset_bytes = 0, bytes = 0;
        Physical* memory = nullptr;
    };
    static constexpr int max_devices = 64;
    unsigned size = 0;
    // One bit for each device. Of an object that can be exported it lies in its file, so that every handle to it, of
    // other processes too, sees the same devices. Those play the same machine.
    std::shared_ptr<std::atomic<std::uint64_t>> joined;
    std::vector<Bound> bound;  // by this process
    bool has(int device) const { return device >= 0 && device < max_devices && (joined->load() >> device & 1) != 0; }
    unsigned count() const { return static_cast<unsigned>(__builtin_popcountll(joined->load())); }
    bool complete() const { return count() == size; }
    bool add(int device);  // false: it is there already, or the team is complete
};
// A team of so many; nobody has joined. `file`: of memory, which it may be exported with (memory_file.hpp); -1: none.
// nullptr: the system has no memory.
std::shared_ptr<Team> make_team(unsigned size, int file);

// Bytes without an address. They lie in a file of memory, so that several mappings, of other processes too, show the
// same ones.
struct Physical {
    AllocationProperties properties = {};  // as granted
    std::size_t bytes = 0;
    int device = -1;  // -1: the host's
    int file = -1;
    bool counted = false;        // in its device's books: not what was imported
    unsigned references = 0;     // handles that the program has to release
    std::size_t uses = 0;        // mappings, multicast objects
    std::shared_ptr<Team> team;  // of a multicast object, which has no bytes of its own
};

struct VirtualMemory {
    Handles<Physical> objects;
    std::map<Address, std::size_t> reservations;
    std::vector<Region*> mappings;
    std::condition_variable teams_changed;  // with the driver's mutex
};

// All below take the driver's mutex as held.

MemoryHandle handle_of(const Physical* physical) noexcept;
// nullptr: the program holds no such handle.
Physical* find_physical(Driver& d, MemoryHandle handle);
// A new object with one reference over this file, which it owns.
Physical* add_physical(Driver& d, const AllocationProperties& properties, std::size_t bytes, int device, int file);
// Ends it where neither handles nor mappings are left.
void forget_if_unused(Driver& d, Physical* physical);

// Until all devices were added to a multicast object, as the driver waits; the driver's mutex is let go meanwhile.
// Seeded, nobody else would add them: 801 after saying so.
Result wait_for_team(Driver& d, std::unique_lock<std::mutex>& lock, MemoryHandle handle, const char* call);

// The mappings that a range touches, in order; `gapless`: together they hold all of it.
std::vector<Region*> mappings_of(const Driver& d, Address address, std::size_t bytes, bool& gapless);
// Why the device may not touch the whole range; empty: it may. A device of -1: whether anybody may.
std::string check_mappings(const Driver& d, int device, Address address, std::size_t bytes, bool writes);
// Devices whose keys lie on mappings that this one may touch.
void add_mapped_devices(const Driver& d, int device, std::set<int>& devices);

// What the device answers after a fault; for the host's memory (-1), the current context's device does.
Result lost_code(Driver& d, int device);
// 0 where memory of such properties can exist on this machine; else what cuMemCreate answers. `granted` are those it
// would have.
Result check_properties(Driver& d, const AllocationProperties* properties, AllocationProperties& granted);

}  // namespace isthmus::sim
