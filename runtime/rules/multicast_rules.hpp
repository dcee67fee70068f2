// Who may take part in a multicast object, and what may be done with one when. Pure. The driver waits in bind and map
// until all devices have joined: what comes too early is refused here.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_place.hpp>

#include "virtual_memory_rules.hpp"

#include <cstddef>
#include <span>

namespace isthmus::rules {

// `has_functions`: of the driver, all that multicast objects need.
MappingAnswer may_join(const Capabilities& device, bool has_functions);

struct TeamWish {
    std::size_t devices = 0;
    std::size_t bytes = 0;
    ExportKinds exports = ExportKinds::none;
};
// `joining_here`: how many devices of this runtime may join.
MappingAnswer may_make_team(const Capabilities& device, const TeamWish& wish, std::size_t joining_here);

struct TeamFacts {
    std::size_t size = 0;    // devices that it was made for
    std::size_t joined = 0;  // of this process
    bool shared = false;     // with other processes, whose devices join there
};
MappingAnswer may_add(const TeamFacts& team, bool joined_before) noexcept;
// `elsewhere`: devices that other processes added, as they say.
MappingAnswer may_complete(const TeamFacts& team, std::size_t elsewhere) noexcept;

struct BindWish {
    std::size_t granularity = 0;  // of the object
    std::size_t team_bytes = 0;
    std::size_t offset = 0;
    std::size_t memory_bytes = 0;  // of all of the memory
    std::size_t memory_offset = 0;
    std::size_t bytes = 0;
    bool same_runtime = true;
    bool on_host = false;       // where the memory lies
    bool joined = true;         // the device whose memory it is
    bool team_shared = false;   // the object can be exported
    bool memory_shared = true;  // so can the memory
};
// `bound`: what the device bound already.
MappingAnswer may_bind(const BindWish& wish, std::span<const MappedSpan> bound) noexcept;
// At this address, which the object's granularity has to divide.
MappingAnswer may_map_team(std::uint64_t address, std::size_t granularity) noexcept;
// For whoever is to be let into a mapping of one: multimem instructions need compute capability 9.0.
MappingAnswer may_multimem(bool joined, int compute_major) noexcept;

}  // namespace isthmus::rules
