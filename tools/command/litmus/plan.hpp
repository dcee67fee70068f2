// SPDX-License-Identifier: Apache-2.0
// What one run of `isthmus litmus` plays on a device: the rows, and how much of each. Pure but for the asking.
#pragma once

#include "verdict.hpp"

#include <isthmus/capability.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools::litmus {

struct Request {
    std::vector<MemoryKind> kinds{};    // empty: every kind that CPU and GPU may use at the same time here
    std::vector<LitmusShape> shapes{};  // empty: all
    std::uint64_t instances = 0;        // of each row; 0: as many as the time allows
    double seconds = 5;                 // for all rows together
    unsigned threads = 0;               // of the CPU; 0: as many as are useful
    bool host_has_16 = true;            // this CPU's accesses of 16 bytes are one piece (host_has_pairs())
    std::uint64_t seed = 1;
    std::string mutant{};
};

// The kinds that trials are made for, in the order in which they run.
inline constexpr MemoryKind tried_kinds[] = {MemoryKind::pinned, MemoryKind::registered, MemoryKind::host,
                                             MemoryKind::managed};

// Rows to play, each with Ending::not_run. Only kinds that both sides may touch at the same time: in others a trial
// would be a fault. A kind that was asked for and may not be is left out; `left_out` says why, one line each.
std::vector<Row> plan_rows(const Capabilities& device, const Request& request, std::vector<std::string>& left_out);

// The control needs to show that there is something to see, and no more.
std::uint64_t control_instances(std::uint64_t of_test) noexcept;

}  // namespace isthmus::tools::litmus
