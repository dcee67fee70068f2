// SPDX-License-Identifier: Apache-2.0
// Error entries: the CPU device.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto cpu_device_out_of_memory =
    error_entry("B001", Code::out_of_memory,
                "{what}: the system has no more host memory to give",
                "ask for less, or raise the limits of the process and of its memory cgroup");
inline constexpr auto cpu_device_reaches_no_other =
    error_entry("B002", Code::unsupported,
                "{what}: the CPU device reaches no other device's memory",
                "copy with a stream of the other device");
inline constexpr auto cpu_device_takes_no_hints =
    error_entry("B003", Code::unsupported,
                "{what}: the CPU device takes no hints",
                "nothing has to be done: its memory is where it is used");
inline constexpr auto kernel_without_cpu_function =
    error_entry("B004", Code::unsupported,
                "{what}: the kernel has no CPU function",
                "write it with ISTHMUS_KERNEL, give it a CPU function, or launch it on a CUDA device");
inline constexpr auto unknown_to_cpu_device =
    error_entry("B005", Code::invalid_handle,
                "{what}: the CPU device knows no such stream or event",
                "use one that was made on this device and is not destroyed; elapsed times need recorded timing events");
inline constexpr auto cpu_capture_not_joined =
    error_entry("B006", Code::capture_error,
                "{what}: a stream that joined the capture has not come back",
                "a capture ends on its first stream and thread, which has waited for every stream that joined it; the "
                "host waits for none of them meanwhile");
inline constexpr auto cpu_capture_would_end =
    error_entry("B007", Code::capture_error,
                "{what}: what was asked for would have been the end of the capture",
                "a capture ends on its first stream and thread, which has waited for every stream that joined it; the "
                "host waits for none of them meanwhile");
inline constexpr auto cpu_device_refused =
    error_entry("B008", Code::ok,
                "{what}: {kind}",
                "");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
