// SPDX-License-Identifier: Apache-2.0
// LitmusFinding: what trials on a device showed about memory that CPU and GPU use at the same time. `isthmus litmus`
// makes findings, machine records keep them, RuntimeOptions takes them. They narrow what the rules grant and never
// widen it.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/uuid.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {

// The trials: one small program each for CPU and GPU. "To device": the CPU writes and the GPU reads.
enum class LitmusShape : std::uint8_t {
    message_to_device,    // data, then a flag: a reader that sees the flag sees the data
    message_to_host,      // the same to the host
    store_buffering,      // each side writes its own word, then reads the other's: one of them sees the other's write
    load_buffering,       // each side reads the other's word, then writes its own: they do not both see a write
    coherence_to_device,  // one word written twice: no reader sees the second value, then the first
    coherence_to_host,    // the same to the host
    tearing_to_device,    // 16 bytes at once: no reader sees one half without the other
    tearing_to_host,      // the same to the host
    lost_updates,         // both sides add to one word: nothing is lost
};
inline constexpr int litmus_shape_count = 9;
ISTHMUS_API std::string_view name(LitmusShape shape) noexcept;

// One shape in memory of one kind. An instance is one run of the two small programs.
struct LitmusResult {
    MemoryKind kind = MemoryKind::unknown;
    LitmusShape shape = LitmusShape::message_to_device;
    std::uint64_t instances = 0;
    std::uint64_t forbidden = 0;  // instances with an outcome that the memory model rules out; one is enough to narrow
    // A control, with memory orders too weak for the shape: unless weak outcomes occurred here, their absence above
    // proves nothing.
    std::uint64_t control_instances = 0;
    std::uint64_t control_weak = 0;
};

struct LitmusFinding {
    Uuid device;
    int driver_version = 0;  // MachineFacts::driver_version when the trials ran
    bool simulated = false;  // made on a simulated machine: says nothing about a real one
    std::vector<LitmusResult> results;
};

}  // namespace v0
}  // namespace isthmus
