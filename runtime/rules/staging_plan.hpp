// SPDX-License-Identifier: Apache-2.0
// Ranges that a device cannot reach → their offsets in a temporary of the device, and the copies in and out. Pure.
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
    int ordinal = -1;  // the GPU that owns the memory; −1: host memory
};

struct StagedCopy {
    std::uint64_t address = 0;  // of the original
    std::uint64_t offset = 0;   // in the temporary
    std::uint64_t bytes = 0;
    int ordinal = -1;
};

struct StagingPlan {
    static constexpr std::uint64_t alignment = 256;  // alignment of every driver allocation
    std::uint64_t bytes = 0;                         // of the one temporary that holds all ranges
    std::vector<std::uint64_t> offsets;              // of each range in the temporary, in the order of the ranges
    std::vector<StagedCopy> in;                      // before the kernel: bytes that an argument reads
    std::vector<StagedCopy> out;                     // after the kernel: bytes that an argument writes
};

// Overlapping ranges of one memory share one copy of it, so that one argument's writes are visible to another, as in
// place. Addresses keep their remainder modulo `alignment`, so that elements stay aligned.
StagingPlan plan_staging(const std::vector<StagedRange>& ranges);

}  // namespace isthmus::rules
