// SPDX-License-Identifier: Apache-2.0
// Loops over rows; the work is finished at return, unless the stream is captured.
#include "cpu_transfers.hpp"

#include <cerrno>
#include <cstring>

namespace isthmus::platform::cpu {
namespace {

constexpr Status done{};

unsigned char* row_of(const CopySide& side, std::size_t slice, std::size_t row) noexcept {
    const std::uint64_t address = side.address + (slice * side.slice_rows + row) * side.row_pitch_bytes;
    return reinterpret_cast<unsigned char*>(static_cast<std::uintptr_t>(address));
}

// Writes bytes instead of elements, so that unaligned addresses do not fault.
void fill_row(unsigned char* row, std::uint32_t value, std::size_t element_bytes, std::size_t count) noexcept {
    if (element_bytes == 1) {
        if (count > 0) std::memset(row, static_cast<int>(value & 0xFF), count);
        return;
    }
    const auto half = static_cast<std::uint16_t>(value);
    const void* const element = element_bytes == 2 ? static_cast<const void*>(&half) : &value;
    for (std::size_t i = 0; i < count; ++i) std::memcpy(row + i * element_bytes, element, element_bytes);
}

bool fillable(std::size_t element_bytes) noexcept {
    return element_bytes == 1 || element_bytes == 2 || element_bytes == 4;
}

// Copies rows upwards or downwards, like memmove with bytes, so that nothing is overwritten before it is read.
Status copy_rows(const CopySide& destination, const CopySide& source, const CopyExtent& extent) {
    const std::size_t rows = extent.width_bytes == 0 ? 0 : extent.rows * extent.slices;
    const bool downwards = destination.address > source.address;
    for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t at = downwards ? rows - 1 - i : i;
        const std::size_t slice = at / extent.rows;
        const std::size_t row = at % extent.rows;
        std::memmove(row_of(destination, slice, row), row_of(source, slice, row), extent.width_bytes);
    }
    return done;
}

Status fill_rows(const CopySide& destination, std::uint32_t value, std::size_t element_bytes,
                 const CopyExtent& extent) {
    for (std::size_t slice = 0; slice < extent.slices; ++slice) {
        for (std::size_t row = 0; row < extent.rows; ++row) {
            fill_row(row_of(destination, slice, row), value, element_bytes, extent.width_bytes / element_bytes);
        }
    }
    return done;
}

constexpr Status no_other_device(const char* call) noexcept {
    return {Code::unsupported, ENODEV, call};
}

}  // namespace

Status CpuTransfers::copy_shaped(const CopySide& destination, const CopySide& source, const CopyExtent& extent,
                                 StreamHandle stream) {
    return captures_.run(stream, [=] { return copy_rows(destination, source, extent); });
}

Status CpuTransfers::copy_between(std::uint64_t destination, int destination_ordinal, std::uint64_t source,
                                  int source_ordinal, std::size_t bytes, StreamHandle stream) {
    return copy_shaped_between({destination, true, bytes, 1}, destination_ordinal, {source, true, bytes, 1},
                               source_ordinal, {bytes, 1, 1}, stream);
}

Status CpuTransfers::copy_shaped_between(const CopySide& destination, int destination_ordinal, const CopySide& source,
                                         int source_ordinal, const CopyExtent& extent, StreamHandle stream) {
    if (destination_ordinal >= 0 || source_ordinal >= 0) return no_other_device("copy_between");
    return copy_shaped(destination, source, extent, stream);
}

Status CpuTransfers::fill_elements(std::uint64_t destination, std::uint32_t value, std::size_t element_bytes,
                                   std::size_t count, StreamHandle stream) {
    const std::size_t bytes = count * element_bytes;
    return fill_shaped({destination, true, bytes, 1}, value, element_bytes, {bytes, 1, 1}, stream);
}

Status CpuTransfers::fill_shaped(const CopySide& destination, std::uint32_t value, std::size_t element_bytes,
                                 const CopyExtent& extent, StreamHandle stream) {
    if (!fillable(element_bytes)) return {Code::invalid_argument, EINVAL, "fill_shaped"};
    return captures_.run(stream, [=] { return fill_rows(destination, value, element_bytes, extent); });
}

Status CpuTransfers::prefetch(std::uint64_t, std::size_t, const Place&, StreamHandle) {
    return {Code::unsupported, ENOSYS, "prefetch"};
}

Status CpuTransfers::advise(std::uint64_t, std::size_t, Advice, const Place&) {
    return {Code::unsupported, ENOSYS, "advise"};
}

Status CpuTransfers::can_reach(int, bool& out) {
    out = false;
    return done;
}

Status CpuTransfers::set_peer_access(int, bool) {
    return no_other_device("set_peer_access");
}

}  // namespace isthmus::platform::cpu
