// SPDX-License-Identifier: Apache-2.0
// Takes frame after frame, and counts those that stayed complete to the end.
#include "viewing.hpp"

#include "camera/stop_signal.hpp"
#include "meeting.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace isthmus::tools::share {
namespace {

using camera::StopSignal;
using Clock = std::chrono::steady_clock;
using Reader = SharedFrameReader<std::uint8_t>;

std::chrono::nanoseconds of_seconds(double seconds) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

// The device's work on frames, in place where possible.
class Corners {
public:
    static Result<Corners> create(Device& device, const camera::FrameShape& shape) {
        camera::FinderOptions options;
        options.shape = shape;
        options.rule = {.threshold = 2000, .radius = 5, .border = 8};
        options.in_flight = 1;
        options.own_frames = false;
        Result<camera::CornerFinder> finder = camera::CornerFinder::create(device, options);
        if (!finder) return std::move(finder).error();
        return Corners(std::move(finder).value());
    }
    Result<void> look(const Buffer<std::uint8_t>& frame) {
        if (Result<void> submitted = finder_.submit(frame); !submitted) return submitted;
        {
            Result<camera::FoundCorners> found = finder_.corners();
            if (!found) return std::move(found).error();
            const auto list = found->list.span().first(std::min<std::size_t>(found->count.listed, found->list.size()));
            found_.assign(list.begin(), list.end());
        }
        finder_.finish();
        return {};
    }
    void accept(Viewed& viewed) const {
        viewed.corners += found_.size();
        viewed.corners_digest.add_corners(found_);
    }

private:
    explicit Corners(camera::CornerFinder finder) : finder_(std::move(finder)) {}
    camera::CornerFinder finder_;
    std::vector<kernels::Corner> found_{};
};

// Processes one frame, and counts it if it stayed complete to the end.
Result<void> look_at(SharedFrame<std::uint8_t> frame, std::optional<Corners>& corners, const ViewOptions& options,
                     Viewed& viewed) {
    viewed.missed += frame.missed();
    {
        Result<HostView<const std::uint8_t>> view = frame.buffer().read_on_host();
        if (!view) return std::move(view).error();
        viewed.checksums.add(frame.number(), view->span());
    }
    if (corners) {
        if (Result<void> looked = corners->look(frame.buffer()); !looked) return looked;
    }
    if (options.work_ms > 0) std::this_thread::sleep_for(of_seconds(options.work_ms / 1e3));
    Result<void> whole = frame.finish();
    if (!whole && whole.code() == Code::overtaken) {
        ++viewed.overtaken;
        return {};
    }
    if (!whole) return whole;
    ++viewed.frames;
    viewed.checksums.accept();
    if (corners) corners->accept(viewed);
    return {};
}

Result<void> take_all(Reader& reader, std::optional<Corners>& corners, const ViewOptions& options, Viewed& viewed) {
    Clock::time_point last = Clock::now();
    while (StopSignal::received() == 0) {
        if (options.frames != 0 && viewed.frames >= options.frames) {
            viewed.end = "frames";
            return {};
        }
        Result<SharedFrame<std::uint8_t>> frame = reader.next_frame(Wait::at_most(std::chrono::milliseconds(100)));
        if (!frame && frame.code() == Code::ended) {
            viewed.end = "closed";
            return {};
        }
        if (!frame && frame.code() == Code::timed_out && Clock::now() - last < of_seconds(options.patience_s)) continue;
        if (!frame) return std::move(frame).error();
        last = Clock::now();
        if (Result<void> looked = look_at(std::move(frame).value(), corners, options, viewed); !looked) return looked;
    }
    viewed.end = "signal";
    return {};
}

}  // namespace

Result<void> view_frames(Device& device, const ViewOptions& options, Viewed& viewed) {
    Result<OpenedRing> ring = open_ring(
        device,
        {.at = options.at,
         .connect_deadline = of_seconds(options.connect_s),
         .waiting = options.waiting,
         .stopped = [&options] { return StopSignal::received() != 0 || (options.hopeless && options.hopeless()); },
         .producer = options.producer});
    if (!ring) return std::move(ring).error();
    if (viewed.frames != 0 && ring->shape != viewed.shape) {
        return Error(Code::peer_lost, "the frames have another shape now", "start the view again");
    }
    viewed.shape = ring->shape;
    Reader& reader = ring->reader;
    const BufferBase& buffer = reader.buffer(0);
    viewed.kind = name(buffer.kind());
    viewed.path = name(buffer.path());
    viewed.reason = buffer.explain();
    viewed.policy = reader.policy() == SlowReaderPolicy::wait ? "wait" : "drop";
    std::optional<Corners> corners;
    if (options.corners) {
        Result<Corners> made = Corners::create(device, viewed.shape);
        if (!made) return std::move(made).error();
        corners.emplace(std::move(made).value());
    }
    const Clock::time_point begin = Clock::now();
    Result<void> taken = take_all(reader, corners, options, viewed);
    viewed.wall += Clock::now() - begin;
    return taken;
}

}  // namespace isthmus::tools::share
