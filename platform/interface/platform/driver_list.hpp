// SPDX-License-Identifier: Apache-2.0
// Opens every device of this machine. Only driver_list.cpp knows which backends exist.
#pragma once

#include <platform/driver.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::platform {

struct DriverOptions {
    bool use_cuda = true;
    // A file instead of "libcuda.so.1"; empty: ISTHMUS_CUDA_LIBRARY (read with secure_getenv), else the bare name.
    std::string cuda_library;
    std::uint32_t cpu_threads = 0;  // that run a kernel of the CPU device; 0 and 1: the launching one alone
};

struct DriverSet {
    std::vector<std::unique_ptr<Driver>> drivers;  // CUDA devices by ordinal; the CPU device last, always present
    std::vector<Status> found;                     // per driver: device_lost if it faulted earlier in this process
    MachineFacts machine;
    std::optional<Error> cuda_absence;  // why there is no CUDA device; nothing if there is one
};

DriverSet open_drivers(const DriverOptions& options);

}  // namespace isthmus::platform
