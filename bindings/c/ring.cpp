// SPDX-License-Identifier: Apache-2.0
// Frames between processes: the producer, the reader, and what is sent from one to the other.
#include "ring.hpp"

#include <isthmus/ipc/shared_ring_descriptor.hpp>

#include "calls.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

using namespace isthmus;

struct isthmus_descriptor {
    explicit isthmus_descriptor(SharedRingDescriptor from) : cpp(std::move(from)), fds(cpp.fds()) {}
    SharedRingDescriptor cpp;
    std::array<int, SharedRingDescriptor::fd_count> fds;
};

namespace {

constexpr std::size_t first_ring = offsetof(isthmus_shared_ring_options, element_bytes);
constexpr std::size_t first_reader = sizeof(isthmus_shared_reader_options);
constexpr std::size_t most_fds = 253;  // SCM_MAX_FD: no message carries more

struct RingAsked {
    SharedRingOptions options;
    std::uint32_t element_bytes = 1;
};

Result<RingAsked> options_of(const c::Call& call, const isthmus_shared_ring_options* from) {
    constexpr isthmus_shared_ring_options otherwise = ISTHMUS_SHARED_RING_OPTIONS_INIT;
    ISTHMUS_TRY(const isthmus_shared_ring_options given, c::read_struct(call, "options", from, first_ring, otherwise));
    RingAsked asked;
    asked.options.slots = given.slots;
    ISTHMUS_TRY(asked.options.policy, call.enumerator<SlowReaderPolicy>("options.policy", given.policy, 2));
    ISTHMUS_TRY(asked.options.rights, call.enumerator<ReaderRights>("options.rights", given.rights, 2));
    asked.options.max_readers = given.most_readers;
    if (given.reader_deadline_ns > INT64_MAX) {
        return call.refuse("options.reader_deadline_ns", "exceeds INT64_MAX", "pass nanoseconds");
    }
    if (given.reader_deadline_ns != 0) {
        asked.options.reader_deadline = std::chrono::nanoseconds(static_cast<std::int64_t>(given.reader_deadline_ns));
    }
    ISTHMUS_TRY(asked.options.use, c::use_at(call, "options.use", &given.use));
    if (given.element_bytes != 0) asked.element_bytes = given.element_bytes;
    ISTHMUS_TRY(asked.options.waiting, call.enumerator<WaitPolicy>("options.waiting", given.waiting, 3));
    return asked;
}

Result<SharedReaderOptions> options_of(const c::Call& call, const isthmus_shared_reader_options* from,
                                       std::uint64_t& frame_bytes) {
    constexpr isthmus_shared_reader_options otherwise = ISTHMUS_SHARED_READER_OPTIONS_INIT;
    ISTHMUS_TRY(const isthmus_shared_reader_options given,
                c::read_struct(call, "options", from, first_reader, otherwise));
    SharedReaderOptions options;
    ISTHMUS_TRY(options.use, c::use_at(call, "options.use", &given.use));
    ISTHMUS_TRY(options.waiting, call.enumerator<WaitPolicy>("options.waiting", given.waiting, 3));
    if (given.reserved != 0) return call.refuse("options.reserved", "is not 0", "leave it 0");
    if (given.most_bytes != 0) options.max_bytes = given.most_bytes;
    frame_bytes = given.frame_bytes;
    return options;
}

// Bytes 24 to 27 of a descriptor, little-endian: sizeof(T) of the producer. RingReaderCore::open() checks them with all
// others; C takes frames of any type.
std::uint32_t element_bytes_in(std::span<const std::byte> bytes) noexcept {
    std::uint32_t number = 0;
    for (std::size_t at = 0; at < 4; ++at) number |= std::to_integer<std::uint32_t>(bytes[24 + at]) << (8 * at);
    return number == 0 ? 1 : number;
}

Result<void> open_reader(const c::Call& call, isthmus_device* device, const void* bytes, std::size_t size,
                         std::vector<FileDescriptor> fds, const isthmus_shared_reader_options* options,
                         isthmus_shared_reader** reader) {
    ISTHMUS_TRY(call.needs({{"device", device}, {"bytes", bytes}, {"reader", reader}}));
    std::uint64_t frame_bytes = 0;
    ISTHMUS_TRY(SharedReaderOptions asked, options_of(call, options, frame_bytes));
    const std::span given(static_cast<const std::byte*>(bytes), size);
    ISTHMUS_TRY(SharedRingDescriptor descriptor, SharedRingDescriptor::received(given, std::move(fds)));
    const std::uint32_t element_bytes = element_bytes_in(given);
    if (frame_bytes != 0) {
        if (frame_bytes % element_bytes != 0) {
            return call.refuse("options.frame_bytes",
                               "is no multiple of the ring's elements of " + std::to_string(element_bytes) + " bytes",
                               "open the ring with the size of its frames");
        }
        asked.elements = frame_bytes / element_bytes;
    }
    ISTHMUS_TRY(auto core, detail::RingReaderCore::open(*device->cpp, std::move(descriptor), element_bytes, asked));
    const std::uint64_t whole = std::uint64_t{core->elements()} * element_bytes;
    ISTHMUS_TRY(auto slots, c::slots_of(*device, *core, core->slots(), whole, asked.use));
    *reader = new isthmus_shared_reader(*device, whole, std::move(core), std::move(slots));
    return {};
}

}  // namespace

isthmus_code isthmus_shared_ring_create(isthmus_device* device, uint64_t frame_bytes,
                                        const isthmus_shared_ring_options* options, isthmus_shared_ring** ring,
                                        isthmus_error** error) {
    return c::guarded("isthmus_shared_ring_create", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"device", device}, {"ring", ring}}));
        ISTHMUS_TRY(const RingAsked asked, options_of(call, options));
        if (frame_bytes % asked.element_bytes != 0) {
            return call.refuse("frame_bytes", "is no multiple of options.element_bytes", "frames have whole elements");
        }
        const std::size_t elements = frame_bytes / asked.element_bytes;
        ISTHMUS_TRY(auto core,
                    detail::RingProducerCore::create(*device->cpp, elements, asked.element_bytes, asked.options));
        ISTHMUS_TRY(auto slots, c::slots_of(*device, *core, asked.options.slots, frame_bytes, asked.options.use));
        *ring = new isthmus_shared_ring(*device, std::move(core), std::move(slots));
        return {};
    });
}

isthmus_code isthmus_shared_ring_admit(isthmus_shared_ring* ring, isthmus_descriptor** descriptor,
                                       isthmus_error** error) {
    return c::guarded("isthmus_shared_ring_admit", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"ring", ring}, {"descriptor", descriptor}}));
        return c::make_handle(descriptor, ring->core->admit());
    });
}

uint64_t isthmus_shared_ring_published(const isthmus_shared_ring* ring) {
    return ring == nullptr ? 0 : ring->core->published();
}
void isthmus_shared_ring_close(isthmus_shared_ring* ring) {
    if (ring != nullptr) ring->core->close();
}
void isthmus_shared_ring_free(isthmus_shared_ring* ring) {
    c::Ref<isthmus_shared_ring>::drop(ring);
}

isthmus_code isthmus_shared_reader_open(isthmus_device* device, const void* bytes, size_t size, const int* fds,
                                        size_t fd_count, isthmus_shared_reader** reader, isthmus_error** error) {
    return isthmus_shared_reader_open_with(device, bytes, size, fds, fd_count, nullptr, reader, error);
}

isthmus_code isthmus_shared_reader_open_with(isthmus_device* device, const void* bytes, size_t size, const int* fds,
                                             size_t fd_count, const isthmus_shared_reader_options* options,
                                             isthmus_shared_reader** reader, isthmus_error** error) {
    return c::guarded("isthmus_shared_reader_open", error, [&](const c::Call& call) -> Result<void> {
        if (fd_count > most_fds) {
            return call.refuse("fd_count", "is " + std::to_string(fd_count), "pass what came with the bytes");
        }
        if (fd_count > 0) ISTHMUS_TRY(call.needs({{"fds", fds}}));
        // First of all, on the stack: whatever fails from here on, they are closed.
        std::array<FileDescriptor, most_fds> taken;
        for (std::size_t at = 0; at < fd_count; ++at) taken[at] = FileDescriptor(fds[at]);
        std::vector<FileDescriptor> owned;
        owned.reserve(fd_count);
        for (std::size_t at = 0; at < fd_count; ++at) owned.push_back(std::move(taken[at]));
        return open_reader(call, device, bytes, size, std::move(owned), options, reader);
    });
}

uint64_t isthmus_shared_reader_frame_bytes(const isthmus_shared_reader* reader) {
    return reader == nullptr ? 0 : reader->frame_bytes;
}
void isthmus_shared_reader_free(isthmus_shared_reader* reader) {
    c::Ref<isthmus_shared_reader>::drop(reader);
}

const void* isthmus_descriptor_bytes(const isthmus_descriptor* descriptor, size_t* size) {
    if (size != nullptr) *size = descriptor == nullptr ? 0 : descriptor->cpp.bytes().size();
    return descriptor == nullptr ? nullptr : descriptor->cpp.bytes().data();
}
const int* isthmus_descriptor_fds(const isthmus_descriptor* descriptor, size_t* count) {
    if (count != nullptr) *count = descriptor == nullptr ? 0 : descriptor->fds.size();
    return descriptor == nullptr ? nullptr : descriptor->fds.data();
}
void isthmus_descriptor_free(isthmus_descriptor* descriptor) {
    delete descriptor;
}
