// SPDX-License-Identifier: Apache-2.0
// Checks copies and fills in elements; makes jobs in bytes.
#include "copy_checks.hpp"

#include "buffer_state.hpp"
#include "copy_errors.hpp"
#include "device_state.hpp"
#include "stream_state.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

std::size_t elements_of(const CopyEnd& end, std::size_t element_bytes) {
    return end.buffer == nullptr ? end.span_elements : (*end.buffer)->memory->bytes / element_bytes;
}

Result<void> check_fit(CopyLayout& layout, const CopyBox& box, std::size_t elements, const char* side) {
    const rules::Fit fit = rules::fit(layout, box, elements);
    switch (fit.answer) {
        case rules::Fit::Answer::fits: return {};
        case rules::Fit::Answer::row_pitch:
            return make_error<errors::copy_row_pitch_too_small>(side, layout.row_pitch, box.width);
        case rules::Fit::Answer::slice_pitch:
            return make_error<errors::copy_slice_pitch_too_small>(side, layout.slice_pitch);
        case rules::Fit::Answer::overflow: return make_error<errors::copy_box_overflows>(side);
        case rules::Fit::Answer::outside: break;
    }
    return make_error<errors::copy_box_outside>(side, elements, fit.end - elements);
}

rules::CopyStride in_bytes(const CopyLayout& layout, std::size_t element_bytes) {
    return {layout.offset * element_bytes, layout.row_pitch * element_bytes, layout.slice_pitch * element_bytes};
}

// Unused pitches may have any value. They become 0, so that their multiplication cannot overflow.
CopyLayout without_unused(CopyLayout layout, const CopyBox& box) {
    if (box.height <= 1) layout.row_pitch = 0;
    if (box.depth <= 1) layout.slice_pitch = 0;
    return layout;
}

CopySide side_of(StreamState& stream, const CopyEnd& end, std::size_t element_bytes) {
    if (end.buffer != nullptr) return {*end.buffer, 0, MemoryKind::host};
    return {nullptr, end.span, kind_of_span(*stream.device, end.span, end.span_elements * element_bytes)};
}

// true: the caller's memory overlaps the buffer on the other side, most likely because it is a view of it.
bool shares_memory(const CopyEnd& span, const BufferState& buffer, std::size_t element_bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer.memory->host);
    return buffer.memory->host != nullptr && span.span < begin + buffer.memory->bytes &&
           begin < span.span + span.span_elements * element_bytes;
}

}  // namespace

Result<void> check_buffer(StreamState& stream, const std::shared_ptr<BufferState>* buffer, const char* operation,
                          const char* what) {
    if (buffer == nullptr) return {};  // the caller's memory
    if (!*buffer) return make_error<errors::empty_side_of_copy>(operation, what);
    if ((*buffer)->device->books != stream.device->books) {
        return make_error<errors::copy_side_of_another_runtime>(what, operation);
    }
    if ((*buffer)->device->bars(rules::PublicCall::copy))
        return (*buffer)->device->refusal(rules::PublicCall::copy, operation);
    return {};
}

Result<CopyJob> check_copy(StreamState& stream, const CopyRequest& request) {
    if (Result<void> to = check_buffer(stream, request.to.buffer, "a copy", "the destination"); !to) {
        return std::move(to).error();
    }
    if (Result<void> from = check_buffer(stream, request.from.buffer, "a copy", "the source"); !from) {
        return std::move(from).error();
    }
    if (stream.device->bars(rules::PublicCall::copy)) return stream.device->refusal(rules::PublicCall::copy);
    const std::size_t bytes = request.element_bytes;
    CopyLayout to = without_unused(request.to.layout, request.box);
    CopyLayout from = without_unused(request.from.layout, request.box);
    if (Result<void> fits = check_fit(to, request.box, elements_of(request.to, bytes), "the destination"); !fits) {
        return std::move(fits).error();
    }
    if (Result<void> fits = check_fit(from, request.box, elements_of(request.from, bytes), "the source"); !fits) {
        return std::move(fits).error();
    }
    const CopyBox& box = request.box;
    CopyJob job;
    if (box.width == 0 || box.height == 0 || box.depth == 0) return job;
    rules::CopyShape shape{box.width * bytes, box.height, box.depth, in_bytes(to, bytes), in_bytes(from, bytes)};
    const bool same =
        request.to.buffer != nullptr && request.from.buffer != nullptr && *request.to.buffer == *request.from.buffer;
    if ((same && ((*request.to.buffer)->memory->aliased || rules::overlaps(shape))) ||
        (request.from.buffer == nullptr && shares_memory(request.from, **request.to.buffer, bytes)) ||
        (request.to.buffer == nullptr && shares_memory(request.to, **request.from.buffer, bytes))) {
        return make_error<errors::copy_overlaps>();
    }
    job.to = side_of(stream, request.to, bytes);
    job.from = side_of(stream, request.from, bytes);
    job.shape = rules::simplest(shape);
    return job;
}

Result<CopyJob> check_fill(StreamState& stream, const FillRequest& request) {
    if (Result<void> to = check_buffer(stream, &request.to, "a fill", "the buffer"); !to) return std::move(to).error();
    if (stream.device->bars(rules::PublicCall::fill)) return stream.device->refusal(rules::PublicCall::fill);
    const std::size_t bytes = request.element_bytes;
    CopyLayout layout = without_unused(request.layout, request.box);
    if (Result<void> fits = check_fit(layout, request.box, request.to->memory->bytes / bytes, "the buffer"); !fits) {
        return std::move(fits).error();
    }
    const CopyBox& box = request.box;
    CopyJob job;
    if (box.width == 0 || box.height == 0 || box.depth == 0) return job;
    const rules::CopyStride stride = in_bytes(layout, bytes);
    job.to = {request.to, 0, MemoryKind::host};
    job.shape = rules::simplest({box.width * bytes, box.height, box.depth, stride, stride});
    return job;
}

// The address map holds the runtime's own memory. The driver is asked about other memory: once if it is pinned, because
// the answer enters the map; each time if it is pageable.
MemoryKind kind_of_span(DeviceState& device, std::uintptr_t address, std::size_t bytes) {
    const auto pinned = [](MemoryKind kind) {
        return kind == MemoryKind::pinned || kind == MemoryKind::registered || kind == MemoryKind::write_combined;
    };
    if (device.synchronous || bytes == 0) return MemoryKind::host;
    provenance::AddressMap& known = device.books->addresses;
    if (const provenance::Record record = known.find(address)) {
        return pinned(record.kind) && known.covers(address, bytes) ? record.kind : MemoryKind::host;
    }
    platform::PointerFacts facts;
    if (!device.driver->memory().pointer_facts(address, facts).ok() || !pinned(facts.kind)) return MemoryKind::host;
    if (device.books->ledger.left_registered(address, bytes)) return MemoryKind::host;
    if (facts.base > address || facts.bytes < bytes || address - facts.base > facts.bytes - bytes) {
        return MemoryKind::host;
    }
    provenance::Record record;
    record.base = facts.base;
    record.bytes = facts.bytes;
    record.id = Books::next_id();
    record.device = static_cast<std::uint32_t>(device.index);
    record.kind = facts.kind;
    record.flags = provenance::record_flags::foreign;
    (void)known.insert(record);  // if that fails, the driver is asked again
    return facts.kind;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
