// SPDX-License-Identifier: Apache-2.0
// State shared by the devices: the opened library, its functions, the devices' contexts, and the owning process.
#pragma once

#include "api.hpp"
#include "errors.hpp"

#include <driver_abi/sim_registration.h>

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace isthmus::platform::cuda {

class DeviceContext;

// Read-only after open_devices(), except the counts; usable from any thread. The library is never unloaded.
struct Library {
    Library() noexcept;
    ~Library();  // releases the contexts
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    os::SharedLibrary file;
    Api api;
    pid_t process = 0;                                       // process that called cuInit; differs in a forked child
    isthmus_sim_register_kernel_fn register_twin = nullptr;  // null: a real driver
    isthmus_sim_set_stand_in_fn set_stand_in = nullptr;      // likewise
    isthmus_sim_fact_fn simulated_fact = nullptr;
    isthmus_sim_lend_fn lend_simulated = nullptr;
    isthmus_sim_lend_part_fn lend_part_simulated = nullptr;
    // Captures begun through any runtime of this library and not ended yet: calls of all runtimes endanger them.
    // Relaxed: only its own thread endangers an open capture (THREAD_LOCAL), and a thread sees its own count.
    static inline std::atomic<int> open_captures{0};
    // open_captures plus wrapped streams of other code, which may begin a capture at any time: if not 0, CaptureCare
    // acts.
    static inline std::atomic<int> maybe_captured{0};
    static void count_captures(int more) noexcept {
        open_captures.fetch_add(more, std::memory_order_relaxed);
        maybe_captured.fetch_add(more, std::memory_order_relaxed);
    }
    // A device of this process reported a fault from which the driver does not recover. Relaxed: a hint for
    // open_devices(), which queries the driver itself.
    static inline std::atomic<bool> fault_seen{false};
    // Held while a capture begins, and during a call that ends every capture of a context from any thread.
    static inline std::mutex beginning;
    std::vector<std::unique_ptr<DeviceContext>> contexts;  // by ordinal; null: the device could not be opened

    DeviceContext* context(int ordinal) const noexcept;  // null: no such device
    bool forked() const noexcept;  // a system call: for destructors and failures, not for hot paths

    // The Status of a completed call. Only failures are examined further.
    Status status(CUresult code, const char* call) const noexcept {
        if (code == result::success) return {Code::ok, 0, call};
        return failure(code, call);
    }
    Status failure(CUresult code, const char* call) const noexcept;
};

}  // namespace isthmus::platform::cuda
