// SPDX-License-Identifier: Apache-2.0
// Terms for memory that is created, placed and mapped explicitly (cuMemCreate, cuMemMap): where it lies, the handles it
// can be exported as, and what a device may do with a mapped range.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace isthmus {
inline namespace v0 {

// Where physical memory lies; also the agent whose access to a range is meant.
struct MemoryPlace {
    enum class Where : std::uint8_t {
        device,     // a GPU's memory
        host,       // host memory, where the driver chooses
        host_node,  // host memory on one NUMA node
    };
    Where where = Where::device;
    int id = 0;  // device: the driver's ordinal; host_node: the NUMA node; host: 0
    bool on_host() const noexcept { return where != Where::device; }
    bool operator==(const MemoryPlace&) const = default;
};

// The handles that physical memory can be exported as: a set, fixed when the memory is created (V4).
enum class ExportKinds : std::uint8_t {
    none = 0,
    posix_fd = 1,  // a file descriptor: processes of one machine (attribute 103)
    fabric = 2,    // 64 bytes, for other nodes of one NVLink fabric (attribute 128, an IMEX channel)
};
constexpr ExportKinds operator|(ExportKinds a, ExportKinds b) noexcept {
    return static_cast<ExportKinds>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool includes(ExportKinds set, ExportKinds all_of) noexcept {
    return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(all_of)) == static_cast<std::uint8_t>(all_of);
}

// What physical memory is for beside kernels and copies: a set, fixed when the memory is created (allocFlags.usage).
enum class PhysicalUsage : std::uint8_t {
    none = 0,
    tile_pool = 1,            // backs sparse CUDA arrays, and is mapped by them alone (attribute 112)
    hardware_decompress = 2,  // a buffer of the decompression engine (attribute 136 is not 0)
};
constexpr PhysicalUsage operator|(PhysicalUsage a, PhysicalUsage b) noexcept {
    return static_cast<PhysicalUsage>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool includes(PhysicalUsage set, PhysicalUsage all_of) noexcept {
    return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(all_of)) == static_cast<std::uint8_t>(all_of);
}

// Names memory on the other nodes of its fabric. A process that has these bytes may import the memory.
struct FabricHandle {
    std::array<unsigned char, 64> bytes{};
};

// What a device may do with a mapped range. Mapping alone grants nothing (V8).
enum class RangeAccess : std::uint8_t { none = 0, read = 1, read_write = 3 };

}  // namespace v0
}  // namespace isthmus
