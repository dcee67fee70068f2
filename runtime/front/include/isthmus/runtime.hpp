// SPDX-License-Identifier: Apache-2.0
// Runtime: all devices of this machine, opened once. A process may hold several runtimes.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/counters.hpp>
#include <isthmus/device.hpp>
#include <isthmus/export.hpp>
#include <isthmus/export_finding.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/litmus.hpp>
#include <isthmus/log.hpp>
#include <isthmus/observer.hpp>
#include <isthmus/order_check.hpp>
#include <isthmus/result.hpp>
#include <isthmus/seal.hpp>
#include <isthmus/uuid.hpp>
#include <isthmus/wait.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace isthmus {
inline namespace v0 {

namespace detail {
struct RuntimeState;
}

struct RuntimeOptions {
    bool use_cuda = true;
    // A file other than "libcuda.so.1". Empty: ISTHMUS_CUDA_LIBRARY where it is set (ignored in set-user-ID programs),
    // otherwise the bare name. One libcuda per process: the first one opened stays.
    std::string cuda_library{};
    // Of launches that name no mode, on streams that were given none. None here: what the environment variable
    // ISTHMUS_LAUNCH_MODE names (relaxed, checked, strict, staged or verify; read once, by open(); ignored in
    // set-user-ID programs), otherwise relaxed.
    std::optional<LaunchMode> launch_mode{};
    OrderCheck order_check = OrderCheck::off;  // debugging: finds memory used before it is ordered (S7)
    std::chrono::nanoseconds wait_timeout = std::chrono::seconds(60);  // for waits without a timeout
    WaitPolicy wait_policy = WaitPolicy::adaptive;                     // for every wait for device work
    // Host memory that allocations leave free, on machines where CPU and GPU share one DRAM: the larger of the two
    // values (K20). Bytes not set: 64 MiB, or an eighth of the memory (of the cgroup's limit) where that is less.
    std::optional<std::uint64_t> host_reserve_bytes{};
    std::uint32_t host_reserve_permille = 20;
    // Allow managed memory beyond the device's free memory: pages then move back and forth. Refused by default.
    bool oversubscribe_managed = false;
    // Released memory that each device keeps for its next allocations, at most; 0: none, so that every allocation and
    // release is the driver's or the system's own, as compute-sanitizer needs it. None here: the environment variable
    // ISTHMUS_CACHE_BYTES (a decimal number; read once, by open(); ignored in set-user-ID programs), otherwise 256 MiB
    // or a sixteenth of the host's memory, whichever is less. Memory that was kept has its old content.
    std::optional<std::uint64_t> cache_bytes{};
    // Findings of `isthmus litmus` on this machine: remove from the devices' capabilities what did not hold, and never
    // add (G13). A finding of another device or driver is ignored, and the log says so.
    std::vector<LitmusFinding> litmus_findings{};
    // Findings of probe_export() in this process's environment: turn yes into probed or no, and never add. A finding of
    // another device or driver is ignored, and the log says so.
    std::vector<ExportFinding> export_findings{};
    // The file of `isthmus tune` by which shared buffers get their memory; "none": no file. Empty: ISTHMUS_PROFILE
    // where it is set (a file or "none"); otherwise isthmus/profile.json in XDG_CONFIG_HOME (without it, in ~/.config),
    // else in /etc. The environment is ignored in set-user-ID programs. A profile of another device, driver, kernel or
    // memory model is ignored, and the log says so; without a profile the capability table decides.
    std::string profile{};
    // Threads that run a kernel of the CPU device: the launching one, and workers that take blocks (or rows, or items)
    // from it. 0 and 1: the launching thread alone, and the library starts none. At most 1024. The results are the same
    // bits for any number. Workers start with the first launch that is large enough, take no signals, and end with the
    // runtime's last device; kernels that two threads launch at the same time do not share them.
    std::uint32_t cpu_threads = 0;
    LogCallback log{};  // empty: silent
    // Functions that are told what the runtime does (observer.hpp); copied by open(). nullptr: none, at no cost. With
    // them no launch and no view takes its shortest way.
    const ObserverCallbacks* observer = nullptr;
};

// Counts since the runtime was opened.
struct RuntimeStatistics {
    std::uint64_t unverified_arguments = 0;  // launch arguments that passed although they could not be judged
    std::uint64_t warnings = 0;              // those that were logged: once per kernel, argument, source and device
    std::uint64_t staged_launches = 0;       // launches that copied arguments around their kernel (LaunchMode::staged)
    std::uint64_t prefetches = 0;            // of managed memory, before launches
    std::uint64_t failed_hints = 0;          // refused by the driver; these are not errors
    std::uint64_t order_violations = 0;      // arguments used on a stream before they were ordered there (OrderCheck)
};

// Movable; thread-safe. After a move, calls that return a Result answer invalid_handle; those that return a reference
// end the program with a message; device_count() and statistics() are zero. Buffers, streams and events keep alive what
// they need and may outlive the runtime.
class ISTHMUS_API Runtime {
public:
    // Opens CUDA where present. The CPU device always exists, so a machine without a driver is no error: cuda_absence()
    // says why. Creates no CUDA context; the first use of a device does (about 120 ms on an H200). After a fault in
    // this process it creates a context for each device, to find which devices still answer: the others are not
    // healthy() from the start.
    // Errors: invalid_argument (ISTHMUS_LAUNCH_MODE names no launch mode; ISTHMUS_CACHE_BYTES is no number; cpu_threads
    // exceeds 1024; the size of `observer` is less than this version's; the profile that was asked for cannot be read;
    // a profile is damaged), unsupported (the profile has another version's schema).
    static Result<Runtime> open(const RuntimeOptions& options = {});
    Runtime(Runtime&&) noexcept;
    Runtime& operator=(Runtime&&) noexcept;
    ~Runtime();

    Device& default_device() noexcept;  // the first healthy GPU, otherwise the CPU
    Device& cpu() noexcept;
    // The choice of this thread's innermost ScopedDevice or ScopedStream of this runtime, otherwise default_device().
    Device& current_device() noexcept;
    std::size_t device_count() const noexcept;           // the CPU is the last
    Result<Device*> device(std::size_t index) noexcept;  // invalid_argument out of range; owned by the runtime
    // The GPU or MIG instance with this UUID (Uuid::parse reads what nvidia-smi -L prints). invalid_argument: not among
    // this process's devices, as limited by CUDA_VISIBLE_DEVICES and the container.
    Result<Device*> device(const Uuid& uuid);

    // Waits for every device, as Device::synchronize. After a failure it still waits for the other devices, and then
    // answers the error of the device that failed.
    Result<void> synchronize(Wait wait = {});

    const MachineFacts& machine() const noexcept;
    // Why there is no CUDA device, or why some are missing; nullopt: none is missing.
    const std::optional<Error>& cuda_absence() const noexcept;
    RuntimeStatistics statistics() const noexcept;
    // statistics() and more, by name, with units in the names: for monitoring, not for hot paths. They are counted with
    // and without an observer; what only an observer is told is not among them (docs/observing.md). Empty after a move
    // and in the child of a fork.
    std::vector<Counter> counters() const;
    std::string counters_text() const;  // prometheus_text() of them

    // From here to the end of the Seal, what would allocate, map, load code or make an object of the driver is refused
    // (seal.hpp): for this thread, or for all calls of this runtime. Not for hot paths: heap. Errors: in_use (this
    // thread, or this runtime, is sealed already), unsupported (a build without the component real_time).
    Result<Seal> seal(const SealOptions& options = {});

private:
    explicit Runtime(std::shared_ptr<detail::RuntimeState> state);
    std::shared_ptr<detail::RuntimeState> state_;
};

}  // namespace v0
}  // namespace isthmus
