// SPDX-License-Identifier: Apache-2.0
// The seal of a run: until its end, calls of this thread that would allocate, map, load code or make a driver object
// are refused.
#pragma once

#include <isthmus/runtime.hpp>

#include <cstdint>
#include <memory>
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

class SealedRun {
public:
    virtual ~SealedRun() = default;  // ends the seal, too
    virtual SealedCounts end() = 0;
};

// Errors: those of Runtime::seal().
Result<std::unique_ptr<SealedRun>> begin_sealed(Runtime& runtime);

}  // namespace isthmus::tools::latency
