// SPDX-License-Identifier: Apache-2.0
// What a sealed scope of a run refused, in the words of the report.
#pragma once

#include <isthmus/seal.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace isthmus::tools::latency {

struct SealedPlaceLine {
    std::string call;
    std::string act;
    std::uint64_t times = 0;
};
struct SealedCounts {
    std::uint64_t count = 0;  // how often something was refused
    std::vector<SealedPlaceLine> places{};
};

// Ends the scope of this thread.
SealedCounts end_and_count(Seal& seal);

}  // namespace isthmus::tools::latency
