// SPDX-License-Identifier: Apache-2.0
// What every copy comes down to: a box of bytes between two layouts, done by a GPU worker in stream order.
#pragma once

#include "access.hpp"

#include <initializer_list>

namespace isthmus::sim {

struct Side {
    Address address = 0;
    bool device_address = false;  // the call names it so: the driver must know it
};

struct Box {
    std::size_t width_bytes = 0, height = 1, depth = 1;
    bool empty() const { return width_bytes == 0 || height == 0 || depth == 0; }
};

struct Layout {
    std::size_t pitch = 0;  // bytes from row to row
    std::size_t slice = 0;  // bytes from plane to plane
};

struct CopyRequest {
    Side destination, source;
    Box box;
    Layout to, from;
    bool wait = false;             // the call is synchronous
    bool between_devices = false;  // a peer copy: the driver stages what the devices do not reach
};
// The request's layouts hold its box.
Result copy(Driver& d, Stream* stream, const CopyRequest& request);

// From the first byte of the box to its last; false: more than there is address space.
bool measure(const Box& box, const Layout& layout, std::size_t& bytes);
// The two contexts of a peer copy: 201 where one is none.
Result check_peers(Driver& d, const Context* to, const Context* from);

// What decides whether a graph's copy or fill can become another one in an instance (documented: devices, contexts,
// memory types; of fills of several rows also their shape).
struct MemoryNode {
    struct Operand {
        bool host = false;  // pageable, pinned or registered
        int device = -1;
        const Context* context = nullptr;
        bool operator==(const Operand& other) const = default;
    };
    const Context* context = nullptr;  // whose stream it was captured from
    Operand to, from;
    std::size_t width_bytes = 0, height = 1, pitch = 0, element_bytes = 0;

    bool may_become(const MemoryNode& other) const;
};
MemoryNode::Operand operand_of(const CopySide& side);

// Known memory that work reaches when it runs: by then it may be gone, or access to it withdrawn.
struct Reached {
    std::uint64_t region = 0;  // 0: memory that the driver does not know
    bool writes = false;
    bool directly = false;  // by the device itself: without peer access the driver does not stage it
    Address address = 0;    // of mapped memory, which may lie in several mappings
    std::size_t bytes = 0;
};
// 0, or 700 after saying why. Takes the driver's mutex.
Result check_reached(Driver& d, const GpuAgent& agent, const char* what, std::initializer_list<Reached> all);

}  // namespace isthmus::sim
