// SPDX-License-Identifier: Apache-2.0
// ModuleCache: what the driver's compiler made of PTX, in a folder of the user's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// The content of one file: a header, the PTX, the cubin, and a checksum of all. The PTX is compared as a whole, so that
// two texts with one hash are told apart. Pure.
std::vector<std::byte> cache_record(std::string_view ptx, int driver_version, std::uint32_t capability,
                                    std::span<const std::byte> cubin);
// The cubin; nullopt: the record is damaged, or of another text, driver or compute capability.
std::optional<std::span<const std::byte>> cubin_of(std::span<const std::byte> record, std::string_view ptx,
                                                   int driver_version, std::uint32_t capability);
// "isthmus-90-13000-0123456789abcdef.cubin": compute capability, driver, hash of the text.
std::string cache_file_name(std::string_view ptx, int driver_version, std::uint32_t capability);

// Reads and writes one record. What cannot be read or written counts as not there.
class ModuleCache {
public:
    // `ptx` must outlive it.
    ModuleCache(const std::string& folder, std::string_view ptx, int driver_version, std::uint32_t capability);
    std::optional<std::vector<std::byte>> read() const;
    // Other processes see the whole file or none.
    void write(std::span<const std::byte> cubin) const;

private:
    const std::string_view ptx_;
    const int driver_version_;
    const std::uint32_t capability_;
    const std::string path_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
