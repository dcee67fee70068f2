// SPDX-License-Identifier: Apache-2.0
// Buffers of bytes: allocating, adopting, and what they say of themselves.
#include <isthmus/device.hpp>

#include "calls.hpp"
#include "handles.hpp"

#include <cstddef>

using namespace isthmus;

namespace isthmus::c {

Result<SharedUse> use_of(const Call& call, const char* argument, const isthmus_shared_use& use) {
    const std::string where = std::string(argument) + ".";
    SharedUse declared;
    ISTHMUS_TRY(declared.host, call.enumerator<Use>((where + "host").c_str(), use.host, use_count));
    ISTHMUS_TRY(declared.device, call.enumerator<Use>((where + "device").c_str(), use.device, use_count));
    ISTHMUS_TRY(declared.prefer, call.enumerator<Prefer>((where + "prefer").c_str(), use.prefer, 2));
    ISTHMUS_TRY(const auto kind, call.enumerator<MemoryKind>((where + "kind").c_str(), use.kind, memory_kind_count));
    if (kind != MemoryKind::unknown) declared.kind = kind;
    declared.alignment_bytes = static_cast<std::size_t>(use.alignment_bytes);
    declared.device_passes = use.device_passes;
    if (use.reserved_number != 0 || use.reserved[0] != 0 || use.reserved[1] != 0 || use.reserved[2] != 0) {
        return call.refuse(argument, "sets a reserved field", "leave it 0, as ISTHMUS_SHARED_USE_INIT does");
    }
    return declared;
}

Result<SharedUse> use_at(const Call& call, const char* argument, const isthmus_shared_use* use) {
    constexpr isthmus_shared_use otherwise = ISTHMUS_SHARED_USE_INIT;
    ISTHMUS_TRY(const isthmus_shared_use read,
                read_struct(call, argument, use, offsetof(isthmus_shared_use, alignment_bytes), otherwise));
    return use_of(call, argument, read);
}

Result<std::size_t> size_in(const Call& call, const isthmus_buffer& buffer, std::uint64_t offset, std::uint64_t bytes,
                            const char* argument) {
    const std::uint64_t whole = buffer.cpp.size_bytes();
    if (offset > whole || (bytes != ISTHMUS_REST && bytes > whole - offset)) {
        const std::string asked = bytes == ISTHMUS_REST ? "the rest" : std::to_string(bytes) + " bytes";
        return call.refuse(argument, "is " + std::to_string(offset) + ": " + asked + " from there are beyond the end",
                           "the buffer has " + std::to_string(whole) + " bytes");
    }
    return static_cast<std::size_t>(bytes == ISTHMUS_REST ? whole - offset : bytes);
}

}  // namespace isthmus::c

isthmus_code isthmus_device_allocate_shared(isthmus_device* device, uint64_t bytes, const isthmus_shared_use* use,
                                            isthmus_buffer** buffer, isthmus_error** error) {
    return c::guarded("isthmus_device_allocate_shared", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"device", device}, {"buffer", buffer}}));
        ISTHMUS_TRY(const SharedUse declared, c::use_at(call, "use", use));
        return c::make_handle(buffer, device->cpp->allocate_shared<std::byte>(bytes, declared), *device);
    });
}

isthmus_code isthmus_device_allocate(isthmus_device* device, uint64_t bytes, int32_t kind, isthmus_buffer** buffer,
                                     isthmus_error** error) {
    return c::guarded("isthmus_device_allocate", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"device", device}, {"buffer", buffer}}));
        ISTHMUS_TRY(const auto asked, call.enumerator<MemoryKind>("kind", kind, memory_kind_count));
        return c::make_handle(buffer, device->cpp->allocate<std::byte>(bytes, asked), *device);
    });
}

isthmus_code isthmus_stream_allocate(isthmus_stream* stream, uint64_t bytes, isthmus_buffer** buffer,
                                     isthmus_error** error) {
    return c::guarded("isthmus_stream_allocate", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"buffer", buffer}}));
        return c::make_handle(buffer, stream->cpp.allocate<std::byte>(bytes), *stream->device);
    });
}

namespace {

Result<AdoptOptions> adopt_options(const c::Call& call, const isthmus_adopt_options* options) {
    constexpr isthmus_adopt_options otherwise = ISTHMUS_ADOPT_OPTIONS_INIT;
    ISTHMUS_TRY(const isthmus_adopt_options given,
                c::read_struct(call, "options", options, sizeof(isthmus_adopt_options), otherwise));
    AdoptOptions adopt;
    ISTHMUS_TRY(adopt.use, c::use_at(call, "options.use", &given.use));
    adopt.c_release = {given.context, given.release};
    if (given.after != nullptr) adopt.after_event = given.after->cpp;
    return adopt;
}

}  // namespace

isthmus_code isthmus_device_adopt_dma_buf(isthmus_device* device, int fd, uint64_t offset_bytes, uint64_t bytes,
                                          const isthmus_adopt_options* options, isthmus_buffer** buffer,
                                          isthmus_error** error) {
    return c::guarded("isthmus_device_adopt_dma_buf", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"device", device}, {"buffer", buffer}}));
        ISTHMUS_TRY(AdoptOptions adopt, adopt_options(call, options));
        // The handle first: once adopted, memory that finds no handle would go back by a call of `release`.
        // The mapping begins at a page: only the offset says how the bytes are aligned.
        const auto* const alignment = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(offset_bytes % 4096));
        auto made = std::make_unique<isthmus_buffer>(*device, Buffer<std::byte>(), alignment);
        ISTHMUS_TRY(made->cpp, device->cpp->adopt_dma_buf<std::byte>(fd, bytes, std::move(adopt), offset_bytes));
        *buffer = made.release();
        return {};
    });
}

isthmus_code isthmus_device_adopt(isthmus_device* device, void* pointer, uint64_t bytes,
                                  const isthmus_adopt_options* options, isthmus_buffer** buffer,
                                  isthmus_error** error) {
    return c::guarded("isthmus_device_adopt", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"device", device}, {"pointer", pointer}, {"buffer", buffer}}));
        ISTHMUS_TRY(AdoptOptions adopt, adopt_options(call, options));
        // The handle first: once adopted, memory that finds no handle would go back by a call of `release`.
        auto made = std::make_unique<isthmus_buffer>(*device, Buffer<std::byte>(), pointer);
        ISTHMUS_TRY(made->cpp, device->cpp->adopt<std::byte>(pointer, bytes, std::move(adopt)));
        *buffer = made.release();
        return {};
    });
}

isthmus_buffer* isthmus_buffer_ref(isthmus_buffer* buffer) {
    if (buffer != nullptr) buffer->add_owner();
    return buffer;
}
void isthmus_buffer_free(isthmus_buffer* buffer) {
    c::Ref<isthmus_buffer>::drop(buffer);
}

uint64_t isthmus_buffer_bytes(const isthmus_buffer* buffer) {
    return buffer == nullptr ? 0 : buffer->cpp.size_bytes();
}
int32_t isthmus_buffer_kind(const isthmus_buffer* buffer) {
    return buffer == nullptr ? ISTHMUS_KIND_UNKNOWN : static_cast<int32_t>(buffer->cpp.kind());
}
int32_t isthmus_buffer_host_kind(const isthmus_buffer* buffer) {
    return buffer == nullptr ? ISTHMUS_KIND_UNKNOWN : static_cast<int32_t>(buffer->cpp.host_kind());
}
int32_t isthmus_buffer_path(const isthmus_buffer* buffer) {
    return buffer == nullptr ? ISTHMUS_PATH_REFUSE : static_cast<int32_t>(buffer->cpp.path());
}
const char* isthmus_buffer_explain(const isthmus_buffer* buffer) {
    return buffer == nullptr ? "" : c::kept_text(buffer->cpp.explain());
}
uint64_t isthmus_buffer_staged_bytes(const isthmus_buffer* buffer) {
    return buffer == nullptr ? 0 : buffer->cpp.staged_bytes();
}
uint64_t isthmus_buffer_device_address(const isthmus_buffer* buffer) {
    return buffer == nullptr ? 0 : buffer->cpp.device_address();
}
isthmus_device* isthmus_buffer_device(const isthmus_buffer* buffer) {
    return buffer == nullptr ? nullptr : buffer->device;
}

int32_t isthmus_device_can_access(const isthmus_device* device, const isthmus_buffer* buffer, const char** reason) {
    if (device == nullptr || buffer == nullptr) {
        if (reason != nullptr) *reason = "isthmus_device_can_access: an argument is NULL";
        return -1;
    }
    return c::answered(-1, [&] {
        const AccessAnswer answer = device->cpp->can_access(buffer->cpp);
        if (reason != nullptr) *reason = c::kept_text(answer.reason);
        if (answer.verdict == Verdict::not_verified) return -1;
        return answer.verdict == Verdict::yes ? 1 : 0;
    });
}
