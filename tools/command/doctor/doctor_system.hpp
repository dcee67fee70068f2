// SPDX-License-Identifier: Apache-2.0
// Checks of what makes a loop late or a GPU slow: privileges, the kernel's habits, clocks, and the code in this build.
#pragma once

#include "doctor_checks.hpp"

#include <optional>

namespace isthmus::tools {

// What this build's kernels are for a GPU.
enum class GpuCode : std::uint8_t {
    unknown,   // the images were compiled elsewhere
    none,      // nothing that this GPU could run
    compiled,  // PTX, which the driver compiles when a kernel is first used
    ready,
};
GpuCode gpu_code(const KernelCodeFacts& kernels, const DeviceSighting& device) noexcept;

std::optional<Diagnosis> no_realtime(const DoctorFacts& facts);
std::optional<Diagnosis> numa_balancing(const DoctorFacts& facts);
std::optional<Diagnosis> shared_memory_folder(const DoctorFacts& facts);
std::optional<Diagnosis> missing_gpu_code(const DoctorFacts& facts);
std::optional<Diagnosis> clocks(const DoctorFacts& facts);
std::optional<Diagnosis> power_mode(const DoctorFacts& facts);

}  // namespace isthmus::tools
