// SPDX-License-Identifier: Apache-2.0
// The common form of all copies: a box of bytes between two layouts, executed by a GPU worker in stream order.
#pragma once

#include "access.hpp"

#include <initializer_list>
#include <vector>

namespace isthmus::sim {

struct Side {
    Address address = 0;
    bool device_address = false;  // the call requires a device address: the driver must know it
    // Of an array (place_in_array): its memory, whose address no program knows, and where the box begins.
    Array* array = nullptr;
    std::uint64_t region = 0;
    std::size_t x_bytes = 0, y = 0, z = 0;
};

struct Box {
    std::size_t width_bytes = 0, height = 1, depth = 1;
    bool empty() const { return width_bytes == 0 || height == 0 || depth == 0; }
};

struct Layout {
    std::size_t pitch = 0;  // bytes from one row to the next
    std::size_t slice = 0;  // bytes from one plane to the next
};

struct CopyRequest {
    Side destination, source;
    Box box;
    Layout to, from;
    bool wait = false;             // the call is synchronous
    bool between_devices = false;  // a peer copy: the driver stages between devices without access
};
// The layouts of the request must hold its box.
Result copy(Driver& d, Stream* stream, const CopyRequest& request);

// A copy as the operation of a node; `parameters`: for queries. Requires the driver's mutex.
Result make_copy_node(Driver& d, const GpuAgent& agent, const CopyRequest& request, const Copy3D& parameters,
                      engine::Operation& out);

struct BatchedRequest {
    CopyRequest copy;
    std::size_t index = 0;            // in the program's batch
    bool source_during_call = false;  // the source is read before the call returns, else in stream order
};
// Documented as undefined: copies of one batch that depend on each other. Reports them. All sides were checked.
void check_independence(const std::vector<BatchedRequest>& batch);
// All copies as one operation of the stream; none if one of them is refused: `failed`, if any, is then its index.
Result copy_batch(Driver& d, Stream* stream, const std::vector<BatchedRequest>& batch, std::size_t* failed);

// The bytes from the first to the last byte of the box; false: more than the address space.
bool measure(const Box& box, const Layout& layout, std::size_t& bytes);
// Checks the two contexts of a peer copy: 201 where one is no context.
Result check_peers(Driver& d, const Context* to, const Context* from);

// The properties that decide whether an instance can change a graph's copy or fill into another one (documented:
// devices, contexts, memory types; for fills of several rows also their shape).
struct MemoryNode {
    struct Operand {
        bool host = false;  // pageable, pinned or registered
        int device = -1;
        const Context* context = nullptr;
        bool operator==(const Operand& other) const = default;
    };
    const Context* context = nullptr;  // of the stream that it was captured from
    Operand to, from;
    std::size_t width_bytes = 0, height = 1, pitch = 0, element_bytes = 0;
    // What a query of the node returns: one of them.
    Copy3D copy = {};
    FillNodeParameters fill = {};

    bool may_become(const MemoryNode& other) const;
};
MemoryNode::Operand operand_of(const CopySide& side);

// Known memory that work accesses when it runs: it may be gone by then, or access may have been withdrawn.
struct Reached {
    std::uint64_t region = 0;  // 0: memory unknown to the driver
    bool writes = false;
    bool directly = false;  // accessed by the device itself: without peer access the driver does not stage it
    Address address = 0;    // of mapped memory, which may lie in several mappings
    std::size_t bytes = 0;
};
// Returns 0, or 700 after printing the reason. Locks the driver's mutex.
Result check_reached(Driver& d, const GpuAgent& agent, const char* what, std::initializer_list<Reached> all);

}  // namespace isthmus::sim
