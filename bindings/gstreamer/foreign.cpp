// SPDX-License-Identifier: Apache-2.0
// Adopts frames of other elements.
#include "foreign.hpp"

#include <gst/allocators/gstdmabuf.h>

#include <atomic>
#include <bit>
#include <mutex>
#include <string>
#include <utility>

#define GST_CAT_DEFAULT debug_category()

namespace isthmus::gst {
namespace {

using Bytes = Buffer<std::uint8_t>;

// The elements read frames: a dma-buf for reading only can be adopted, too.
AdoptOptions for_reading() {
    AdoptOptions options;
    options.use = {.host = Use::reads_once, .device = Use::reads_once};
    return options;
}

// A dma-buf that is adopted, or that cannot be. The session outlives the buffer.
struct Adopted {
    std::shared_ptr<Session> session;
    const void* device = nullptr;
    gsize offset = 0, bytes = 0;
    std::shared_ptr<Bytes> buffer;
};

GQuark adopted_quark() {
    static const GQuark quark = g_quark_from_static_string("isthmus-adopted-dma-buf");
    return quark;
}

// Once in a process: the same holds for each frame.
void tell_once(std::atomic<bool>& told, const char* what, const Error& why) {
    if (!told.exchange(true, std::memory_order_relaxed)) {  // a flag alone
        GST_INFO("%s is copied, because the device cannot use it in place: %s", what, why.text().c_str());
    }
}

}  // namespace

ForeignFrame::ForeignFrame(ForeignFrame&& other) noexcept
    : buffer_(std::move(other.buffer_)), mapped_(std::exchange(other.mapped_, nullptr)), map_(other.map_) {}

ForeignFrame::~ForeignFrame() {
    buffer_.reset();
    if (mapped_ != nullptr) gst_memory_unmap(mapped_, &map_);
}

std::optional<ForeignFrame> ForeignFrame::of(GstMemory* memory, const OpenSession& opened) {
    if (gst_is_dmabuf_memory(memory) != FALSE) return of_dma_buf(memory, opened);
    if (gst_memory_is_type(memory, cuda_memory_type) != FALSE) return of_cuda(memory, opened);
    return std::nullopt;
}

std::optional<ForeignFrame> ForeignFrame::of_dma_buf(GstMemory* memory, const OpenSession& opened) {
    GstMiniObject* const object = GST_MINI_OBJECT_CAST(memory);
    const void* const device = opened.device->state().get();
    static std::mutex lock;  // elements of several branches may have the memory
    const std::lock_guard locked(lock);
    auto* known = static_cast<Adopted*>(gst_mini_object_get_qdata(object, adopted_quark()));
    const bool same =
        known != nullptr && known->device == device && known->offset == memory->offset && known->bytes == memory->size;
    if (!same) {
        // The earlier one ends first: memory is adopted once.
        gst_mini_object_set_qdata(object, adopted_quark(), nullptr, nullptr);
        auto made = std::make_unique<Adopted>();
        made->session = opened.session;
        made->device = device;
        made->offset = memory->offset;
        made->bytes = memory->size;
        Device same_device = *opened.device;
        Result<Bytes> buffer = same_device.adopt_dma_buf<std::uint8_t>(gst_dmabuf_memory_get_fd(memory), memory->size,
                                                                       for_reading(), memory->offset);
        if (buffer) {
            GST_DEBUG("a dma-buf is used as %s", std::string(buffer->explain()).c_str());
            made->buffer = std::make_shared<Bytes>(std::move(buffer).value());
        } else {
            static std::atomic<bool> told{false};
            tell_once(told, "memory of dma-bufs", buffer.error());
        }
        known = made.release();
        gst_mini_object_set_qdata(object, adopted_quark(), known,
                                  [](gpointer adopted) { delete static_cast<Adopted*>(adopted); });
    }
    if (known->buffer == nullptr) return std::nullopt;
    return ForeignFrame(known->buffer);
}

// A kernel of the runtime's primary context reaches memory of GStreamer's own context on the same device (observed:
// driver 580, CUDA 13.0); memory of another device is refused by adopt().
std::optional<ForeignFrame> ForeignFrame::of_cuda(GstMemory* memory, const OpenSession& opened) {
    if (opened.device->is_cpu() || (GST_MINI_OBJECT_FLAGS(memory) & cuda_needs_sync) != 0) return std::nullopt;
    ForeignFrame frame(nullptr);
    // Beyond the values that GstMapFlags names, so that a static_cast would not be defined.
    const auto flags = std::bit_cast<GstMapFlags>(static_cast<guint>(GST_MAP_READ) | map_cuda);
    if (gst_memory_map(memory, &frame.map_, flags) == FALSE) {
        return std::nullopt;
    }
    frame.mapped_ = memory;
    Device same_device = *opened.device;
    Result<Bytes> buffer = same_device.adopt<std::uint8_t>(frame.map_.data, frame.map_.size, for_reading());
    if (!buffer) {
        static std::atomic<bool> told{false};
        tell_once(told, "CUDA memory", buffer.error());
        return std::nullopt;
    }
    frame.buffer_ = std::make_shared<Bytes>(std::move(buffer).value());
    return frame;
}

}  // namespace isthmus::gst
