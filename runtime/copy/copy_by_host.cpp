// SPDX-License-Identifier: Apache-2.0
// Copies in which the calling thread takes part: loops over host memory, and pageable memory through bounce buffers.
#include "copy.hpp"

#include "buffer_state.hpp"
#include "copy_bounce.hpp"
#include "copy_errors.hpp"
#include "device_state.hpp"
#include "operation.hpp"
#include "stream_state.hpp"

#include <cstring>
#include <deque>
#include <optional>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

std::byte* pointer(std::uint64_t address) {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

// Keeps both sides open for the host during its lifetime.
struct HostSides {
    std::optional<ViewScope> from, to;
    std::byte* source = nullptr;
    std::byte* destination = nullptr;
};

Result<void> open_side(const CopySide& side, ArgumentUse use, const rules::ByteRange& bytes,
                       std::optional<ViewScope>& scope, std::byte*& data) {
    if (!side.buffer) {
        data = pointer(side.span);
        return {};
    }
    Result<ViewScope> opened = open_scope(*side.buffer, use, Wait{}, touched(*side.buffer, bytes));
    if (!opened) return std::move(opened).error();
    scope.emplace(std::move(opened).value());
    data = static_cast<std::byte*>(side.buffer->memory->host);
    return {};
}

// pack() and unpack() copy between a bounce buffer, whose rows are contiguous, and the caller's side.
void pack(std::byte* bounce, const std::byte* from, std::size_t row_pitch, const rules::CopyChunk& chunk) {
    for (std::size_t row = 0; row < chunk.rows; ++row) {
        std::memcpy(bounce + row * chunk.width, from + row * row_pitch, chunk.width);
    }
}
void unpack(std::byte* to, std::size_t row_pitch, const std::byte* bounce, const rules::CopyChunk& chunk) {
    for (std::size_t row = 0; row < chunk.rows; ++row) {
        std::memcpy(to + row * row_pitch, bounce + row * chunk.width, chunk.width);
    }
}

// The driver's copy of one chunk, and the event behind it, whose completion frees the bounce buffer.
class BounceCopy {
public:
    BounceCopy(StreamState& stream, CopyBounce::Range range)
        : stream_(stream), device_(*stream.device), range_(range) {}
    BounceCopy(const BounceCopy&) = delete;
    BounceCopy& operator=(const BounceCopy&) = delete;
    ~BounceCopy() {
        if (unfenced_) {
            device_.copies.bounce.give_up(range_);
        } else {
            device_.copies.bounce.give_back(device_, range_, stream_.id, event_);
        }
    }

    // `bytes`: those of the buffer that the copy touches.
    Result<void> issue(const std::shared_ptr<BufferState>& buffer, ArgumentUse use, const rules::ByteRange& bytes,
                       const DriverCopy& copy, const rules::CopyShape& shape) {
        if (const platform::Status status = device_.take_event(event_); !status.ok()) {
            event_ = nullptr;
            return device_.failure(status, "creating an event");
        }
        Operation operation(stream_, "a copy of pageable memory", nullptr);
        operation.uses(buffer, use, 0);
        operation.only(bytes);
        bool recorded = false;
        Result<std::uint64_t> issued = operation.issue([&] {
            unfenced_ = true;
            platform::Status status = give_to_driver(stream_, copy, shape);
            if (!status.ok()) {
                unfenced_ = shape.rows > 1;  // some rows may be queued; a single call that failed queued nothing
                return status;
            }
            status = device_.execution.record_event(event_->handle, stream_.handle);
            recorded = status.ok();
            unfenced_ = !recorded;
            return status;
        });
        if (!recorded) {
            device_.drop_event(event_);
            event_ = nullptr;
        }
        if (!issued) return std::move(issued).error();
        position_ = *issued;
        return {};
    }
    // Waits for the device's copy. The bounce buffer then belongs to the host.
    Result<void> wait() {
        if (Result<void> waited = stream_.wait_for(event_->handle, position_, Wait{}); !waited) return waited;
        device_.drop_event(event_);
        event_ = nullptr;
        return {};
    }
    std::byte* data() const { return range_.data; }

private:
    StreamState& stream_;
    DeviceState& device_;
    CopyBounce::Range range_;
    FenceEvent* event_ = nullptr;
    bool unfenced_ = false;
    std::uint64_t position_ = 0;
};

// A captured copy would write the bounce buffer, or read it, again at every replay.
Result<void> refuse_in_capture(const DeviceState& device) {
    if (!device.books->captures.here()) return {};
    return make_error<errors::pageable_copy_in_capture>();
}

rules::CopyShape rows_of(const rules::CopyChunk& chunk, std::size_t to_pitch, std::size_t from_pitch) {
    rules::CopyShape shape;
    shape.width = chunk.width;
    shape.rows = chunk.rows;
    shape.to.row = to_pitch;
    shape.from.row = from_pitch;
    return rules::simplest(shape);
}

}  // namespace

ArgumentUse writing(const CopySide& side, const rules::CopyShape& shape) {
    return side.buffer && writes_whole(*side.buffer, shape) ? ArgumentUse::write : ArgumentUse::read_write;
}

Result<void> copy_on_host(const CopyJob& job) {
    HostSides sides;
    if (job.to.buffer && job.to.buffer == job.from.buffer) {  // one view: two would conflict
        if (Result<void> opened = open_side(job.to, ArgumentUse::read_write, {}, sides.to, sides.destination);
            !opened) {
            return opened;
        }
        sides.source = sides.destination;
    } else {
        if (Result<void> opened =
                open_side(job.from, ArgumentUse::read, bytes_of(job.shape, job.shape.from), sides.from, sides.source);
            !opened) {
            return opened;
        }
        if (Result<void> opened = open_side(job.to, writing(job.to, job.shape), bytes_of(job.shape, job.shape.to),
                                            sides.to, sides.destination);
            !opened) {
            return opened;
        }
    }
    const rules::CopyShape& shape = job.shape;
    for (std::size_t z = 0; z < shape.slices; ++z) {
        std::byte* const to = sides.destination + shape.to.offset + z * shape.to.slice;
        const std::byte* const from = sides.source + shape.from.offset + z * shape.from.slice;
        for (std::size_t y = 0; y < shape.rows; ++y) {
            std::memcpy(to + y * shape.to.row, from + y * shape.from.row, shape.width);
        }
    }
    return {};
}

Result<void> bounce_up(StreamState& stream, const CopyJob& job) {
    DeviceState& device = *stream.device;
    if (Result<void> captured = refuse_in_capture(device); !captured) return captured;
    std::optional<ViewScope> scope;
    std::byte* source = nullptr;
    if (Result<void> opened =
            open_side(job.from, ArgumentUse::read, bytes_of(job.shape, job.shape.from), scope, source);
        !opened)
        return opened;
    BufferState& to = *job.to.buffer;
    const Result<std::size_t> done = staged_by_driver(stream, job, true, source);
    if (!done) return done.error();
    if (*done == job.shape.width) return {};
    const rules::CopyShape shape = behind(job.shape, *done);
    const ArgumentUse use = writing(job.to, shape);
    rules::CopyChunks chunks(shape, CopyBounce::buffer_bytes);
    rules::CopyChunk chunk;
    while (chunks.next(chunk)) {
        Result<CopyBounce::Range> range = device.copies.bounce.take(device, stream.id, chunk.width * chunk.rows);
        if (!range) return std::move(range).error();
        BounceCopy copy(stream, *range);
        pack(copy.data(), source + shape.from.offset + chunk.from, shape.from.row, chunk);
        DriverCopy call;
        call.to = to.memory->device_address + shape.to.offset + chunk.to;
        call.from = reinterpret_cast<std::uintptr_t>(copy.data());
        call.from_host = true;
        call.direction = platform::CopyDirection::host_to_device;
        const rules::CopyShape rows = rows_of(chunk, shape.to.row, chunk.width);
        rules::ByteRange touched = bytes_of(rows, rows.to);
        touched.offset = shape.to.offset + chunk.to;
        if (Result<void> issued = copy.issue(job.to.buffer, use, touched, call, rows); !issued) return issued;
    }
    return {};
}

namespace {

// Copies from the device in chunks: several are in flight while the host unpacks the oldest.
class Descent {
public:
    Descent(StreamState& stream, const std::shared_ptr<BufferState>& from, const rules::CopyShape& shape,
            std::byte* destination)
        : stream_(stream),
          from_(from),
          shape_(shape),
          destination_(destination),
          chunks_(shape, CopyBounce::buffer_bytes) {}

    Result<void> run() {
        more_ = chunks_.next(next_);
        while (more_ || !coming_.empty()) {
            Result<bool> started = more_ ? start() : Result<bool>(false);
            if (!started) return std::move(started).error();
            if (*started) continue;
            if (Result<void> landed = land(); !landed) return landed;
        }
        return {};
    }

private:
    struct Coming {
        Coming(StreamState& stream, CopyBounce::Range range, const rules::CopyChunk& which)
            : copy(stream, range), chunk(which) {}
        BounceCopy copy;
        rules::CopyChunk chunk;
    };

    // false: no bounce buffer is free, and this copy has chunks in flight. A holder of one must not wait for another
    // one.
    Result<bool> start() {
        CopyBounce& bounce = stream_.device->copies.bounce;
        const std::size_t bytes = next_.width * next_.rows;
        Result<CopyBounce::Range> range = coming_.empty() ? bounce.take(*stream_.device, stream_.id, bytes)
                                                          : bounce.try_take(*stream_.device, stream_.id, bytes);
        if (!range) return std::move(range).error();
        if (range->data == nullptr) return false;
        Coming& coming = coming_.emplace_back(stream_, *range, next_);
        DriverCopy call;
        call.to = reinterpret_cast<std::uintptr_t>(coming.copy.data());
        call.to_host = true;
        call.from = from_->memory->device_address + shape_.from.offset + next_.from;
        call.direction = platform::CopyDirection::device_to_host;
        const rules::CopyShape rows = rows_of(next_, next_.width, shape_.from.row);
        rules::ByteRange touched = bytes_of(rows, rows.from);
        touched.offset = shape_.from.offset + next_.from;
        if (Result<void> issued = coming.copy.issue(from_, ArgumentUse::read, touched, call, rows); !issued) {
            return std::move(issued).error();
        }
        more_ = chunks_.next(next_);
        return true;
    }

    Result<void> land() {
        Coming& oldest = coming_.front();
        if (Result<void> waited = oldest.copy.wait(); !waited) return waited;
        unpack(destination_ + shape_.to.offset + oldest.chunk.to, shape_.to.row, oldest.copy.data(), oldest.chunk);
        coming_.pop_front();
        return {};
    }

    StreamState& stream_;
    const std::shared_ptr<BufferState>& from_;
    const rules::CopyShape shape_;
    std::byte* const destination_;
    rules::CopyChunks chunks_;
    rules::CopyChunk next_;
    bool more_ = false;
    std::deque<Coming> coming_;
};

}  // namespace

Result<void> bounce_down(StreamState& stream, const CopyJob& job) {
    if (Result<void> captured = refuse_in_capture(*stream.device); !captured) return captured;
    std::optional<ViewScope> scope;
    std::byte* destination = nullptr;
    if (Result<void> opened =
            open_side(job.to, writing(job.to, job.shape), bytes_of(job.shape, job.shape.to), scope, destination);
        !opened)
        return opened;
    const Result<std::size_t> done = staged_by_driver(stream, job, false, destination);
    if (!done) return done.error();
    if (*done == job.shape.width) return {};
    return Descent(stream, job.from.buffer, behind(job.shape, *done), destination).run();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
