// SPDX-License-Identifier: Apache-2.0
// Memory known to the simulator: address → allocation, for provenance, frees and access checks.
#pragma once

#include "engine/operation.hpp"
#include "types.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace isthmus::sim {

// The program's advice about a range of managed memory, and the target of its last prefetch.
struct Hints {
    bool read_mostly = false;
    Location preferred{0, 0};      // type 0: none
    Location last_prefetch{0, 0};  // type 0: never
    std::set<int> accessed_by;     // devices; -1: the host
};

// Hints by ranges of an allocation's bytes.
class HintMap {
public:
    // Changes the hints of a range, widened to pages.
    void apply(std::size_t offset_bytes, std::size_t bytes, const std::function<void(Hints&)>& change);
    void visit(std::size_t offset_bytes, std::size_t bytes, const std::function<void(const Hints&)>& look) const;

private:
    void split(std::size_t offset_bytes);
    std::map<std::size_t, Hints> from_{{0, {}}};  // each holds up to the next
};

// `array`: of arrays, which no address names; `heap`: of malloc() in kernels. find() knows neither.
enum class Kind : std::uint8_t { device, pool, graph, managed, pinned, registered, mapping, array, heap };
const char* name(Kind kind) noexcept;

struct Physical;

// Flags of cuMemHostRegister: device memory; the GPU may only read it.
inline constexpr unsigned register_io_memory = 4, register_read_only = 8;

struct Region {
    Kind kind = Kind::device;
    Address base = 0;      // as the GPU names it
    void* host = nullptr;  // the CPU's address; for device memory, that of the simulator's workers
    std::size_t bytes = 0;
    std::size_t mapped_bytes = 0;  // size of the simulator's own mapping at `host`; 0: the program's memory
    void* alias_start = nullptr;   // of the range reserved for `base`, where that differs from `host`
    std::size_t alias_bytes = 0;
    int device = -1;
    Context* context = nullptr;
    Pool* pool = nullptr;
    unsigned flags = 0;  // flags of the call that created it
    std::uint64_t id = 0;
    bool closed = false;  // the CPU may not access it at the moment
    bool freed = false;   // freed by the program; removed when all earlier work has ended
    // Memory that a graph allocates: its address is fixed, its content exists in stream order.
    bool of_graph = false;
    bool live = false;           // in the program's order: allocated by a launch and not freed since
    bool absent = false;         // in the stream's order: before its allocation node, or after its free
    bool freed_by_node = false;  // has a captured free; there can be only one
    bool ownerless = false;      // its graph is gone; the next free releases it
    // Managed memory of devices with attribute 89 = 0: the attachment (CU_MEM_ATTACH_GLOBAL 1, HOST 2, SINGLE 4).
    unsigned attachment = 1;
    engine::StreamId attached_to = engine::StreamId::none;
    // For a mapping: its physical memory, and the access rights (1 read, 3 read and write).
    Physical* physical = nullptr;
    std::map<int, int> device_access;
    int host_access = 0;
    // For device memory that other processes may open, or that is another process's.
    int file = -1;
    bool foreign = false;
    bool external = false;  // a mapping of imported external memory: not accounted, freed by cuMemFree
    unsigned opened = 0;    // count of opens
    std::uint64_t nonce = 0;
    HintMap hints;
    bool sync_memops = false;
    // isthmus_sim_lend(): the rest may not be accessed. In the stream's order, and in the program's.
    std::size_t lent_bytes = ~std::size_t{0};
    std::size_t lent_bytes_next = ~std::size_t{0};
    std::uint64_t lending = 0;   // number of the one in force
    std::uint64_t lendings = 0;  // so far
    // isthmus_sim_lend_part(): first byte → size and usable bytes. Once there is one, only parts may be accessed.
    struct Part {
        std::size_t bytes = 0;
        std::size_t usable_bytes = 0;
    };
    std::map<std::size_t, Part> parts;
    // That may be accessed from this offset on: by work that runs now, and by work that is submitted now.
    std::size_t usable_bytes(std::size_t offset_bytes) const {
        return parts.empty() ? rest(offset_bytes, lent_bytes) : rest_of_part(offset_bytes);
    }
    std::size_t usable_bytes_next(std::size_t offset_bytes) const {
        return parts.empty() ? rest(offset_bytes, lent_bytes_next) : rest_of_part(offset_bytes);
    }
    // The part that contains this byte; the end: none does.
    std::map<std::size_t, Part>::const_iterator part_at(std::size_t offset_bytes) const {
        auto part = parts.upper_bound(offset_bytes);
        if (part == parts.begin()) return parts.end();
        --part;
        return offset_bytes - part->first < part->second.bytes ? part : parts.end();
    }
    // Of what contains this byte, the first one that belongs to it.
    std::size_t first_byte(std::size_t offset_bytes) const {
        const auto part = part_at(offset_bytes);
        return part != parts.end() ? part->first : 0;
    }
    bool is_released(std::size_t offset_bytes) const {
        if (parts.empty()) return lent_bytes == 0;
        const auto part = part_at(offset_bytes);
        return part == parts.end() || part->second.usable_bytes == 0;
    }
    std::size_t rest_of_part(std::size_t offset_bytes) const {
        const auto part = part_at(offset_bytes);
        if (part == parts.end()) return 0;
        const std::size_t end = part->first + part->second.usable_bytes;
        return offset_bytes < end ? end - offset_bytes : 0;
    }
    std::size_t rest(std::size_t offset_bytes, std::size_t lent) const {
        const std::size_t end = bytes < lent ? bytes : lent;
        return offset_bytes < end ? end - offset_bytes : 0;
    }

    bool aliased() const { return base != reinterpret_cast<Address>(host); }
};

struct Found {
    Region* region = nullptr;
    std::size_t offset_bytes = 0;
    bool by_host_name = false;  // found by the CPU's address, where that differs from the GPU's
    explicit operator bool() const { return region != nullptr; }
    std::byte* pointer() const { return static_cast<std::byte*>(region->host) + offset_bytes; }
};

// Not synchronised: the driver's mutex guards it.
class Regions {
public:
    Region* add(Region region);
    void remove(Region* region);
    Found find(Address address) const;
    Region* find_id(std::uint64_t id) const;  // nullptr: gone
    bool overlaps(Address address, std::size_t bytes) const;
    std::vector<Region*> all() const;
    std::size_t count(Kind kind) const;
    std::size_t count() const { return regions_.size(); }

private:
    struct Span {
        Address end;
        Region* region;
        bool host_name;
    };
    std::map<Address, Span> spans_;
    std::map<std::uint64_t, std::unique_ptr<Region>> regions_;  // by id
    std::uint64_t next_id_ = 1;
};

}  // namespace isthmus::sim
