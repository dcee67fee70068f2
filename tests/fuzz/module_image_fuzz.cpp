// SPDX-License-Identifier: Apache-2.0
// Ready-made images: whatever the bytes are, reading them stays within them, and what it finds is well-formed.
#include "module_image.hpp"

#include "require.hpp"

namespace {

using namespace isthmus::images;

void look_at(std::span<const std::byte> bytes) {
    const ImageContents found = read_image(bytes);
    require(found.size_bytes <= bytes.size());
    require(found.format != ImageFormat::unknown || !found.damage.empty());
    for (const ImageEntry& entry : found.entries) {
        require(!entry.name.empty() && entry.name.size() <= bytes.size());
        require(found.entry(entry.name) == &entry);  // each name once
        // No parameter block is longer; PTX lays its parameters out one behind the other.
        std::uint32_t end = 0;
        for (const ImageParameter& parameter : entry.parameters) {
            require(parameter.offset_bytes <= 0xffff && parameter.size_bytes <= 0xffff);
            if (found.format == ImageFormat::ptx) require(parameter.offset_bytes >= end && parameter.size_bytes > 0);
            end = parameter.offset_bytes + parameter.size_bytes;
        }
    }
    for (const ImageGlobal& global : found.globals) require(found.global(global.name) == &global);
    for (const std::uint32_t capability : {0u, 75u, 90u, 121u}) (void)found.suits(capability);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    look_at({reinterpret_cast<const std::byte*>(data), size});
    return 0;
}
