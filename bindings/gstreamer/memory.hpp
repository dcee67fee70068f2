// SPDX-License-Identifier: Apache-2.0
// GstIsthmusAllocator and its memory: buffers that CPU and device use in place, whose maps are host views.
#pragma once

#include "session.hpp"

#include <isthmus/buffer.hpp>
#include <isthmus/wait.hpp>

#include <gst/gst.h>

#include <cstdint>
#include <memory>

namespace isthmus::gst {

inline constexpr char memory_type[] = "IsthmusMemory";

// What memory of other owners has to give back: the slot of a ring. It ends with the memory.
class Tenancy {
public:
    Tenancy() = default;
    Tenancy(const Tenancy&) = delete;
    Tenancy& operator=(const Tenancy&) = delete;
    virtual ~Tenancy() = default;
    virtual const Buffer<std::uint8_t>& buffer() const noexcept = 0;
    // The same for writing; null: the memory may be read only, now.
    virtual Buffer<std::uint8_t>* writable() noexcept = 0;
};

// Allocates by Device::allocate_shared; a reference for the caller. It keeps the session open.
struct Unref {
    void operator()(gpointer object) const noexcept { gst_object_unref(object); }
};
using AllocatorPointer = std::unique_ptr<GstAllocator, Unref>;
AllocatorPointer make_allocator(const OpenSession& opened);
const Device& device_of(GstAllocator* allocator) noexcept;

// Memory over a tenancy's buffer, `allocator` being one of make_allocator().
GstMemory* wrap_memory(GstAllocator* allocator, std::unique_ptr<Tenancy> tenancy, bool read_only);

bool is_isthmus_memory(GstMemory* memory) noexcept;
// The tenancy of the memory; null: it has none.
Tenancy* tenancy_of(GstMemory* memory) noexcept;
// The whole buffer behind the memory, for kernels of this device; null: the memory is another allocator's or another
// device's, or a part, or begins within its buffer.
const Buffer<std::uint8_t>* whole_buffer(GstMemory* memory, const Device& device) noexcept;

}  // namespace isthmus::gst
