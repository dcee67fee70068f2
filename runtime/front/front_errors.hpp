// SPDX-License-Identifier: Apache-2.0
// The errors of the runtime itself, as data.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto no_device_of_this_index =
    error_entry("R001", Code::invalid_argument,
                "there is no device {index:number}; this machine has {devices:number}, the CPU included",
                "ask device_count()");
inline constexpr auto no_device_of_this_uuid =
    error_entry("R002", Code::invalid_argument,
                "no device of this process is {uuid}",
                "ask each device's facts()"
                "; CUDA_VISIBLE_DEVICES, or the container, may hide it");
inline constexpr auto runtime_moved_from =
    error_entry("R003", Code::invalid_handle,
                "{call} was called on a Runtime that was moved from",
                "call it on the Runtime that it was moved to");
inline constexpr auto unknown_launch_mode =
    error_entry("R004", Code::invalid_argument,
                "the environment variable ISTHMUS_LAUNCH_MODE is '{value}', which is no launch mode",
                "set it to relaxed, checked, strict, staged or verify, or unset it; RuntimeOptions::launch_mode decides "
                "before it");
inline constexpr auto too_many_cpu_threads =
    error_entry("R005", Code::invalid_argument,
                "{threads:number} threads for the CPU device are too many; at most {most:number} run its kernels",
                "set RuntimeOptions::cpu_threads to the number of CPUs that its kernels may use, or to 0 for none");
inline constexpr auto unknown_cache_limit =
    error_entry("R006", Code::invalid_argument,
                "the environment variable ISTHMUS_CACHE_BYTES is '{value}', which is no number of bytes",
                "set it to a decimal number, 0 for no cache, or unset it; RuntimeOptions::cache_bytes decides before it");
inline constexpr auto observer_too_small =
    error_entry("R007", Code::invalid_argument,
                "the observer's size is {size:number}, and this version's ObserverCallbacks have {needed:number} bytes",
                "leave ObserverCallbacks::size as it is, or set it to sizeof(isthmus::ObserverCallbacks)");
inline constexpr auto unknown_device_segments =
    error_entry("R008", Code::invalid_argument,
                "the environment variable ISTHMUS_DEVICE_SEGMENTS is '{value}', which is neither 0 nor 1",
                "set it to 1 for device memory in segments of the runtime, to 0 for none, or unset it");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
