// SPDX-License-Identifier: Apache-2.0
// Checks for causes of late loops and slow GPUs: privileges, kernel settings, clocks, and the code in this build.
#pragma once

#include "doctor_checks.hpp"

#include <optional>

namespace isthmus::tools {

// The form of this build's kernels for a GPU.
enum class GpuCode : std::uint8_t {
    unknown,   // the images were compiled elsewhere
    none,      // no code that this GPU can run
    compiled,  // PTX, which the driver compiles at the first use of a kernel
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
