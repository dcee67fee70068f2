// SPDX-License-Identifier: Apache-2.0
// A trace as what a program asked for: memory, and the calls that used it, in the order in which they began. Pure.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::replay {

// How memory came to be.
enum class Made : std::uint8_t {
    shared,   // allocate_shared(): `use`
    of_kind,  // allocate() of one kind
    adopted,  // memory of other code: `use`
    before,   // the recording does not tell: it was made before, or its event found no room
    raw,      // a plain pointer, which is no buffer
};
std::string_view name(Made made) noexcept;

struct Memory {
    Made made = Made::shared;
    std::uint64_t bytes = 0;
    MemoryKind kind = MemoryKind::unknown;  // where it was recorded
    SharedUse use{};
    std::uint32_t device = 0;
};

enum class Act : std::uint8_t {
    make,         // of `memory`
    end,          // of `memory`
    open_view,    // of `memory`: uses[0]
    close_view,   // the one that `other` opened
    launch,       // also of graphs, and work of other code
    open_scope,   // a native scope
    close_scope,  // the one that `other` opened
    copy,         // to uses[0] from uses[1]
    fill,         // uses[0]
    read_back,    // of `memory`
    wait,         // of the host for `stream`, as the program asked
};
std::string_view name(Act act) noexcept;

struct MemoryUse {
    std::size_t memory = 0;
    std::uint64_t first = 0;  // byte
    std::uint64_t bytes = 0;
    ArgumentUse use = ArgumentUse::read_write;
};

struct Step {
    Act act = Act::launch;
    std::string name;  // the kernel's, the work's
    std::uint32_t device = 0;
    std::uint64_t stream = 0;
    std::optional<LaunchMode> mode;
    std::size_t memory = 0;
    std::size_t other = 0;
    std::vector<MemoryUse> uses;
    bool refused = false;  // where it was recorded
};

struct Recording {
    std::vector<Memory> memories;
    std::vector<Step> steps;
    double duration_us = 0;
    std::uint64_t threads = 0;
    std::uint64_t dropped = 0;    // events that found no room
    std::uint64_t captured = 0;   // operations that were recorded into graphs, and ran nothing
    std::uint64_t unclear = 0;    // events without what a replay needs: they are left out
    std::uint64_t published = 0;  // frames of rings

    std::uint64_t launches() const noexcept;
    // What a frame is: one that a FrameRing published, or, without rings, a turn: the work goes from the host to the
    // device (a launch, copy or fill behind a host view, or the first one). At least 1.
    std::uint64_t frames() const noexcept;
    std::uint64_t turns() const noexcept;
};

struct ReadRecording {
    std::optional<Recording> recording;
    std::string problem;  // why there is none
};
ReadRecording read_recording(std::string_view json);

// "host=writes_often device=reads_once passes=3": as Mark::buffer tells it. Nothing: not understood.
std::optional<SharedUse> use_of(std::string_view text);

}  // namespace isthmus::tools::replay
