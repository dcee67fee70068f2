// SPDX-License-Identifier: Apache-2.0
// What a ready-made image says about itself: PTX text, a cubin or a fatbin, read as foreign data. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::images {

enum class ImageFormat : std::uint8_t { unknown, ptx, cubin, fatbin };

// Where a parameter lies in the parameter block of its entry.
struct ImageParameter {
    std::uint32_t offset_bytes = 0;
    std::uint32_t size_bytes = 0;
    bool operator==(const ImageParameter&) const = default;
};
struct ImageEntry {
    std::string name;  // as the driver knows it
    std::vector<ImageParameter> parameters;
    bool parameters_read = true;  // false: the image states them in a form that is not known here
};
struct ImageGlobal {
    std::string name;
    std::uint64_t size_bytes = 0;
};

struct ImageContents {
    ImageFormat format = ImageFormat::unknown;
    // Of the image itself: drivers take no size, and read this far. PTX: without its NUL.
    std::size_t size_bytes = 0;
    // Why it is no image, or not all of one; empty: it is whole.
    std::string_view damage;
    bool readable = true;                    // false: some of it is compressed, so that entries may be missing here
    std::vector<std::uint32_t> binaries;     // compute capabilities × 10 that it has machine code for
    std::vector<std::uint32_t> ptx_targets;  // and those that its PTX was written for
    std::vector<char> ptx_suffixes;          // of each of ptx_targets: 'a', 'f' or '\0', as in sm_90a
    std::uint32_t ptx_version = 0;           // the greatest, × 10; 0: no PTX, or not readable
    std::vector<ImageEntry> entries;         // each name once
    std::vector<ImageGlobal> globals;        // variables of __device__ and __constant__

    const ImageEntry* entry(std::string_view name) const noexcept;
    const ImageGlobal* global(std::string_view name) const noexcept;
    // Whether a GPU of this compute capability × 10 can run it, as far as that can be read.
    bool suits(std::uint32_t capability) const noexcept;
};

// PTX ISA, .target: PTX for sm_90a runs on that compute capability alone, for sm_100f on its major version from the
// target on, and other PTX on every one from the target on.
bool ptx_runs_on(std::uint32_t target, char suffix, std::uint32_t capability) noexcept;

// Reads nothing beyond `bytes`, whatever they hold. PTX ends at its first NUL or with the bytes.
ImageContents read_image(std::span<const std::byte> bytes);

// The PTX of an image that suits this compute capability × 10 (0: any) best: the text itself, or that member of a
// fatbin with the greatest target. Empty: there is none, or it is compressed. A view into the bytes.
std::string_view ptx_text(std::span<const std::byte> bytes, std::uint32_t capability);

// The steps of read_image(). Each adds what it finds.
void read_ptx(std::string_view text, ImageContents& out);
void read_cubin(std::span<const std::byte> bytes, ImageContents& out);
void read_fatbin(std::span<const std::byte> bytes, ImageContents& out);

}  // namespace isthmus::images
