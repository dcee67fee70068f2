// SPDX-License-Identifier: Apache-2.0
// The plan of one run of `isthmus litmus` on a device: the rows, and the amount of each. Pure apart from questions to
// the device.
#pragma once

#include "verdict.hpp"

#include <isthmus/capability.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools::litmus {

struct Request {
    std::vector<MemoryKind> kinds{};    // empty: every kind that CPU and GPU may use at the same time on this device
    std::vector<LitmusShape> shapes{};  // empty: all
    std::uint64_t instances = 0;        // of each row; 0: as many as the time allows
    double seconds = 5;                 // for all rows together, in seconds
    unsigned threads = 0;               // CPU threads; 0: a useful number
    bool host_has_16 = true;            // accesses of 16 bytes are single-copy atomic on this CPU (host_has_pairs())
    std::uint64_t seed = 1;
    std::string mutant{};
};

// The kinds that have trials, in the order of the run.
inline constexpr MemoryKind tried_kinds[] = {MemoryKind::pinned, MemoryKind::registered, MemoryKind::host,
                                             MemoryKind::managed};

// Returns the rows to play, each with Ending::not_run. Only kinds that both sides may touch at the same time have rows:
// in others a trial would fault. A requested kind that may not be tried has no row; `left_out` gets the reason, one
// line each.
std::vector<Row> plan_rows(const Capabilities& device, const Request& request, std::vector<std::string>& left_out);

// Instances of the control, which only has to show that weak outcomes are possible here.
std::uint64_t control_instances(std::uint64_t of_test) noexcept;

}  // namespace isthmus::tools::litmus
