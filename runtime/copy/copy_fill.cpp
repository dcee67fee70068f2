// SPDX-License-Identifier: Apache-2.0
// Stream::fill: on the device, the driver fills patterns of 1, 2 and 4 bytes, and columns and doubling fill those of 8
// and 16; the host fills any pattern.
#include "buffer_state.hpp"
#include "copy.hpp"
#include "copy_checks.hpp"
#include "copy_errors.hpp"
#include "device_state.hpp"
#include "operation.hpp"
#include "stream_state.hpp"
#include "told.hpp"
#include "uncaptured_scope.hpp"

#include <isthmus/stream.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Elements written column by column before whole blocks are copied.
constexpr std::size_t first_block = 1024;

struct Fill {
    CopyJob job;
    rules::FillPattern pattern;
    const void* value;
    std::size_t element_bytes;
};

platform::Status plain(StreamState& stream, std::uint64_t first, const Fill& fill) {
    const rules::CopyShape& shape = fill.job.shape;
    platform::Driver& driver = *stream.device->driver;
    const bool one_row = shape.rows == 1 && shape.slices == 1;
    if (one_row && fill.pattern.bytes == 1) {
        return driver.memory().fill(first, static_cast<std::uint8_t>(fill.pattern.value), shape.width, stream.handle);
    }
    platform::Transfers* const transfers = driver.transfers();
    if (transfers == nullptr) return {Code::unsupported, 0, "fill_elements"};
    const std::size_t bytes = fill.pattern.bytes;
    if (one_row) {
        return transfers->fill_elements(first, fill.pattern.value, bytes, shape.width / bytes, stream.handle);
    }
    if (rules::one_call(shape)) {
        const std::size_t slice_rows = shape.slices == 1 ? shape.rows : shape.to.slice / shape.to.row;
        return transfers->fill_shaped({first, false, shape.to.row, slice_rows}, fill.pattern.value, bytes,
                                      {shape.width, shape.rows, shape.slices}, stream.handle);
    }
    platform::Status status;
    for (std::size_t at = 0; at < shape.rows * shape.slices && status.ok(); ++at) {
        const std::uint64_t row = first + at / shape.rows * shape.to.slice + at % shape.rows * shape.to.row;
        status = transfers->fill_elements(row, fill.pattern.value, bytes, shape.width / bytes, stream.handle);
    }
    return status;
}

// Fills each column of words as a rectangle one word wide, then doubles the filled part by copies.
platform::Status long_pattern(StreamState& stream, std::uint64_t first, const Fill& fill) {
    platform::Transfers* const transfers = stream.device->driver->transfers();
    if (transfers == nullptr) return {Code::unsupported, 0, "fill_shaped"};
    const std::size_t bytes = fill.element_bytes;
    const std::size_t all = fill.job.shape.width;
    std::size_t done = std::min(all, first_block * bytes);
    platform::Status status;
    for (std::size_t at = 0; at < bytes && status.ok(); at += sizeof(std::uint32_t)) {
        std::uint32_t word = 0;
        std::memcpy(&word, static_cast<const unsigned char*>(fill.value) + at, sizeof(word));
        const std::size_t rows = done / bytes;
        status = rows == 1 ? transfers->fill_elements(first + at, word, sizeof(word), 1, stream.handle)
                           : transfers->fill_shaped({first + at, false, bytes, rows}, word, sizeof(word),
                                                    {sizeof(word), rows, 1}, stream.handle);
    }
    while (done < all && status.ok()) {
        const std::size_t next = std::min(done, all - done);
        status = stream.device->driver->memory().copy(first + done, first, next,
                                                      platform::CopyDirection::device_to_device, stream.handle);
        done += next;
    }
    return status;
}

Result<void> on_host(const Fill& fill) {
    const rules::CopyShape& shape = fill.job.shape;
    const std::shared_ptr<BufferState>& buffer = fill.job.to.buffer;
    Result<ViewScope> scope =
        open_scope(*buffer, writes_whole(*buffer, shape) ? ArgumentUse::write : ArgumentUse::read_write, Wait{},
                   touched(*buffer, bytes_of(shape, shape.to)));
    if (!scope) return std::move(scope).error();
    for (std::size_t at = 0; at < shape.rows * shape.slices; ++at) {
        auto* const row = static_cast<unsigned char*>(buffer->memory->host) + shape.to.offset +
                          at / shape.rows * shape.to.slice + at % shape.rows * shape.to.row;
        if (fill.pattern.bytes == 1) {
            std::memset(row, static_cast<int>(fill.pattern.value), shape.width);
            continue;
        }
        for (std::size_t x = 0; x < shape.width; x += fill.element_bytes) {
            std::memcpy(row + x, fill.value, fill.element_bytes);
        }
    }
    return {};
}

// The bytes where the memory's handles meet, if the driver does not fill across them.
std::vector<std::size_t> seams_of(BufferState& buffer) {
    const std::lock_guard lock(buffer.views);
    const BufferExtras* const extras = buffer.extras();
    return extras != nullptr ? extras->seams : Seams();
}

Result<void> by_driver(StreamState& stream, const Fill& fill) {
    BufferState& buffer = *fill.job.to.buffer;
    const rules::CopyShape& shape = fill.job.shape;
    const bool one_row = shape.rows == 1 && shape.slices == 1;
    const bool in_words = fill.element_bytes == 8 || fill.element_bytes == 16;
    if (fill.pattern.bytes == 0) {
        if (!one_row) return make_error<errors::no_fill_pattern_with_gaps>(fill.element_bytes);
        if (!in_words) return make_error<errors::no_fill_pattern>(fill.element_bytes);
    }
    // The device's own address, also of host memory; on the CPU device the host address, also of other devices' memory.
    const std::uint64_t first = (stream.device->synchronous ? reinterpret_cast<std::uintptr_t>(buffer.memory->host)
                                                            : buffer.memory->device_address) +
                                shape.to.offset;
    Operation operation(stream, "a fill", nullptr);
    operation.uses(fill.job.to.buffer, writes_whole(buffer, shape) ? ArgumentUse::write : ArgumentUse::read_write, 0);
    operation.only(bytes_of(shape, shape.to));
    const auto carry_out = [&stream](std::uint64_t at, const Fill& part) {
        return part.pattern.bytes == 0 ? long_pattern(stream, at, part) : plain(stream, at, part);
    };
    const std::vector<std::size_t> seams = seams_of(buffer);
    Result<std::uint64_t> issued = operation.issue([&] {
        if (seams.empty()) return carry_out(first, fill);  // the usual case: no list of shapes is allocated
        platform::Status status;
        for (const rules::CopyShape& between : rules::shapes_between(shape, seams)) {
            Fill part = fill;
            part.job.shape = between;
            status = carry_out(first - shape.to.offset + between.to.offset, part);
            if (!status.ok()) break;
        }
        return status;
    });
    if (!issued) return std::move(issued).error();
    return {};
}

// Stream::fill_request() without the observer.
Result<void> fill_untold(StreamState& stream, const Fill& fill, const FillRequest& request) {
    DeviceState& owner = *request.to->device;
    const rules::CopySideFacts side = facts_of(*stream.device, fill.job.to);
    const bool by_host = request.to->memory->host != nullptr && (stream.device->synchronous || owner.synchronous ||
                                                                 (rules::is_host_memory(side) && !side.reached));
    if (!by_host && stream.device == request.to->device) return by_driver(stream, fill);
    // A capture on the CPU device records the fill, and each launch of the graph opens the buffer as a host view.
    if (by_host && stream.device->synchronous && stream.recording_id() != 0) return by_driver(stream, fill);
    const Result<UncapturedScope> uncaptured =
        UncapturedScope::enter(stream, "a fill by the host or another device was asked for");
    if (!uncaptured) return uncaptured.error();
    if (by_host) return on_host(fill);
    // Another GPU's memory is filled by its own device, in the order of this stream.
    const std::shared_ptr<StreamState> own = carrier_stream(owner);
    for (const BufferState::Use& use : request.to->conflicting(ArgumentUse::write)) {
        if (use.stream == own) continue;
        if (Result<void> ordered = order_behind(*own, *use.stream); !ordered) return ordered;
    }
    if (stream.device->synchronous) {
        if (Result<void> filled = by_driver(*own, fill); !filled) return filled;
        return Stream(own).synchronize();
    }
    if (Result<void> ordered = order_behind(*own, stream); !ordered) return ordered;
    if (Result<void> filled = by_driver(*own, fill); !filled) return filled;
    return order_behind(stream, *own);
}

}  // namespace
}  // namespace detail

Result<void> Stream::fill_request(const detail::FillRequest& request) {
    Result<detail::CopyJob> job = detail::check_fill(*state_, request);
    if (!job) return std::move(job).error();
    if (job->shape.width == 0) return {};
    const detail::Fill fill{*job, rules::shortest_pattern(request.value, request.element_bytes), request.value,
                            request.element_bytes};
    detail::ObservedSpan span(state_->device->observer(), Span::fill, "a fill", [&] {
        const rules::CopyShape& shape = job->shape;
        ObservedFacts facts = state_->observed(0, std::uint64_t{shape.width} * shape.rows * shape.slices);
        facts.kind = request.to->memory->kind;
        return facts;
    });
    if (span.facts() != nullptr) {
        detail::tell_use(*state_, *request.to, detail::writing(job->to, job->shape),
                         detail::bytes_of(job->shape, job->shape.to));
    }
    Result<void> done = detail::fill_untold(*state_, fill, request);
    span.over(done);
    return done;
}

}  // namespace v0
}  // namespace isthmus
