// SPDX-License-Identifier: Apache-2.0
// A map opens a view and an unmap closes it. GStreamer counts maps that overlap: of one memory all are for reading, or
// one of them covers the others. So they share the view of the first.
#include "memory.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <variant>

#define GST_CAT_DEFAULT debug_category()

namespace isthmus::gst {
namespace {

using Bytes = Buffer<std::uint8_t>;
using ReadView = HostView<const std::uint8_t>;
using WriteView = HostView<std::uint8_t>;

// The C++ half of a memory.
struct Block {
    std::variant<Bytes, std::unique_ptr<Tenancy>, BufferPart<std::uint8_t>, BufferPart<const std::uint8_t>> source;
    std::mutex lock;  // of the members below
    std::variant<std::monostate, ReadView, WriteView> view{};
    unsigned maps = 0;
    void* data = nullptr;
};

struct GstIsthmusMemory {
    GstMemory base;
    Block* block;
};

struct GstIsthmusAllocator {
    GstAllocator base;
    OpenSession* opened;
};
struct GstIsthmusAllocatorClass {
    GstAllocatorClass base;
};

Block& block_of(GstMemory* memory) {
    return *reinterpret_cast<GstIsthmusMemory*>(memory)->block;
}

template <class View>
void* keep(Block& block, Result<View>&& opened) {
    if (!opened) {
        GST_WARNING("a map was refused: %s", opened.error().text().c_str());
        return nullptr;
    }
    block.view = std::move(opened).value();
    // const is for this side's readers; GStreamer's maps have one type of pointer.
    return const_cast<std::uint8_t*>(std::get<View>(block.view).data());
}

// A write map promises every element of the memory, as GStreamer's does: what it leaves out is undefined.
template <class Source>
void* open_writable(Block& block, Source& source, bool reads) {
    return keep<WriteView>(block, reads ? source.read_write_on_host() : source.write_on_host());
}

void* open_view(Block& block, bool reads, bool writes) {
    if (auto* own = std::get_if<Bytes>(&block.source)) {
        return writes ? open_writable(block, *own, reads) : keep<ReadView>(block, own->read_on_host());
    }
    if (auto* part = std::get_if<BufferPart<std::uint8_t>>(&block.source)) {
        return writes ? open_writable(block, *part, reads) : keep<ReadView>(block, part->read_on_host());
    }
    if (auto* part = std::get_if<BufferPart<const std::uint8_t>>(&block.source)) {
        return writes ? nullptr : keep<ReadView>(block, part->read_on_host());
    }
    Tenancy& tenancy = *std::get<std::unique_ptr<Tenancy>>(block.source);
    if (!writes) return keep<ReadView>(block, tenancy.buffer().read_on_host());
    Bytes* const buffer = tenancy.writable();
    if (buffer == nullptr) {
        GST_WARNING("a map for writing was refused: other processes have the frame");
        return nullptr;
    }
    return open_writable(block, *buffer, reads);
}

gpointer map_memory(GstMemory* memory, gsize, GstMapFlags flags) {
    Block& block = block_of(memory);
    const std::lock_guard locked(block.lock);
    if (block.maps == 0) {
        block.data = open_view(block, (flags & GST_MAP_READ) != 0, (flags & GST_MAP_WRITE) != 0);
        if (block.data == nullptr) return nullptr;
    }
    ++block.maps;
    return block.data;
}

void unmap_memory(GstMemory* memory) {
    Block& block = block_of(memory);
    const std::lock_guard locked(block.lock);
    if (block.maps == 0 || --block.maps > 0) return;
    block.view = std::monostate();
    block.data = nullptr;
}

GstMemory* make_memory(GstAllocator* allocator, GstMemory* parent, std::unique_ptr<Block> block,
                       const GstAllocationParams& params, gsize maxsize, gsize size) {
    auto* const memory = static_cast<GstIsthmusMemory*>(g_malloc0(sizeof(GstIsthmusMemory)));
    gst_memory_init(&memory->base, params.flags, allocator, parent, maxsize, params.align, params.prefix, size);
    memory->block = block.release();
    return &memory->base;
}

// A part of the memory, as a memory of its own: maps of different parts do not wait for each other. The new memory
// cannot grow beyond its part.
GstMemory* share_memory(GstMemory* memory, gssize offset, gssize size) {
    GstMemory* const root = memory->parent != nullptr ? memory->parent : memory;
    const gsize bytes = size < 0 ? memory->size - static_cast<gsize>(offset) : static_cast<gsize>(size);
    std::size_t first = memory->offset + static_cast<gsize>(offset);
    bool read_only = (GST_MINI_OBJECT_FLAGS(memory) & GST_MEMORY_FLAG_READONLY) != 0;
    auto block = std::make_unique<Block>();
    const auto take = [&](auto part) {
        if (!part) {
            GST_WARNING("no part of a memory: %s", part.error().text().c_str());
            return false;
        }
        block->source = std::move(part).value();
        return true;
    };
    Block& whole = block_of(root);
    if (root != memory) {  // the part of a part begins where that part does
        std::visit(
            [&](const auto& source) {
                if constexpr (requires { source.first_byte(); }) first += source.first_byte();
            },
            block_of(memory).source);
    }
    bool made = false;
    if (auto* own = std::get_if<Bytes>(&whole.source)) {
        made = take(own->part(first, bytes));
    } else {  // a part outlives the moment in which other processes get the frame, so it is for reading
        const Tenancy& tenancy = *std::get<std::unique_ptr<Tenancy>>(whole.source);
        read_only = true;
        made = take(tenancy.buffer().part(first, bytes));
    }
    if (!made) return nullptr;
    GstAllocationParams params{};
    params.flags = read_only ? GST_MEMORY_FLAG_READONLY : static_cast<GstMemoryFlags>(0);
    return make_memory(memory->allocator, root, std::move(block), params, bytes, bytes);
}

const OpenSession& opened_of(GstAllocator* allocator) {
    return *reinterpret_cast<GstIsthmusAllocator*>(allocator)->opened;
}

// Both sides write and read frames; a device mostly reads each once.
Result<Bytes> allocate(const Device& device, std::size_t bytes) {
    Device same = device;
    return same.allocate_shared<std::uint8_t>(bytes, {.host = Use::writes_often, .device = Use::reads_once});
}

// Fills what the caller wants zero, and says how far the start is from a multiple of `align` + 1.
std::optional<gsize> prepare(Bytes& buffer, const GstAllocationParams& params, gsize size) {
    Result<WriteView> view = buffer.read_write_on_host();
    if (!view) {
        GST_WARNING("new memory cannot be mapped: %s", view.error().text().c_str());
        return std::nullopt;
    }
    const gsize past = reinterpret_cast<std::uintptr_t>(view->data()) & params.align;
    const gsize skip = past == 0 ? 0 : params.align + 1 - past;
    const gsize end = skip + params.prefix + size;
    if (end > view->size()) return skip;  // the caller takes a larger buffer
    if ((params.flags & GST_MEMORY_FLAG_ZERO_PREFIXED) != 0) std::memset(view->data() + skip, 0, params.prefix);
    if ((params.flags & GST_MEMORY_FLAG_ZERO_PADDED) != 0) std::memset(view->data() + end, 0, view->size() - end);
    return skip;
}

GstMemory* allocate_memory(GstAllocator* allocator, gsize size, GstAllocationParams* wanted) {
    GstAllocationParams params = *wanted;
    const gsize bytes = std::max<gsize>(params.prefix + size + params.padding, 1);
    const auto refused = [&](const Error& error) -> GstMemory* {
        GST_WARNING("no memory of %" G_GSIZE_FORMAT " bytes: %s", bytes, error.text().c_str());
        return nullptr;
    };
    Result<Bytes> buffer = allocate(*opened_of(allocator).device, bytes);
    if (!buffer) return refused(buffer.error());
    std::optional<gsize> skip = prepare(*buffer, params, size);
    if (!skip) return nullptr;
    if (*skip != 0) {  // the start is less aligned than asked for: a larger buffer has such a place within
        buffer = allocate(*opened_of(allocator).device, bytes + params.align);
        if (!buffer) return refused(buffer.error());
        skip = prepare(*buffer, params, size);
        if (!skip) return nullptr;
    }
    params.prefix += *skip;
    auto block = std::make_unique<Block>();
    const gsize maxsize = buffer->size();
    block->source = std::move(buffer).value();
    return make_memory(allocator, nullptr, std::move(block), params, maxsize, size);
}

void free_memory(GstAllocator*, GstMemory* memory) {
    delete reinterpret_cast<GstIsthmusMemory*>(memory)->block;
    g_free(memory);
}

G_DEFINE_TYPE(GstIsthmusAllocator, gst_isthmus_allocator, GST_TYPE_ALLOCATOR)

void finalize_allocator(GObject* object) {
    delete reinterpret_cast<GstIsthmusAllocator*>(object)->opened;
    G_OBJECT_CLASS(gst_isthmus_allocator_parent_class)->finalize(object);
}

void gst_isthmus_allocator_class_init(GstIsthmusAllocatorClass* type) {
    G_OBJECT_CLASS(type)->finalize = finalize_allocator;
    type->base.alloc = allocate_memory;
    type->base.free = free_memory;
}

void gst_isthmus_allocator_init(GstIsthmusAllocator* allocator) {
    allocator->base.mem_type = memory_type;
    allocator->base.mem_map = map_memory;
    allocator->base.mem_unmap = unmap_memory;
    allocator->base.mem_share = share_memory;
}

}  // namespace

AllocatorPointer make_allocator(const OpenSession& opened) {
    auto* const allocator = static_cast<GstIsthmusAllocator*>(g_object_new(gst_isthmus_allocator_get_type(), nullptr));
    allocator->opened = new OpenSession(opened);
    gst_object_ref_sink(allocator);
    return AllocatorPointer(&allocator->base);
}

const Device& device_of(GstAllocator* allocator) noexcept {
    return *opened_of(allocator).device;
}

GstMemory* wrap_memory(GstAllocator* allocator, std::unique_ptr<Tenancy> tenancy, bool read_only) {
    const gsize bytes = tenancy->buffer().size();
    GstAllocationParams params{};
    params.flags = read_only ? GST_MEMORY_FLAG_READONLY : static_cast<GstMemoryFlags>(0);
    auto block = std::make_unique<Block>();
    block->source = std::move(tenancy);
    return make_memory(allocator, nullptr, std::move(block), params, bytes, bytes);
}

bool is_isthmus_memory(GstMemory* memory) noexcept {
    return memory->allocator != nullptr &&
           G_TYPE_CHECK_INSTANCE_TYPE(memory->allocator, gst_isthmus_allocator_get_type());
}

Tenancy* tenancy_of(GstMemory* memory) noexcept {
    if (!is_isthmus_memory(memory)) return nullptr;
    auto* const tenancy = std::get_if<std::unique_ptr<Tenancy>>(&block_of(memory).source);
    return tenancy != nullptr ? tenancy->get() : nullptr;
}

const Bytes* whole_buffer(GstMemory* memory, const Device& device) noexcept {
    if (!is_isthmus_memory(memory) || memory->offset != 0) return nullptr;
    if (device_of(memory->allocator).state() != device.state()) return nullptr;
    Block& block = block_of(memory);
    if (auto* own = std::get_if<Bytes>(&block.source)) return own;
    auto* const tenancy = std::get_if<std::unique_ptr<Tenancy>>(&block.source);
    return tenancy != nullptr ? &(*tenancy)->buffer() : nullptr;
}

}  // namespace isthmus::gst
