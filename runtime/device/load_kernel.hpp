// SPDX-License-Identifier: Apache-2.0
// load_kernel(): a kernel's code, before its first launch.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/result.hpp>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceSession;

// Loads the kernel's image for the device, once; nothing if that was done before. Errors: those of the gate for loading
// a kernel, in_use (a service runs on the device), no_gpu_code, and the driver's.
Result<void> load_kernel(DeviceSession& device, const KernelInfo& kernel);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
