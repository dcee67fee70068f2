// SPDX-License-Identifier: Apache-2.0
// Pageable memory in calls of the driver, on an idle stream (ADR 107).
#include "copy.hpp"

#include "buffer_state.hpp"
#include "copy_bounce.hpp"
#include "device_state.hpp"
#include "operation.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <optional>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

rules::PageableWay way_of(StreamState& stream, const CopyJob& job, bool up) {
    const DeviceState& device = *stream.device;
    rules::PageableFacts facts;
    facts.up = up;
    facts.one_range = job.shape.rows == 1 && job.shape.slices == 1;
    facts.others_submit = stream.others();
    facts.capture_is_open = device.books->captures.any();
    facts.service_runs = device.services.any();
    facts.bytes = job.shape.width;
    facts.bounce_bytes = CopyBounce::buffers * CopyBounce::buffer_bytes;
    facts.memory = device.capabilities.memory;
    return rules::pageable_way(facts_of(device, up ? job.to : job.from), facts);
}

// Asks a few times, for some microseconds: a fence that was just recorded may not have signalled yet.
platform::Status asked_until_idle(StreamState& stream) {
    constexpr int looks = 64;
    platform::Status status;
    for (int look = 0; look < looks; ++look) {
        status = stream.device->execution.query_stream(stream.handle);
        if (status.code != Code::not_ready) break;
    }
    return status;
}

// One call of the driver for `piece`. false: the stream has work, or a service is starting, and nothing was copied.
Result<bool> piece_by_driver(StreamState& stream, const std::shared_ptr<BufferState>& buffer, ArgumentUse use,
                             const rules::ByteRange& bytes, const DriverCopy& copy, const rules::CopyShape& piece) {
    DeviceState& device = *stream.device;
    std::optional<CallInFlight> call = device.services.try_enter(rules::DriverUse::copy_pageable);
    if (!call) return false;
    Operation operation(stream, "a copy of pageable memory", nullptr);
    operation.uses(buffer, use, 0);
    operation.only(bytes);
    bool given = false;
    // The stream's lock is held: no other thread's work comes between the answer and the copy.
    Result<std::uint64_t> issued = operation.issue([&]() -> platform::Status {
        const platform::Status idle = asked_until_idle(stream);
        if (idle.code == Code::not_ready) return {};
        if (!idle.ok()) return idle;
        given = true;
        platform::Status copied;
        auto give = [&] { copied = give_to_driver(stream, copy, piece); };
        using Give = decltype(give);
        const platform::Status entered =
            device.execution.call_in_context([](void* body) { (*static_cast<Give*>(body))(); }, &give);
        return entered.ok() ? copied : entered;
    });
    call->leave();
    if (!issued) return std::move(issued).error();
    if (!given) return false;
    // The driver may have returned before it has read a source. The wait has a deadline, and other work cannot delay
    // it.
    if (Result<void> waited = stream.wait_until(*issued, Wait{}); !waited) return std::move(waited).error();
    return true;
}

}  // namespace

// The part of a shape without gaps behind its first `done` bytes.
rules::CopyShape behind(rules::CopyShape shape, std::size_t done) {
    shape.width -= done;
    shape.to.offset += done;
    shape.from.offset += done;
    return shape;
}

Result<std::size_t> staged_by_driver(StreamState& stream, const CopyJob& job, bool up, std::byte* host) {
    const rules::PageableWay way = way_of(stream, job, up);
    if (way == rules::PageableWay::bounce) return std::size_t{0};
    if (way == rules::PageableWay::driver) {
        if (Result<void> waited = stream.wait_for_all(Wait{}); !waited) return std::move(waited).error();
    }
    const std::shared_ptr<BufferState>& buffer = up ? job.to.buffer : job.from.buffer;
    const ArgumentUse use = up ? writing(job.to, job.shape) : ArgumentUse::read;
    std::size_t done = 0;
    while (done < job.shape.width) {
        const rules::CopyShape left = behind(job.shape, done);
        rules::CopyShape piece;
        piece.width = std::min(left.width, rules::driver_piece_bytes);
        const std::size_t offset = up ? left.to.offset : left.from.offset;
        const std::uint64_t there = buffer->memory->device_address + offset;
        const std::uint64_t here = reinterpret_cast<std::uintptr_t>(host) + (up ? left.from.offset : left.to.offset);
        DriverCopy copy;
        copy.to = up ? there : here;
        copy.from = up ? here : there;
        copy.to_host = !up;
        copy.from_host = up;
        copy.direction = up ? platform::CopyDirection::host_to_device : platform::CopyDirection::device_to_host;
        rules::ByteRange bytes;
        bytes.offset = offset;
        bytes.width = piece.width;
        Result<bool> given = piece_by_driver(stream, buffer, use, bytes, copy, piece);
        if (!given) return std::move(given).error();
        if (!*given) break;
        done += piece.width;
    }
    return done;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
