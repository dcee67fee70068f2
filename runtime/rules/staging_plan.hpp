// Ranges that a device cannot reach → where they lie in a temporary of the device, and what is copied in and out. Pure.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isthmus::rules {

// One argument of a staged launch.
struct StagedRange {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;  // not 0
    ArgumentUse use = ArgumentUse::read_write;
    int ordinal = -1;  // of the GPU whose memory it is; −1: host memory
};

struct StagedCopy {
    std::uint64_t address = 0;  // outside
    std::uint64_t offset = 0;   // in the temporary
    std::uint64_t bytes = 0;
    int ordinal = -1;
};

struct StagingPlan {
    static constexpr std::uint64_t alignment = 256;  // what the driver gives every allocation
    std::uint64_t bytes = 0;                         // of the one temporary that holds everything
    std::vector<std::uint64_t> offsets;              // of each range in it, in the order of the ranges
    std::vector<StagedCopy> in;                      // before the kernel: bytes that some argument reads
    std::vector<StagedCopy> out;                     // behind it: bytes that some argument writes
};

// Ranges of one memory that overlap share one copy of it, so that what one argument writes another one reads, as it
// would in place. Addresses keep their remainder by `alignment`, so that elements stay aligned.
StagingPlan plan_staging(const std::vector<StagedRange>& ranges);

}  // namespace isthmus::rules
