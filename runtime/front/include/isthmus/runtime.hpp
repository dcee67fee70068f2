// Runtime: every device of this machine, opened once. A process may hold several.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/device.hpp>
#include <isthmus/export.hpp>
#include <isthmus/export_finding.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/litmus.hpp>
#include <isthmus/log.hpp>
#include <isthmus/order_check.hpp>
#include <isthmus/result.hpp>
#include <isthmus/uuid.hpp>
#include <isthmus/wait.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::inline v0 {

namespace detail {
struct RuntimeState;
}

struct RuntimeOptions {
    bool use_cuda = true;
    // Another file than "libcuda.so.1". Empty: ISTHMUS_CUDA_LIBRARY where it is set (ignored in set-user-ID
    // programs), else the bare name. One libcuda per process: the first one opened stays.
    std::string cuda_library;
    LaunchMode launch_mode = LaunchMode::relaxed;
    OrderCheck order_check = OrderCheck::off;  // while debugging: memory used before it is ordered (S7)
    std::chrono::nanoseconds wait_timeout = std::chrono::seconds(60);  // for waits that name none
    WaitPolicy wait_policy = WaitPolicy::adaptive;                     // of every wait for device work
    // What allocations leave of the host's memory, on machines where CPU and GPU share one DRAM: the larger of both
    // (K20). Bytes not given: 64 MiB, or an eighth of the memory (of the cgroup's limit) where that is less.
    std::optional<std::uint64_t> host_reserve_bytes;
    std::uint32_t host_reserve_permille = 20;
    // Managed memory beyond what the device has free: pages then move back and forth. Refused unless asked for.
    bool oversubscribe_managed = false;
    // What `isthmus litmus` found on this machine: takes from the devices' capabilities what did not hold, and never
    // adds (G13). A finding of another device or driver counts for nothing, and a line of the log says so.
    std::vector<LitmusFinding> litmus_findings;
    // What probe_export() showed in this process's surroundings: turns yes into probed or into no, and never adds. A
    // finding of another device or driver counts for nothing, and a line of the log says so.
    std::vector<ExportFinding> export_findings;
    LogCallback log;  // empty: silent
};

// Counted since the runtime was opened.
struct RuntimeStatistics {
    std::uint64_t unverified_arguments = 0;  // of launches: nobody could judge them, and they passed
    std::uint64_t warnings = 0;              // … of them were logged: once per kernel, argument, source and device
    std::uint64_t staged_launches = 0;       // that copied arguments around their kernel (LaunchMode::staged)
    std::uint64_t prefetches = 0;            // of managed memory, before launches
    std::uint64_t failed_hints = 0;          // that the driver refused; they are no errors
    std::uint64_t order_violations = 0;      // arguments used on a stream before they were ordered there (OrderCheck)
};

// Movable; thread-safe. Buffers, streams and events keep what they need alive and may outlive it.
class ISTHMUS_API Runtime {
public:
    // Opens CUDA where there is one; the CPU device is always there, so a machine without a driver is no error:
    // cuda_absence() says why. Creates no CUDA context; a device's first use does (about 120 ms on an H200). After a
    // fault in this process it makes one for each device, to ask which of them still answer: the others are not
    // healthy() from the beginning.
    static Result<Runtime> open(const RuntimeOptions& options = {});
    Runtime(Runtime&&) noexcept;
    Runtime& operator=(Runtime&&) noexcept;
    ~Runtime();

    Device& default_device() noexcept;  // the first healthy GPU, else the CPU
    Device& cpu() noexcept;
    // What this thread chose with its innermost ScopedDevice or ScopedStream of this runtime, else default_device().
    Device& current_device() noexcept;
    std::size_t device_count() const noexcept;           // the CPU is the last
    Result<Device*> device(std::size_t index) noexcept;  // invalid_argument outside; owned by the runtime
    // The GPU, or MIG instance, of this name (Uuid::parse reads what nvidia-smi -L prints). invalid_argument: not among
    // this process's devices, as CUDA_VISIBLE_DEVICES and the container leave them.
    Result<Device*> device(const Uuid& uuid);

    // Waits for every device, as Device::synchronize; also for the others where one has failed, whose error it then is.
    Result<void> synchronize(Wait wait = {});

    const MachineFacts& machine() const noexcept;
    // Why there is no CUDA device, or why some are missing; nothing where all is well.
    const std::optional<Error>& cuda_absence() const noexcept;
    RuntimeStatistics statistics() const noexcept;

private:
    explicit Runtime(std::shared_ptr<detail::RuntimeState> state);
    std::shared_ptr<detail::RuntimeState> state_;
};

}  // namespace isthmus::inline v0
