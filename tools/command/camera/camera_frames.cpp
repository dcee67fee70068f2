// SPDX-License-Identifier: Apache-2.0
// A camera's buffers: adopted where the driver exports them, otherwise pages of this process.
#include "camera_frames.hpp"

#include <isthmus/capability.hpp>

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

namespace isthmus::tools::camera {

AdoptDmaBuf adopt_by_device() {
    return [](Device& device, const FileDescriptor& dma_buf, std::size_t bytes, const AdoptOptions& options) {
        return device.adopt_dma_buf<std::uint8_t>(dma_buf.get(), bytes, options);
    };
}

Result<CameraFrames> CameraFrames::create(Device& device, std::unique_ptr<VideoDevice> camera, std::uint32_t count,
                                          std::optional<MemoryKind> kind, const AdoptDmaBuf& adopt) {
    CameraFrames frames(std::move(camera));
    Result<void> made = frames.adopt_all(device, count, kind, adopt);
    if (!made && made.code() == Code::unsupported) {
        frames.buffers_.clear();
        frames.camera_->give_up_buffers();
        made = frames.allocate_all(device, count, kind);
    }
    if (!made) return std::move(made).error();
    frames.lent_.resize(frames.buffers_.size());
    return frames;
}

// The camera writes until it is closed: views and buffers end behind it.
CameraFrames::~CameraFrames() {
    camera_.reset();
}

Result<void> CameraFrames::adopt_all(Device& device, std::uint32_t count, std::optional<MemoryKind> kind,
                                     const AdoptDmaBuf& adopt) {
    memory_ = CameraMemory::driver;
    const Result<std::uint32_t> made = camera_->request(memory_, count);
    if (!made) return made.error();
    AdoptOptions options;
    options.use = {.host = Use::reads_and_writes, .device = Use::reads_once, .kind = kind};
    for (std::uint32_t index = 0; index < *made; ++index) {
        const Result<FileDescriptor> dma_buf = camera_->export_buffer(index);
        if (!dma_buf) return dma_buf.error();
        Result<Buffer<std::uint8_t>> buffer = adopt(device, *dma_buf, camera_->frames().shape.size_bytes, options);
        if (!buffer) return std::move(buffer).error();
        buffers_.push_back(std::move(buffer).value());
    }
    return {};
}

// Drivers pin the pages: these must be ordinary ones, which pinned memory of a GPU's driver need not have.
Result<void> CameraFrames::allocate_all(Device& device, std::uint32_t count, std::optional<MemoryKind> kind) {
    memory_ = CameraMemory::user;
    const Result<std::uint32_t> made = camera_->request(memory_, count);
    if (!made) return made.error();
    const long page = ::sysconf(_SC_PAGESIZE);
    SharedUse use{.host = Use::reads_and_writes, .device = Use::reads_once, .kind = kind};
    use.alignment_bytes = page > 0 ? static_cast<std::size_t>(page) : 4096;
    const bool reached = device.is_cpu() || device.capabilities().has(Feature::pageable_access);
    if (!kind) use.kind = reached ? MemoryKind::host : MemoryKind::registered;
    for (std::uint32_t index = 0; index < *made; ++index) {
        Result<Buffer<std::uint8_t>> buffer = device.allocate_shared<std::uint8_t>(camera_->frames().memory_bytes, use);
        if (!buffer) return std::move(buffer).error();
        buffers_.push_back(std::move(buffer).value());
    }
    return {};
}

Result<void> CameraFrames::start() {
    for (std::uint32_t index = 0; index < buffers_.size(); ++index) {
        if (Result<void> lent = give_back(index); !lent) return lent;
    }
    return camera_->start();
}

Result<std::optional<std::uint32_t>> CameraFrames::next(int stop_descriptor, int wait_ms) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
    for (;;) {
        const Result<std::optional<FilledBuffer>> filled = camera_->next(stop_descriptor, wait_ms);
        if (!filled) return filled.error();
        if (!*filled) return std::optional<std::uint32_t>();
        lent_[(*filled)->index].reset();
        if ((*filled)->whole) return std::optional<std::uint32_t>((*filled)->index);
        ++broken_;
        if (Result<void> lent = give_back((*filled)->index); !lent) return std::move(lent).error();
        pollfd stop{stop_descriptor, POLLIN, 0};
        if (stop_descriptor >= 0 && ::poll(&stop, 1, 0) > 0) return std::optional<std::uint32_t>();
        if (std::chrono::steady_clock::now() >= until) {
            return Error(Code::timed_out,
                         camera_->name() + " gave only damaged frames for " + std::to_string(wait_ms) + " ms",
                         "look at its cable and its link (dmesg), or ask for a lower frame rate");
        }
    }
}

Result<void> CameraFrames::give_back(std::uint32_t index) {
    Result<HostView<std::uint8_t>> view = buffers_[index].write_on_host();
    if (!view) return std::move(view).error();
    lent_[index].emplace(std::move(view).value());
    if (Result<void> lent = camera_->queue(index, lent_[index]->data()); !lent) {
        lent_[index].reset();
        return lent;
    }
    return {};
}

}  // namespace isthmus::tools::camera
