// SPDX-License-Identifier: Apache-2.0
// Which devices may join a multicast object, and which steps are allowed when. Pure. The driver blocks in bind and map
// until all devices have joined: a call that comes too early is refused here.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_place.hpp>

#include "virtual_memory_rules.hpp"

#include <cstddef>
#include <span>

namespace isthmus::rules {

// `has_functions`: the driver has all functions that multicast objects need.
MappingAnswer may_join(const Capabilities& device, bool has_functions);

struct TeamWish {
    std::size_t devices = 0;
    std::size_t bytes = 0;
    ExportKinds exports = ExportKinds::none;
};
// `joining_here`: the number of this runtime's devices that may join.
MappingAnswer may_make_team(const Capabilities& device, const TeamWish& wish, std::size_t joining_here);

struct TeamFacts {
    std::size_t size = 0;    // number of devices that it was made for
    std::size_t joined = 0;  // of this process
    bool shared = false;     // shared with other processes, whose devices join there
};
MappingAnswer may_add(const TeamFacts& team, bool joined_before) noexcept;
// `elsewhere`: number of devices that other processes report as added.
MappingAnswer may_complete(const TeamFacts& team, std::size_t elsewhere) noexcept;

struct BindWish {
    std::size_t granularity = 0;  // of the object
    std::size_t team_bytes = 0;
    std::size_t offset = 0;
    std::size_t memory_bytes = 0;  // size of the whole memory
    std::size_t memory_offset = 0;
    std::size_t bytes = 0;
    std::uint64_t address = 0;  // by which it is bound; 0: by its handle
    bool same_runtime = true;
    bool on_host = false;       // the memory is on the host
    bool joined = true;         // the device that owns the memory has joined
    bool team_shared = false;   // the object can be exported
    bool memory_shared = true;  // the memory can be exported
};
// `bound`: the ranges that the device has bound already.
MappingAnswer may_bind(const BindWish& wish, std::span<const MappedSpan> bound) noexcept;
// The address has to be a multiple of the object's granularity.
MappingAnswer may_map_team(std::uint64_t address, std::size_t granularity) noexcept;
// For a device that is to get access to a mapping of an object: multimem instructions need compute capability 9.0.
MappingAnswer may_multimem(bool joined, int compute_major) noexcept;

}  // namespace isthmus::rules
