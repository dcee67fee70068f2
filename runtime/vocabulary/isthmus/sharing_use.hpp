// SPDX-License-Identifier: Apache-2.0
// The declared use of a shared buffer: which side accesses it, and how. The allocation policy decides the rest.
#pragma once

#include <isthmus/atomic_set.hpp>
#include <isthmus/export.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace isthmus {
inline namespace v0 {

enum class Use : std::uint8_t { never, reads_once, reads_often, writes_once, writes_often, reads_and_writes };
inline constexpr int use_count = 6;
enum class Prefer : std::uint8_t { throughput, latency };
ISTHMUS_API std::string_view name(Use use) noexcept;
ISTHMUS_API std::string_view name(Prefer prefer) noexcept;

// A pass: the device goes over the bytes of the buffer once. Passes are counted between two hand-overs, that is, from
// the host's turn to the next one of the host: ten kernels that each read the whole buffer are ten passes. "once" is
// one pass; "often" and `reads_and_writes` are many.
inline constexpr int many_passes = 16;

struct SharedUse {
    Use host = Use::reads_and_writes;  // per content produced; "once": each byte once between two hand-overs
    Use device = Use::reads_and_writes;
    Prefer prefer = Prefer::throughput;
    std::optional<MemoryKind> kind{};  // overrides the policy; refused where the machine does not support it
    HostPlacement placement{};
    // The updates that CPU and GPU make to the same words at the same time (words are the buffer's elements, of 4 or 8
    // bytes). The buffer gets memory in which these updates are atomic; Code::unsupported where this machine has none.
    // Adopted memory keeps its kind.
    AtomicSet updates = AtomicSet::load_store;
    // The memory begins at a multiple of it, for the CPU and for the device, and shares no page of that size with other
    // allocations. A power of two, at most a page of this machine; with PageSize::huge in `placement`, a huge page. For
    // direct I/O, V4L2 user pointers and other drivers that work on pages. 0: the alignment of the elements, and at
    // least 256. Adopted memory must have it.
    std::size_t alignment_bytes = 0;
    // The passes that the device makes, where the program knows their number; it replaces "once" and "often" of
    // `device`, which still says whether they read, write or both. 0 or less: as `device` says. An estimate is enough:
    // it decides between access in place and a copy, never whether a result is right. There is no such number for the
    // host, because no choice depends on it.
    int device_passes = 0;
};
// Passes of the device; 0 for Use::never.
constexpr int passes_of_device(const SharedUse& use) noexcept {
    if (use.device == Use::never) return 0;
    if (use.device_passes > 0) return use.device_passes;
    return use.device == Use::reads_once || use.device == Use::writes_once ? 1 : many_passes;
}

// How a launch passes a buffer of this memory to the device; explained by `isthmus caps` and BufferBase::explain().
enum class LaunchPath : std::uint8_t {
    pass,      // the device uses the memory in place
    attach,    // managed memory is attached to the stream before the use, and to the host after it (89=0)
    stage,     // host side and device side are two memories; copies are made around the use
    refuse,    // this device cannot use such memory
    prefetch,  // used in place; moved to the device before its first use after one by the host, and where both share
               // one DRAM before its first use only
};
ISTHMUS_API std::string_view name(LaunchPath path) noexcept;

}  // namespace v0
}  // namespace isthmus
