// SPDX-License-Identifier: Apache-2.0
// Adopts frames of other elements.
#include "foreign.hpp"

#include <gst/allocators/gstdmabuf.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// What a device has of a dma-buf: adopted, or refused for good. The session outlives the buffer.
struct Adopted {
    std::shared_ptr<Session> session;
    const void* device = nullptr;
    gsize offset = 0, bytes = 0;
    std::shared_ptr<Bytes> buffer;  // null: refused
    std::optional<Error> refusal{};
};
using AdoptedByDevices = std::vector<Adopted>;

GQuark adopted_quark() {
    static const GQuark quark = g_quark_from_static_string("isthmus-adopted-dma-buf");
    return quark;
}

// Once in a process: the same holds for each frame.
void tell_once(std::atomic<bool>& told, const char* what, std::string_view why) {
    if (!told.exchange(true, std::memory_order_relaxed)) {  // a flag alone
        GST_INFO("%s is copied, because the device cannot use it in place: %s", what, std::string(why).c_str());
    }
}

// Whether the device's memory has its content only after an upload, or after work of the memory's stream. A map for the
// CPU waits for that.
bool is_behind(const GstMemory* memory) {
    return (GST_MINI_OBJECT_FLAGS(memory) & (cuda_needs_upload | cuda_needs_sync)) != 0;
}

}  // namespace

ForeignFrame::ForeignFrame(ForeignFrame&& other) noexcept
    : buffer_(std::move(other.buffer_)), mapped_(std::exchange(other.mapped_, nullptr)), map_(other.map_) {}

ForeignFrame::~ForeignFrame() {
    buffer_.reset();
    if (mapped_ != nullptr) gst_memory_unmap(mapped_, &map_);
}

bool wants_foreign_memory(const GstCaps* caps) noexcept {
    const GstCapsFeatures* const features = caps != nullptr ? gst_caps_get_features(caps, 0) : nullptr;
    return features != nullptr && (gst_caps_features_contains(features, cuda_caps_feature) != FALSE ||
                                   gst_caps_features_contains(features, GST_CAPS_FEATURE_MEMORY_DMABUF) != FALSE);
}

Result<ForeignFrame> ForeignFrame::of(GstMemory* memory, const OpenSession& opened) {
    if (gst_is_dmabuf_memory(memory) != FALSE) return of_dma_buf(memory, opened);
    if (gst_memory_is_type(memory, cuda_memory_type) != FALSE) return of_cuda(memory, opened);
    return Error(Code::unsupported, "the memory is neither a dma-buf nor CUDA memory");
}

Result<ForeignFrame> ForeignFrame::of_dma_buf(GstMemory* memory, const OpenSession& opened) {
    GstMiniObject* const object = GST_MINI_OBJECT_CAST(memory);
    const void* const device = opened.device->state().get();
    static std::mutex lock;  // elements of several branches may have the memory
    const std::lock_guard locked(lock);
    auto* known = static_cast<AdoptedByDevices*>(gst_mini_object_get_qdata(object, adopted_quark()));
    if (known == nullptr) {
        known = std::make_unique<AdoptedByDevices>().release();
        gst_mini_object_set_qdata(object, adopted_quark(), known,
                                  [](gpointer all) { delete static_cast<AdoptedByDevices*>(all); });
    }
    const auto of_device =
        std::find_if(known->begin(), known->end(), [&](const Adopted& one) { return one.device == device; });
    if (of_device != known->end()) {
        if (of_device->offset == memory->offset && of_device->bytes == memory->size) {
            if (of_device->refusal) return *of_device->refusal;
            return ForeignFrame(of_device->buffer);
        }
        known->erase(of_device);  // the earlier one ends first: a device adopts memory once
    }
    Device same_device = *opened.device;
    Result<Bytes> buffer = same_device.adopt_dma_buf<std::uint8_t>(gst_dmabuf_memory_get_fd(memory), memory->size,
                                                                   for_reading(), memory->offset);
    static std::atomic<bool> told{false};
    if (!buffer) {
        tell_once(told, "memory of dma-bufs", buffer.error().text());
        if (is_for_good(buffer.code())) {
            known->push_back({opened.session, device, memory->offset, memory->size, nullptr, buffer.error()});
        }
        return std::move(buffer).error();
    }
    // A copy on the device would be that of the first frame: nothing tells it that the camera filled the memory again.
    if (buffer->path() == LaunchPath::stage) {
        tell_once(told, "memory of dma-bufs", buffer->explain());
        Error refusal(Code::unsupported,
                      "the device does not use the dma-buf in place: " + std::string(buffer->explain()));
        known->push_back({opened.session, device, memory->offset, memory->size, nullptr, refusal});
        return refusal;
    }
    GST_DEBUG("a dma-buf is used as %s", std::string(buffer->explain()).c_str());
    auto adopted = std::make_shared<Bytes>(std::move(buffer).value());
    known->push_back({opened.session, device, memory->offset, memory->size, adopted});
    return ForeignFrame(std::move(adopted));
}

// A kernel of the runtime's primary context reaches memory of GStreamer's own context on the same device (observed:
// driver 580, CUDA 13.0); memory of another device is refused by adopt().
Result<ForeignFrame> ForeignFrame::of_cuda(GstMemory* memory, const OpenSession& opened) {
    if (opened.device->is_cpu()) return Error(Code::unsupported, "the CPU device has no CUDA memory");
    if (is_behind(memory)) return Error(Code::not_ready, "the CUDA memory waits for an upload, or for its stream");
    ForeignFrame frame(nullptr);
    // Beyond the values that GstMapFlags names, so that a static_cast would not be defined.
    const auto flags = std::bit_cast<GstMapFlags>(static_cast<guint>(GST_MAP_READ) | map_cuda);
    if (gst_memory_map(memory, &frame.map_, flags) == FALSE) {
        return Error(Code::not_accessible, "the CUDA memory cannot be mapped with GST_MAP_CUDA");
    }
    frame.mapped_ = memory;
    if (is_behind(memory)) return Error(Code::not_ready, "the map of the CUDA memory began an upload");
    Device same_device = *opened.device;
    Result<Bytes> buffer = same_device.adopt<std::uint8_t>(frame.map_.data, frame.map_.size, for_reading());
    if (!buffer) {
        static std::atomic<bool> told{false};
        tell_once(told, "CUDA memory", buffer.error().text());
        return std::move(buffer).error();
    }
    frame.buffer_ = std::make_shared<Bytes>(std::move(buffer).value());
    return frame;
}

}  // namespace isthmus::gst
