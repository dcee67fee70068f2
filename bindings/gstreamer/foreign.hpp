// SPDX-License-Identifier: Apache-2.0
// Frames in memory of other GStreamer elements that the device can use in place: dma-bufs, and CUDA memory. All
// elements take them by this adapter.
#pragma once

#include "session.hpp"

#include <isthmus/buffer.hpp>

#include <gst/gst.h>

#include <cstdint>
#include <memory>

namespace isthmus::gst {

// What gst/cuda/gstcudamemory.h of gst-plugins-bad (1.22 and newer) declares. cuda_check.cpp compares them with the
// header where it is installed; no library of it is linked.
inline constexpr char cuda_memory_type[] = "gst.cuda.memory";
inline constexpr char cuda_caps_feature[] = "memory:CUDAMemory";
inline constexpr guint map_cuda = GST_MAP_FLAG_LAST << 1;
// The CPU's copy is newer than the device's memory: a map with map_cuda uploads it; since 1.24 without waiting.
inline constexpr guint cuda_needs_upload = GST_MEMORY_FLAG_LAST << 1;
// Since 1.24: work of a stream is still to be waited for, which a map for the CPU does.
inline constexpr guint cuda_needs_sync = GST_MEMORY_FLAG_LAST << 2;

// Whether the caps ask for memory of its own kind, which no pool or allocator of this plugin makes.
bool wants_foreign_memory(const GstCaps* caps) noexcept;

// Whether a device that refused a dma-buf with this code will refuse it again: other errors may pass.
constexpr bool is_for_good(Code code) noexcept {
    return code == Code::unsupported || code == Code::invalid_argument;
}

// Memory of other owners as a buffer of a device, for as long as it lives. A dma-buf stays adopted with its GstMemory,
// so that each device adopts a pool's memory once; CUDA memory is mapped and adopted for one frame.
class ForeignFrame {
public:
    // Errors: unsupported (the memory is of another kind, or the device does not use it in place), not_ready (CUDA
    // memory whose content is still to come), those of Device::adopt() and Device::adopt_dma_buf(). The debug log says
    // once why frames of a kind are not used in place.
    static Result<ForeignFrame> of(GstMemory* memory, const OpenSession& opened);
    ForeignFrame(ForeignFrame&& other) noexcept;
    ForeignFrame& operator=(ForeignFrame&&) = delete;
    ForeignFrame(const ForeignFrame&) = delete;
    ForeignFrame& operator=(const ForeignFrame&) = delete;
    ~ForeignFrame();
    const Buffer<std::uint8_t>& buffer() const noexcept { return *buffer_; }

private:
    explicit ForeignFrame(std::shared_ptr<Buffer<std::uint8_t>> buffer) : buffer_(std::move(buffer)) {}
    static Result<ForeignFrame> of_dma_buf(GstMemory* memory, const OpenSession& opened);
    static Result<ForeignFrame> of_cuda(GstMemory* memory, const OpenSession& opened);

    std::shared_ptr<Buffer<std::uint8_t>> buffer_;
    GstMemory* mapped_ = nullptr;  // unmapped behind the buffer; null: none
    GstMapInfo map_{};
};

}  // namespace isthmus::gst
