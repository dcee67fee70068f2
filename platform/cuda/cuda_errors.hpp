// SPDX-License-Identifier: Apache-2.0
// Error entries: the CUDA driver. errors.cpp holds the meaning of each result code.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto driver_not_found =
    error_entry("U001", Code::no_driver,
                "no CUDA driver: {reason}",
                "install NVIDIA's driver (in a container: --gpus all; a Jetson: --runtime nvidia)"
                "; without one everything runs on the CPU device");
inline constexpr auto named_driver_not_opened =
    error_entry("U002", Code::no_driver,
                "no CUDA driver: the library that was named for it was not opened: {reason}",
                "let ISTHMUS_CUDA_LIBRARY (or RuntimeOptions::cuda_library) name a libcuda.so.1 of this architecture, or "
                "none, to take the system's");
inline constexpr auto library_is_no_driver =
    error_entry("U003", Code::no_driver,
                "{library} is not a CUDA driver: it has no cuDriverGetVersion",
                "unset ISTHMUS_CUDA_LIBRARY, or let it name a libcuda.so.1");
inline constexpr auto driver_older_than_function =
    error_entry("U004", Code::driver_too_old,
                "the CUDA driver is for CUDA {version} and lacks {function}, which came with CUDA {needed}",
                "install a driver for CUDA {needed} or newer; until then everything runs on the CPU device");
inline constexpr auto driver_lacks_own_function =
    error_entry("U005", Code::driver_too_old,
                "the CUDA driver is for CUDA {version} but lacks {function}, which belongs to CUDA {needed}",
                "the library is not a complete CUDA driver of its version; reinstall the driver (CUDA {needed} or newer), "
                "or name the right file in ISTHMUS_CUDA_LIBRARY");
inline constexpr auto absurd_device_count =
    error_entry("U006", Code::driver_error,
                "the CUDA driver counts {count:number} devices, which no machine has",
                "check which library libcuda.so.1 is (ISTHMUS_CUDA_LIBRARY), and install the driver again; until then "
                "everything runs on the CPU device");
inline constexpr auto too_few_files_for_driver =
    error_entry("U007", Code::system_limit,
                "the driver shows no device, and this process may open only {files:number} files: too few for the driver, "
                "which then reports \"no device\"",
                "raise the limit (ulimit -n 1024, LimitNOFILE= in a systemd unit)"
                "; until then everything runs on the CPU device");
inline constexpr auto driver_shows_no_device =
    error_entry("U008", Code::no_device,
                "the driver works but shows no device",
                "look at CUDA_VISIBLE_DEVICES, at nvidia-smi -L, at the permissions of /dev/nvidia*, and, in a container, "
                "at --gpus (a Jetson: --runtime nvidia)"
                "; until then everything runs on the CPU device");
inline constexpr auto address_space_too_small_for_driver =
    error_entry("U009", Code::system_limit,
                "the driver could not reserve its address space: this process is limited to {mebibytes:number} MiB "
                "(RLIMIT_AS)",
                "remove the limit (ulimit -v unlimited): the driver reserves far more than it uses. AddressSanitizer needs "
                "ASAN_OPTIONS=protect_shadow_gap=0; until then everything runs on the CPU device");
inline constexpr auto driver_without_memory_to_start =
    error_entry("U010", Code::out_of_memory,
                "the driver found no memory to start with",
                "free memory, raise the container's limit, and, under AddressSanitizer, set "
                "ASAN_OPTIONS=protect_shadow_gap=0; until then everything runs on the CPU device");
inline constexpr auto system_refused_driver =
    error_entry("U011", Code::system_limit,
                "the operating system refused the driver a resource",
                "raise the limit of processes (ulimit -u, TasksMax= in a systemd unit, --pids-limit of a container): the "
                "driver starts threads; until then everything runs on the CPU device");
inline constexpr auto too_few_processes_for_driver =
    error_entry("U012", Code::system_limit,
                "the operating system refused the driver a resource; this user may have {processes:number} processes and "
                "threads",
                "raise the limit of processes (ulimit -u, TasksMax= in a systemd unit, --pids-limit of a container): the "
                "driver starts threads; until then everything runs on the CPU device");
inline constexpr auto driver_start_in_forked_child =
    error_entry("U013", Code::forked,
                "the driver cannot start in this process, which was forked after CUDA was in use",
                "fork before anything uses CUDA, or start the child with exec; until then everything runs on the CPU "
                "device");
inline constexpr auto driver_is_a_stub =
    error_entry("U014", Code::driver_mismatch,
                "{library} is the toolkit's stub, made for linking only, not a driver",
                "take the stubs directory out of LD_LIBRARY_PATH, and install the driver; until then everything runs on "
                "the CPU device");
inline constexpr auto driver_and_module_differ =
    error_entry("U015", Code::driver_mismatch,
                "the kernel module and {library} are of different driver versions",
                "reboot, or reload the kernel module, after a driver update; in a container, use the host's libcuda and "
                "not one of the image; until then everything runs on the CPU device");
inline constexpr auto compatibility_driver_without_gpu =
    error_entry("U016", Code::driver_mismatch,
                "{library} is the forward-compatibility library, which does not support this GPU",
                "take /usr/local/cuda/compat (cuda-compat) out of the library path, and update the driver instead; until "
                "then everything runs on the CPU device");
inline constexpr auto driver_needs_newer_module =
    error_entry("U017", Code::driver_too_old,
                "{library} needs a newer kernel driver than the machine has",
                "update the driver of the machine (under WSL2: the Windows driver)"
                "; until then everything runs on the CPU device");
inline constexpr auto system_not_ready_for_driver =
    error_entry("U018", Code::system_error,
                "the system is not ready for CUDA",
                "on machines with NVSwitch, start nvidia-fabricmanager and wait for it; until then everything runs on the "
                "CPU device");
inline constexpr auto driver_found_no_valid_device =
    error_entry("U019", Code::no_device,
                "the driver found no valid device",
                "look at CUDA_VISIBLE_DEVICES and nvidia-smi -L; until then everything runs on the CPU device");
inline constexpr auto driver_does_not_know_why =
    error_entry("U020", Code::driver_error,
                "the driver could not start and does not know why",
                "load the nvidia_uvm module (nvidia-modprobe -u, after a suspend: reload it), give the process access to "
                "/dev/nvidia-uvm, and look at dmesg for NVRM and Xid; until then everything runs on the CPU device");
inline constexpr auto driver_not_started =
    error_entry("U021", Code::ok,
                "the driver could not start: {meaning} [{result}]",
                "{remedy}; until then everything runs on the CPU device");
inline constexpr auto driver_not_started_by_unknown_code =
    error_entry("U022", Code::ok,
                "the driver could not start [{result}]",
                "run nvidia-smi and look at dmesg for NVRM and Xid; until then everything runs on the CPU device");
// Meaning and remedy come from the tables in errors.cpp.
inline constexpr auto driver_answered =
    error_entry("U023", Code::ok,
                "{what}: {meaning} [{result}]",
                "{remedy}");
inline constexpr auto driver_answered_unknown_code =
    error_entry("U024", Code::ok,
                "{what} [{result}]",
                "look the number up in cuda.h, or, if a library of other code returned it, in that library's header (a "
                "cudaError_t: driver_types.h)");
inline constexpr auto refused_before_driver =
    error_entry("U025", Code::ok,
                "{what}: {meaning}",
                "{remedy}");
inline constexpr auto refused_before_driver_unexplained =
    error_entry("U026", Code::ok,
                "{what}",
                "");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
