// SPDX-License-Identifier: Apache-2.0
// KernelInfo: a kernel with its types erased, for the drivers and the simulator. Made by ISTHMUS_KERNEL (kernel.hpp);
// every member points to static storage of the shared library that defines the kernel.
#pragma once

#include <isthmus/atomic_set.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace isthmus {
inline namespace v0 {

// The index space of a launch in items (for block kernels: in blocks). Unused dimensions are 1.
struct Extent {
    std::uint64_t x = 1;
    std::uint64_t y = 1;
    std::uint64_t z = 1;
};

// The largest extent that one launch may have, on every device: what CUDA's grid limits hold (2147483647 × 65535 ×
// 65535 blocks, every GPU since compute capability 3.0), in items with the block of each rank (256, 32×8 and 8×8×4
// threads) and in blocks for rank 0. A product of the three numbers does not overflow for rank 0.
constexpr Extent largest_extent(std::uint8_t rank) noexcept {
    constexpr std::uint64_t x = 2147483647, yz = 65535;
    switch (rank) {
        case 0: return {x, yz, yz};
        case 1: return {x * 256, 1, 1};
        case 2: return {x * 32, yz * 8, 1};
        default: return {x * 8, yz * 8, yz * 4};
    }
}

// How a kernel uses an argument, declared by its type: View<const T> reads, Out<T> writes, View<T> does both.
// AtomicView<T> reads and writes while the other side may, only through atomics, aligned loads and stores, or
// mailboxes.
enum class ArgumentUse : std::uint8_t { value, read, write, read_write, concurrent };

// One parameter within the pack (one plain struct with all arguments). A View, Out or AtomicView is stored as { T*
// data; std::uint64_t size; }.
struct ParameterInfo {
    std::uint32_t offset_bytes;
    std::uint32_t size_bytes;
    std::uint32_t element_bytes;  // sizeof(T) of a View, Out or AtomicView; 0 for a value
    ArgumentUse use;
    // Updates (read-modify-writes) that the kernel makes through the parameter, as its type names them.
    AtomicSet atomics = AtomicSet::load_store;
    bool is_signed = false;   // of the words that are updated
    bool own_device = false;  // updated at the scope of one GPU: for launches on the device that made the memory
};

// When a kernel or an image was first used, in ns. 0: not yet. With the address it is unique within a process: it lies
// in the memory of the shared library, which takes it along when it is closed, and what is loaded at the same addresses
// later gets another number. Set by the runtime on any thread; copies begin at 0.
struct FirstUseStamp {
    constexpr FirstUseStamp() noexcept = default;
    constexpr FirstUseStamp(const FirstUseStamp&) noexcept {}
    constexpr FirstUseStamp& operator=(const FirstUseStamp&) noexcept { return *this; }

    mutable std::atomic<std::uint64_t> ns{0};
};

// GPU code of one source file: a fatbin, or, without a GPU compiler, a named placeholder. The simulator accepts a
// placeholder (it runs the CPU twins); a real driver never gets one.
struct KernelImage {
    const unsigned char* data;
    std::size_t size_bytes;
    const char* hash;  // of the content, as hexadecimal text
    const char* name;  // of the source file, for display
    bool has_gpu_code;
    FirstUseStamp first_use{};
};

struct SimulatedGpu;  // detail/play_gpu.hpp; only simulators make one

struct KernelInfo {
    const char* name;                // "scale"
    const char* symbol;              // "isthmus_scale": the entry in the image
    const char* parameters;          // "Index i, View<float> out, …" as written, for messages
    const ParameterInfo* parameter;  // without the index space
    std::uint32_t parameter_count;
    std::uint32_t pack_bytes;
    std::uint8_t rank;            // 1, 2, 3; 0: block kernel (Extent counts blocks)
    std::uint32_t block_threads;  // of a block kernel; else 0: the runtime chooses
    const KernelImage* image;     // nullptr: CPU only
    // Runs items [first, last) of the outermost dimension (x for rank 1, y for 2, z for 3; blocks for 0, numbered with
    // x fastest) on the calling thread. The argument list of both drivers is { Extent*, pack* }.
    void (*twin)(const Extent& extent, std::uint64_t first, std::uint64_t last, const void* pack);
    // For the simulator: from here on this thread updates memory as that GPU does; nullptr: as a CPU thread again. Null
    // for a kernel without an image: no simulated GPU runs it.
    void (*play_gpu)(const SimulatedGpu* gpu) = nullptr;
    FirstUseStamp first_use{};
};

}  // namespace v0
}  // namespace isthmus
