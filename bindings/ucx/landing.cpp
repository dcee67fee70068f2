// SPDX-License-Identifier: Apache-2.0
// Rings are filled where local readers get the frames. Device memory is filled by UCX where that knows CUDA, otherwise
// from pinned host memory by a copy on a stream.
#include "landing.hpp"

#include <isthmus/native_work.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace ucx {
namespace {

using Bytes = Buffer<std::uint8_t>;

Wait short_wait(bool first) {
    return first ? Wait::at_most(std::chrono::milliseconds(1)) : Wait::never();
}

class RingPlace final : public Place {
public:
    RingPlace(SharedFrameToFill<std::uint8_t> frame, HostView<std::uint8_t> view, std::mutex* guard)
        : guard_(guard), frame_(std::move(frame)), view_(std::move(view)) {
        data_ = view_->data();
    }
    ~RingPlace() override {
        view_.reset();
        const std::unique_lock<std::mutex> locked = lock(guard_);
        frame_.reset();
    }
    Result<void> end(bool whole, std::uint64_t) override {
        view_.reset();
        const std::unique_lock<std::mutex> locked = lock(guard_);
        if (whole) {
            if (Result<void> published = frame_->publish(); !published) return published;
        }
        frame_.reset();
        return {};
    }
    static std::unique_lock<std::mutex> lock(std::mutex* guard) {
        return guard == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*guard);
    }

private:
    std::mutex* guard_;
    std::optional<SharedFrameToFill<std::uint8_t>> frame_;
    std::optional<HostView<std::uint8_t>> view_;
};

class RingLanding final : public Landing {
public:
    RingLanding(SharedFrameRing<std::uint8_t>& ring, std::mutex* guard) : ring_(ring), guard_(guard) {}
    Result<std::unique_ptr<Place>> begin(bool first) override {
        Result<SharedFrameToFill<std::uint8_t>> frame = [&] {
            const std::unique_lock<std::mutex> locked = RingPlace::lock(guard_);
            return ring_.begin_frame(short_wait(first));
        }();
        if (!frame) return std::move(frame).error();
        Result<HostView<std::uint8_t>> view = frame->buffer().write_on_host();
        if (!view) {
            const std::unique_lock<std::mutex> locked = RingPlace::lock(guard_);
            const SharedFrameToFill<std::uint8_t> abandoned = std::move(frame).value();  // destroyed under the guard
            return std::move(view).error();
        }
        return std::unique_ptr<Place>(
            std::make_unique<RingPlace>(std::move(frame).value(), std::move(view).value(), guard_));
    }
    std::size_t ahead() const noexcept override { return ring_.frames_ahead(); }
    Result<void> map(ucx_wire::Worker& worker) override {
        for (std::size_t slot = 0; slot < ring_.slots(); ++slot) {
            Result<HostView<const std::uint8_t>> view = ring_.buffer(slot).read_on_host();
            if (!view) return std::move(view).error();
            worker.map(const_cast<std::uint8_t*>(view->span().data()), view->span().size());
        }
        return {};
    }

private:
    SharedFrameRing<std::uint8_t>& ring_;
    std::mutex* guard_;
};

// A buffer of the program that is being filled.
class BufferPlace : public Place {
public:
    BufferPlace(std::shared_ptr<ReceivedFrame::Slots> slots, std::size_t slot)
        : slots_(std::move(slots)), slot_(slot) {}
    ~BufferPlace() override {
        view_.reset();  // before the buffer is free for the next frame
        if (slots_) give_back();
    }

protected:
    Bytes& buffer() noexcept { return slots_->buffers[slot_]; }
    // For places that the CPU fills: the buffer itself, or one beside it.
    Result<void> open_view(Bytes& into, Wait wait) {
        Result<HostView<std::uint8_t>> view = into.write_on_host(wait);
        if (!view) return std::move(view).error();
        view_.emplace(std::move(view).value());
        data_ = view_->data();
        return {};
    }
    std::optional<HostView<std::uint8_t>> view_{};  // open while UCX fills the place
    void show(bool whole, std::uint64_t missed) {
        if (!whole) {
            give_back();
            const std::lock_guard locked(slots_->mutex);
            slots_->missed += missed + 1;
        } else {
            const std::lock_guard locked(slots_->mutex);
            slots_->ready.push_back({slot_, slots_->shown++, std::exchange(slots_->missed, 0) + missed});
        }
        slots_.reset();
    }

private:
    void give_back() {
        const std::lock_guard locked(slots_->mutex);
        slots_->free.push_back(slot_);
    }
    std::shared_ptr<ReceivedFrame::Slots> slots_;
    std::size_t slot_;
};

class VisiblePlace final : public BufferPlace {
public:
    using BufferPlace::BufferPlace;
    Result<void> open(Wait wait) { return open_view(buffer(), wait); }
    Result<void> end(bool whole, std::uint64_t missed) override {
        view_.reset();
        show(whole, missed);
        return {};
    }
};

// UCX writes into a bounce buffer. The copy to the device is behind what the program gave the stream for the buffer,
// and the bounce buffer's next view waits for the copy.
class CopiedPlace final : public BufferPlace {
public:
    CopiedPlace(std::shared_ptr<ReceivedFrame::Slots> slots, std::size_t slot, Stream& stream, Bytes& bounce)
        : BufferPlace(std::move(slots), slot), stream_(stream), bounce_(bounce) {}
    Result<void> open(Wait wait) { return open_view(bounce_, wait); }
    Result<void> end(bool whole, std::uint64_t missed) override {
        view_.reset();
        if (whole) {
            // In a capture the copy would be recorded, and not done.
            if (Result<bool> asked = stream_.finished(); !asked) return std::move(asked).error();
            if (Result<void> copied = stream_.copy(buffer(), bounce_); !copied) return copied;
        }
        show(whole, missed);
        return {};
    }

private:
    Stream& stream_;
    Bytes& bounce_;
};

// UCX writes into device memory, by streams of its own: the buffer is claimed, and idle, until the frame is here.
class DevicePlace final : public BufferPlace {
public:
    using BufferPlace::BufferPlace;
    Result<void> open(Stream& stream, void* registered, Wait wait) {
        Result<NativeScope<NativeUse<std::uint8_t>>> scope =
            stream.open_native_scope("frames over UCX", writes(buffer()));
        if (!scope) return std::move(scope).error();
        scope_.emplace(std::move(scope).value());
        if (Result<void> idle = stream.synchronize(wait); !idle) return idle;
        data_ = scope_->get<0>();
        device_ = registered;
        return {};
    }
    Result<void> end(bool whole, std::uint64_t missed) override {
        if (Result<std::uint64_t> closed = scope_->close(); !closed) return std::move(closed).error();
        show(whole, missed);
        return {};
    }

private:
    std::optional<NativeScope<NativeUse<std::uint8_t>>> scope_{};
};

class BufferLanding final : public Landing {
public:
    BufferLanding(std::shared_ptr<ReceivedFrame::Slots> slots, ReceivePath path, const Stream& stream,
                  std::vector<Bytes> bounces, std::vector<void*> device_memory)
        : slots_(std::move(slots)),
          path_(path),
          stream_(stream),
          bounces_(std::move(bounces)),
          device_memory_(std::move(device_memory)) {}
    Result<std::unique_ptr<Place>> begin(bool first) override {
        std::size_t slot = 0;
        {
            const std::lock_guard locked(slots_->mutex);
            if (slots_->free.empty()) return Error(Code::not_ready, "all buffers are in use");
            // The one that was given back first: its work on the device has had the most time.
            slot = slots_->free.front();
            slots_->free.erase(slots_->free.begin());
        }
        const Wait wait = short_wait(first);
        if (path_ == ReceivePath::in_place) return opened(std::make_unique<VisiblePlace>(slots_, slot), wait);
        if (path_ == ReceivePath::pinned_copy) {
            Bytes& bounce = bounces_[next_bounce_];
            Result<std::unique_ptr<Place>> place =
                opened(std::make_unique<CopiedPlace>(slots_, slot, stream_, bounce), wait);
            if (place) next_bounce_ = (next_bounce_ + 1) % bounces_.size();
            return place;
        }
        auto place = std::make_unique<DevicePlace>(slots_, slot);
        if (Result<void> open = place->open(stream_, device_memory_[slot], wait); !open) return std::move(open).error();
        return std::unique_ptr<Place>(std::move(place));
    }
    std::size_t ahead() const noexcept override { return bounces_.empty() ? slots_->buffers.size() : bounces_.size(); }
    Result<void> map(ucx_wire::Worker& worker) override {
        if (path_ == ReceivePath::ucx_cuda) return {};  // registered, or the path would be another
        for (Bytes& each : path_ == ReceivePath::in_place ? slots_->buffers : bounces_) {
            Result<HostView<std::uint8_t>> view = each.write_on_host();
            if (!view) return std::move(view).error();
            worker.map(view->data(), view->size());
        }
        return {};
    }
    Result<void> with_context(const std::function<void()>& calls) override {
        return path_ == ReceivePath::ucx_cuda ? ucx::with_context(stream_, calls) : Landing::with_context(calls);
    }

private:
    template <class P>
    static Result<std::unique_ptr<Place>> opened(std::unique_ptr<P> place, Wait wait) {
        if (Result<void> open = place->open(wait); !open) return std::move(open).error();
        return std::unique_ptr<Place>(std::move(place));
    }
    std::shared_ptr<ReceivedFrame::Slots> slots_;
    ReceivePath path_;
    Stream stream_;
    std::vector<Bytes> bounces_;  // in turn: places end in the order in which they begin
    std::size_t next_bounce_ = 0;
    std::vector<void*> device_memory_;  // of each slot, as UCX registered it
};

}  // namespace

std::unique_ptr<Landing> make_landing(SharedFrameRing<std::uint8_t>& ring, std::mutex* guard) {
    return std::make_unique<RingLanding>(ring, guard);
}

Result<std::unique_ptr<Landing>> make_landing(Device& device, const Stream& stream,
                                              const std::shared_ptr<ReceivedFrame::Slots>& slots,
                                              std::uint64_t frame_bytes, ReceivePath path,
                                              std::vector<void*> device_memory) {
    std::vector<Bytes> bounces;
    if (path == ReceivePath::pinned_copy) {
        const std::size_t count = std::min(ucx_wire::most_on_their_way(frame_bytes), slots->buffers.size());
        for (std::size_t at = 0; at < count; ++at) {
            Result<Bytes> bounce = device.allocate<std::uint8_t>(frame_bytes, MemoryKind::pinned);
            if (!bounce) return std::move(bounce).error();
            bounces.push_back(std::move(bounce).value());
        }
    }
    return std::unique_ptr<Landing>(
        std::make_unique<BufferLanding>(slots, path, stream, std::move(bounces), std::move(device_memory)));
}

Result<void> with_context(Stream& stream, const std::function<void()>& calls) {
    Result<std::uint64_t> called = stream.enqueue_native("UCX with CUDA", [&](void*) {
        calls();
        return Result<void>();
    });
    if (!called) return std::move(called).error();
    return {};
}

Result<bool> cpu_sees(Bytes& buffer) {
    const Result<HostView<std::uint8_t>> view = buffer.write_on_host();
    if (view) return true;
    if (view.code() == Code::not_accessible) return false;
    return view.error();
}

std::string_view name(ReceivePath path) noexcept {
    switch (path) {
        case ReceivePath::in_place: return "in place: UCX writes into the buffers";
        case ReceivePath::ucx_cuda: return "device memory: UCX with CUDA";
        case ReceivePath::pinned_copy: return "copied through pinned host memory";
    }
    return "unknown";
}

ReceivedFrame::ReceivedFrame(std::shared_ptr<Slots> slots, std::size_t slot, std::uint64_t number,
                             std::uint64_t missed) noexcept
    : slots_(std::move(slots)), slot_(slot), number_(number), missed_(missed) {}
ReceivedFrame::ReceivedFrame(ReceivedFrame&&) noexcept = default;
ReceivedFrame& ReceivedFrame::operator=(ReceivedFrame&& other) noexcept {
    if (this != &other) {
        give_back();
        slots_ = std::move(other.slots_);
        slot_ = other.slot_;
        number_ = other.number_;
        missed_ = other.missed_;
    }
    return *this;
}
ReceivedFrame::~ReceivedFrame() {
    give_back();
}
Bytes& ReceivedFrame::buffer() const noexcept {
    return slots_->buffers[slot_];
}
void ReceivedFrame::give_back() noexcept {
    const std::shared_ptr<Slots> slots = std::move(slots_);
    if (!slots) return;
    const std::lock_guard locked(slots->mutex);
    slots->free.push_back(slot_);  // reserved
}

}  // namespace ucx
}  // namespace v0
}  // namespace isthmus
