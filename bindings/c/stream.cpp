// SPDX-License-Identifier: Apache-2.0
// Streams, events, copies and fills.
#include <isthmus/stream.hpp>

#include "calls.hpp"
#include "handles.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

using namespace isthmus;

namespace {

template <std::size_t size>
struct Element {
    std::byte bytes[size];
};

template <std::size_t size>
Result<void> fill_elements(isthmus_stream& stream, const isthmus_buffer& buffer, std::size_t offset, std::size_t bytes,
                           const void* element) {
    Element<size> value;
    std::memcpy(&value, element, size);
    Buffer<Element<size>> elements(buffer.cpp.state());  // the same memory, by its elements
    return stream.cpp.fill_region(elements, {offset / size, 0, 0}, {bytes / size, 1, 1}, value);
}

}  // namespace

void isthmus_stream_free(isthmus_stream* stream) {
    delete stream;
}
isthmus_device* isthmus_stream_device(const isthmus_stream* stream) {
    return stream == nullptr ? nullptr : stream->device;
}
uint64_t isthmus_stream_id(const isthmus_stream* stream) {
    return stream == nullptr ? 0 : stream->cpp.id();
}

isthmus_code isthmus_stream_native_handle(isthmus_stream* stream, void** cu_stream, isthmus_error** error) {
    return c::guarded("isthmus_stream_native_handle", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"cu_stream", cu_stream}}));
        ISTHMUS_TRY(*cu_stream, stream->cpp.native_handle());
        return {};
    });
}

isthmus_code isthmus_stream_record(isthmus_stream* stream, isthmus_event** event, isthmus_error** error) {
    return c::guarded("isthmus_stream_record", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"event", event}}));
        return c::make_handle(event, stream->cpp.record(), *stream->runtime);
    });
}

isthmus_code isthmus_stream_wait(isthmus_stream* stream, const isthmus_event* event, isthmus_error** error) {
    return c::guarded("isthmus_stream_wait", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"event", event}}));
        return stream->cpp.wait(event->cpp);
    });
}

isthmus_code isthmus_stream_wait_stream(isthmus_stream* stream, isthmus_stream* other, isthmus_error** error) {
    return c::guarded("isthmus_stream_wait_stream", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"other", other}}));
        return stream->cpp.wait_stream(other->cpp);
    });
}

isthmus_code isthmus_stream_wait_native(isthmus_stream* stream, void* cu_event, isthmus_error** error) {
    return c::guarded("isthmus_stream_wait_native", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}}));
        return stream->cpp.wait_native(cu_event);
    });
}

isthmus_code isthmus_stream_finished(isthmus_stream* stream, int32_t* finished, isthmus_error** error) {
    return c::guarded("isthmus_stream_finished", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"finished", finished}}));
        ISTHMUS_TRY(const bool done, stream->cpp.finished());
        *finished = done ? 1 : 0;
        return {};
    });
}

isthmus_code isthmus_stream_synchronize(isthmus_stream* stream, int64_t wait_ns, isthmus_error** error) {
    return c::guarded("isthmus_stream_synchronize", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}}));
        ISTHMUS_TRY(const Wait wait, call.wait(wait_ns));
        return stream->cpp.synchronize(wait);
    });
}

isthmus_code isthmus_stream_copy(isthmus_stream* stream, isthmus_buffer* to, uint64_t to_offset,
                                 const isthmus_buffer* from, uint64_t from_offset, uint64_t bytes,
                                 isthmus_error** error) {
    return c::guarded("isthmus_stream_copy", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"to", to}, {"from", from}}));
        if (bytes == 0) {  // which C++ takes at any offset; the other calls here do not
            ISTHMUS_TRY(c::size_in(call, *to, to_offset, bytes, "to_offset"));
            ISTHMUS_TRY(c::size_in(call, *from, from_offset, bytes, "from_offset"));
        }
        return stream->cpp.copy(to->cpp, to_offset, from->cpp, from_offset, bytes);
    });
}

isthmus_code isthmus_stream_copy_from_host(isthmus_stream* stream, isthmus_buffer* to, uint64_t to_offset,
                                           const void* from, uint64_t bytes, isthmus_error** error) {
    return c::guarded("isthmus_stream_copy_from_host", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"to", to}, {"from", from}}));
        ISTHMUS_TRY(c::size_in(call, *to, to_offset, bytes == ISTHMUS_REST ? bytes - 1 : bytes, "to_offset"));
        return stream->cpp.copy_from_host(to->cpp, std::span(static_cast<const std::byte*>(from), bytes), to_offset);
    });
}

isthmus_code isthmus_stream_copy_to_host(isthmus_stream* stream, void* to, const isthmus_buffer* from,
                                         uint64_t from_offset, uint64_t bytes, isthmus_error** error) {
    return c::guarded("isthmus_stream_copy_to_host", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"to", to}, {"from", from}}));
        ISTHMUS_TRY(c::size_in(call, *from, from_offset, bytes == ISTHMUS_REST ? bytes - 1 : bytes, "from_offset"));
        return stream->cpp.copy_to_host(std::span(static_cast<std::byte*>(to), bytes), from->cpp, from_offset);
    });
}

isthmus_code isthmus_stream_fill(isthmus_stream* stream, isthmus_buffer* buffer, uint64_t offset, uint64_t bytes,
                                 uint8_t value, isthmus_error** error) {
    return c::guarded("isthmus_stream_fill", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"buffer", buffer}}));
        ISTHMUS_TRY(const std::size_t size, c::size_in(call, *buffer, offset, bytes));
        return stream->cpp.fill_region(buffer->cpp, {offset, 0, 0}, {size, 1, 1}, std::byte{value});
    });
}

isthmus_code isthmus_stream_fill_elements(isthmus_stream* stream, isthmus_buffer* buffer, uint64_t offset,
                                          uint64_t bytes, const void* element, uint64_t element_bytes,
                                          isthmus_error** error) {
    return c::guarded("isthmus_stream_fill_elements", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"buffer", buffer}, {"element", element}}));
        if (!std::has_single_bit(element_bytes) || element_bytes > 16) {
            return call.refuse("element_bytes", "is " + std::to_string(element_bytes), "1, 2, 4, 8 or 16");
        }
        ISTHMUS_TRY(const std::size_t size, c::size_in(call, *buffer, offset, bytes));
        const std::string multiples = "a multiple of element_bytes, " + std::to_string(element_bytes);
        if (offset % element_bytes != 0) return call.refuse("offset", "is " + std::to_string(offset), multiples);
        if (size % element_bytes != 0) return call.refuse("bytes", "are " + std::to_string(size), multiples);
        if (reinterpret_cast<std::uintptr_t>(buffer->adopted) % element_bytes != 0) {
            return call.refuse("buffer", "is adopted memory that does not begin at a multiple of element_bytes",
                               "isthmus_stream_fill(), or memory of another alignment");
        }
        switch (element_bytes) {
            case 1: return fill_elements<1>(*stream, *buffer, offset, size, element);
            case 2: return fill_elements<2>(*stream, *buffer, offset, size, element);
            case 4: return fill_elements<4>(*stream, *buffer, offset, size, element);
            case 8: return fill_elements<8>(*stream, *buffer, offset, size, element);
            default: return fill_elements<16>(*stream, *buffer, offset, size, element);
        }
    });
}

void isthmus_event_free(isthmus_event* event) {
    delete event;
}

isthmus_code isthmus_event_finished(const isthmus_event* event, int32_t* finished, isthmus_error** error) {
    return c::guarded("isthmus_event_finished", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"event", event}, {"finished", finished}}));
        ISTHMUS_TRY(const bool done, event->cpp.finished());
        *finished = done ? 1 : 0;
        return {};
    });
}

isthmus_code isthmus_event_synchronize(const isthmus_event* event, int64_t wait_ns, isthmus_error** error) {
    return c::guarded("isthmus_event_synchronize", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"event", event}}));
        ISTHMUS_TRY(const Wait wait, call.wait(wait_ns));
        return event->cpp.synchronize(wait);
    });
}

isthmus_code isthmus_event_native_handle(const isthmus_event* event, void** cu_event, isthmus_error** error) {
    return c::guarded("isthmus_event_native_handle", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"event", event}, {"cu_event", cu_event}}));
        ISTHMUS_TRY(*cu_event, event->cpp.native_handle());
        return {};
    });
}
