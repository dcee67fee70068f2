// SPDX-License-Identifier: Apache-2.0
// Raw facts about a machine, as the driver and the operating system state them, without conclusions.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/uuid.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

// One answer of cuDeviceGetAttribute: the attribute's number, and its value or the error code.
struct AttributeFact {
    int id = 0;            // CUdevice_attribute
    int value = 0;         // meaningless where refused
    int refused_code = 0;  // CUresult; 0: answered
};

// The operations of cuDeviceGetHostAtomicCapabilities, in the driver's order (CUatomicOperation).
enum class AtomicOperation : std::uint8_t {
    add,
    min,
    max,
    increment,
    decrement,
    bit_and,
    bit_or,
    bit_xor,
    exchange,
    compare_exchange,
    float_add,
    float_min,
    float_max,
};
inline constexpr int atomic_operation_count = 13;
ISTHMUS_API std::string_view name(AtomicOperation operation) noexcept;

// Bits of one entry of DeviceFacts::host_atomics (CUatomicOperationCapability).
namespace atomic_bits {
inline constexpr std::uint32_t is_signed = 1u << 0;
inline constexpr std::uint32_t is_unsigned = 1u << 1;
inline constexpr std::uint32_t reduction = 1u << 2;
inline constexpr std::uint32_t scalar_32 = 1u << 3;
inline constexpr std::uint32_t scalar_64 = 1u << 4;
inline constexpr std::uint32_t scalar_128 = 1u << 5;
inline constexpr std::uint32_t vector_32x4 = 1u << 6;
}  // namespace atomic_bits
using HostAtomics = std::array<std::uint32_t, atomic_operation_count>;

// A device's place on the PCI bus, as the operating system states it (sysfs). The bus id is in the attributes
// PCI_DOMAIN_ID (50), PCI_BUS_ID (33) and PCI_DEVICE_ID (34).
struct PciPlace {
    int speed_mt_per_s = 0;      // of each lane now, in megatransfers per second; lower on idle GPUs; 0: not stated
    int lanes = 0;               // in use; 0: not stated
    int max_speed_mt_per_s = 0;  // the device's maximum; 0: not stated
    int max_lanes = 0;           // the device's maximum; 0: not stated
    int numa_node = -1;          // -1: not stated
    std::string near_cpus{};     // as the system lists them, "0-15,32-47"; empty: not stated
};

struct ISTHMUS_API DeviceFacts {
    int ordinal = -1;  // the driver's; -1: the CPU device
    std::string name;  // for display; no decision depends on it
    Uuid uuid;         // none if the driver did not state it
    std::uint64_t total_memory_bytes = 0;
    std::vector<AttributeFact> attributes;    // ascending by id
    std::optional<HostAtomics> host_atomics;  // absent: the driver is older than CUDA 13.0
    std::optional<PciPlace> pci;              // absent: the system does not list the device

    bool is_cpu() const noexcept { return ordinal < 0; }
    // The value of an attribute; none where the driver does not know it or refused it.
    std::optional<int> attribute(int id) const noexcept;
};

struct NumaNode {
    int id = 0;         // not dense: 0, 1, 2, 10, 18, 26 occur
    int cpu_count = 0;  // 0: the node has only memory (GPU memory, CXL)
    std::uint64_t memory_bytes = 0;
    std::string cpus{};  // as the system lists them, "0-15,32-47"; empty: none, or not stated
};

// Facts that the operating system states, and facts that the driver states about the whole machine.
struct MachineFacts {
    int driver_version = 0;      // 13000 is CUDA 13.0; 0: no driver
    bool simulated = false;      // the opened libcuda.so.1 is the simulator
    std::string kernel_release;  // uname -r
    std::string cpu_name;
    std::size_t page_size_bytes = 4096;
    std::size_t huge_page_bytes = 0;                                 // the system's default huge page; 0: it has none
    std::vector<NumaNode> numa_nodes;                                // ascending by id; empty: the system does not say
    bool libnuma = false;                                            // built with libnuma and it answers
    std::vector<std::pair<std::string, std::string>> nvidia_params;  // /proc/driver/nvidia/params, as read
    int imex_channels_major = -1;           // "nvidia-caps-imex-channels" in /proc/devices; -1: absent
    int imex_channel_files = 0;             // /dev/nvidia-caps-imex-channels/channel*
    std::string addressing_mode;            // "Addressing Mode" of the GPU: None, HMM, ATS; empty: unknown
    std::uint64_t memory_limit_bytes = 0;   // cgroup limit; 0: none
    std::uint64_t memlock_limit_bytes = 0;  // RLIMIT_MEMLOCK; UINT64_MAX: unlimited

    std::string_view nvidia_param(std::string_view key) const noexcept;  // empty: absent
};

// "PAGEABLE_MEMORY_ACCESS" for 88, without its prefix; empty for an id that this version does not know.
ISTHMUS_API std::string_view attribute_name(int id) noexcept;
// 88 for "PAGEABLE_MEMORY_ACCESS"; -1: unknown. Accepts "ATTRIBUTE_<n>", the form for ids without a name.
ISTHMUS_API int attribute_id(std::string_view name) noexcept;

}  // namespace v0
}  // namespace isthmus
