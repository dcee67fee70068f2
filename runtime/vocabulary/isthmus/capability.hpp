// SPDX-License-Identifier: Apache-2.0
// Capabilities: what one device can do on this machine; each answer has its origin and a sentence with the reason.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/facts.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace isthmus {
inline namespace v0 {

struct DeviceProfile;

// Independent questions. No answer is derived from another: each comes from its own attribute or probe. The number
// behind each is the CUdevice_attribute that decides it.
enum class Feature : std::uint8_t {
    pageable_access,           // 88: the GPU reads and writes ordinary pageable host memory
    host_page_tables,          // 100: it does so through the CPU's page tables (ATS)
    managed,                   // 83: cuMemAllocManaged works
    concurrent_managed,        // 89: CPU and GPU may access managed memory at the same time
    direct_managed,            // 101: the CPU reads GPU-resident managed memory in place
    unified_addressing,        // 41: one address space; says nothing about physical memory
    integrated,                // 18: GPU and CPU share one DRAM
    native_atomics,            // 86: the link carries CPU/GPU atomics natively (raw answer)
    partial_atomics,           // 147: only some operations; see host_atomics
    host_register,             // 99: cuMemHostRegister works
    host_register_read_only,   // 113
    registered_same_pointer,   // 91: device pointer of registered memory = host pointer
    pools,                     // 115: cuMemAllocAsync
    host_pools,                // 144: pools of host memory
    host_numa_pools,           // 142: pools of host memory on a NUMA node
    virtual_memory,            // 102: cuMemCreate, cuMemMap
    host_virtual_memory,       // 145
    host_numa_virtual_memory,  // 141
    export_posix_fd,           // 103
    export_fabric,             // 128: attribute only; a probe decides whether it works
    ipc_events,                // 125
    gpudirect_rdma,            // 116
    dma_buf,                   // 124: of device memory
    multicast,                 // 132
    concurrent_kernels,        // 31
    kernel_timeout,            // 17: a watchdog ends long kernels
    cooperative_launch,        // 95
    host_dma_buf,              // 146: of pinned host memory
};
inline constexpr int feature_count = 28;
ISTHMUS_API std::string_view name(Feature feature) noexcept;

enum class State : std::uint8_t { no, yes, probed };  // probed: yes, and a trial worked
enum class Origin : std::uint8_t {
    attribute,  // the driver answered
    probe,      // a trial decided (it can only lower an attribute's yes, or confirm it)
    absent,     // the driver is too old for the question, or there is no driver
    refused,    // the driver answered the question with an error
};
ISTHMUS_API std::string_view name(State state) noexcept;
ISTHMUS_API std::string_view name(Origin origin) noexcept;

struct Capability {
    State state = State::no;
    Origin origin = Origin::absent;
    std::string reason;  // one sentence
    explicit operator bool() const noexcept { return state != State::no; }
};

// The four axes that decide how memory behaves, and the model's name, for display.
enum class Translation : std::uint8_t { none, hmm, host_page_tables };
enum class MemoryModel : std::uint8_t { host, separate, shared_dram, coherent_node, coherent_hidden };
enum class ManagedModel : std::uint8_t { none, phase_guarded, concurrent, direct };
enum class LinkAtomics : std::uint8_t { none, partial, native };
enum class Model : std::uint8_t { cpu, discrete, hmm, integrated, ats, c2c };
inline constexpr int model_count = 6;
ISTHMUS_API std::string_view name(Translation axis) noexcept;
ISTHMUS_API std::string_view name(MemoryModel axis) noexcept;
ISTHMUS_API std::string_view name(ManagedModel axis) noexcept;
ISTHMUS_API std::string_view name(LinkAtomics axis) noexcept;
ISTHMUS_API std::string_view name(Model model) noexcept;

// A value, made once per device by detect(); thread-safe to read, without driver calls.
struct ISTHMUS_API Capabilities {
    Translation translation = Translation::none;
    MemoryModel memory = MemoryModel::separate;
    ManagedModel managed = ManagedModel::none;
    LinkAtomics link_atomics = LinkAtomics::none;
    Model model = Model::discrete;

    std::array<Capability, feature_count> features{};
    HostAtomics host_atomics{};  // all zero where the driver does not say
    int compute_major = 0;       // compute capability; 0.0 on the CPU device
    int compute_minor = 0;
    int host_numa_node = -1;  // closest CPU node (attribute 134); -1: none stated
    int gpu_numa_node = -1;   // the node that is this GPU's memory (130/131); -1: none

    // Bits 1 << kind: kinds of memory in which trials on this device saw outcomes that must not happen
    // (RuntimeOptions::litmus_findings).
    std::uint32_t disordered_kinds = 0;  // messages overtook their data, or one word went back
    std::uint32_t torn_kinds = 0;        // halves of 16 bytes were seen
    std::uint32_t lossy_kinds = 0;       // updates by both sides were lost

    // What `isthmus tune` measured on this device (profile.hpp, RuntimeOptions::profile); null: nothing.
    std::shared_ptr<const DeviceProfile> profile{};

    const Capability& feature(Feature f) const noexcept { return features[static_cast<std::size_t>(f)]; }
    bool has(Feature f) const noexcept { return static_cast<bool>(feature(f)); }
};

}  // namespace v0
}  // namespace isthmus
