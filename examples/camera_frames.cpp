// SPDX-License-Identifier: Apache-2.0
// How to use frames of a V4L2 camera in place: the camera's driver allocates and owns them.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t frame_bytes = 640 * 480;
constexpr std::size_t buffers = 4;
constexpr int frames = 20;

// Stands for the driver of a V4L2 camera (memory type V4L2_MEMORY_MMAP). Each function names the call that it stands
// for. Its thread writes frame after frame into the queued buffers.
class Camera {
public:
    Camera() {  // VIDIOC_REQBUFS, VIDIOC_QUERYBUF and mmap
        const int memory = memfd_create("frames", MFD_CLOEXEC);
        if (memory < 0 || ftruncate(memory, static_cast<off_t>(buffers * frame_bytes)) != 0) std::abort();
        for (std::size_t index = 0; index < buffers; ++index) {
            void* mapped = mmap(nullptr, frame_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory,
                                static_cast<off_t>(index * frame_bytes));
            if (mapped == MAP_FAILED) std::abort();
            mapped_[index] = static_cast<std::uint8_t*>(mapped);
        }
        close(memory);
        thread_ = std::thread([this] { expose(); });  // VIDIOC_STREAMON
    }
    Camera(const Camera&) = delete;
    Camera& operator=(const Camera&) = delete;
    ~Camera() {
        stop();
        for (std::uint8_t* frame : mapped_) munmap(frame, frame_bytes);
    }
    void stop() {  // VIDIOC_STREAMOFF: writes no frame any more
        {
            const std::lock_guard lock(mutex_);
            stopped_ = true;
        }
        changed_.notify_all();
        if (thread_.joinable()) thread_.join();
    }
    std::uint8_t* frame(std::size_t index) const { return mapped_[index]; }
    void queue(std::size_t index) {  // VIDIOC_QBUF
        const std::lock_guard lock(mutex_);
        queued_.push_back(index);
        changed_.notify_all();
    }
    std::size_t dequeue() {  // VIDIOC_DQBUF: waits for a frame, gives the index of its buffer
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !exposed_.empty(); });
        const std::size_t index = exposed_.front();
        exposed_.pop_front();
        return index;
    }

private:
    void expose() {
        std::unique_lock lock(mutex_);
        for (std::uint8_t number = 0;; ++number) {
            changed_.wait(lock, [&] { return stopped_ || !queued_.empty(); });
            if (stopped_) return;
            const std::size_t index = queued_.front();
            queued_.pop_front();
            lock.unlock();
            for (std::size_t at = 0; at < frame_bytes; ++at) mapped_[index][at] = number;
            lock.lock();
            exposed_.push_back(index);
            changed_.notify_all();
        }
    }
    std::array<std::uint8_t*, buffers> mapped_{};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::size_t> queued_;
    std::deque<std::size_t> exposed_;
    bool stopped_ = false;
    std::thread thread_;
};

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    Camera camera;  // lives longer than the buffers below: its memory has to stay mapped until `release` was called
    int released = 0;
    int right = 0;
    {
        // show: adopt
        // Adopt each buffer of the camera once, before streaming.
        std::vector<isthmus::Buffer<std::uint8_t>> adopted;
        for (std::size_t index = 0; index < buffers; ++index) {
            isthmus::AdoptOptions options;
            options.use = {.prefer = isthmus::Prefer::latency};                 // in place where possible, at any size
            options.release = [&released](void*, std::size_t) { ++released; };  // from here on it may be unmapped
            adopted.push_back(device.adopt<std::uint8_t>(camera.frame(index), frame_bytes, std::move(options)).value());
        }
        std::printf("frames: %.*s\n", static_cast<int>(adopted[0].explain().size()), adopted[0].explain().data());
        // end

        // show: loop
        // While the camera has a buffer, a write view of it is open: no kernel can use a half-written frame.
        std::array<std::optional<isthmus::HostView<std::uint8_t>>, buffers> with_camera;
        for (std::size_t index = 0; index < buffers; ++index) {
            with_camera[index] = adopted[index].write_on_host().value();
            camera.queue(index);
        }
        for (int number = 0; number < frames; ++number) {
            const std::size_t index = camera.dequeue();
            with_camera[index].reset();  // the camera has finished this frame
            device.launch(brighten, frame_bytes, adopted[index], 40).value();
            {
                auto pixels = adopted[index].read_on_host().value();  // waits for the kernel
                if (pixels[0] == number + 40 && pixels[frame_bytes - 1] == number + 40) ++right;
            }
            with_camera[index] = adopted[index].write_on_host().value();  // waits for kernels that still use it
            camera.queue(index);
        }
        camera.stop();  // before the views close and the buffers end
        // end
    }
    std::printf("%d of %d frames were right; %d buffers released\n", right, frames, released);
    return right == frames && released == static_cast<int>(buffers) ? 0 : 1;
}
