// What the devices share: the opened library, its functions, their contexts, and the process they belong to.
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

// Read-only after open_devices(), but for the count; free to use from any thread. The library is never unloaded.
struct Library {
    Library() noexcept;
    ~Library();  // gives the contexts back
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    os::SharedLibrary file;
    Api api;
    pid_t process = 0;                                       // that called cuInit: a forked child is another one
    isthmus_sim_register_kernel_fn register_twin = nullptr;  // null: a real driver
    isthmus_sim_fact_fn simulated_fact = nullptr;
    // Captures that were begun through us, by whichever runtime, and are not ended yet: each of them is endangered by
    // the calls of all. Relaxed: a capture that is open is endangered by its own thread only (THREAD_LOCAL), and a
    // thread sees its own count.
    static inline std::atomic<int> open_captures{0};
    // Those, and streams of other code's, on which it may capture at any moment: CaptureCare then takes care.
    static inline std::atomic<int> maybe_captured{0};
    static void count_captures(int more) noexcept {
        open_captures.fetch_add(more, std::memory_order_relaxed);
        maybe_captured.fetch_add(more, std::memory_order_relaxed);
    }
    // Some device of this process reported a fault from which the driver does not recover. Relaxed: a hint for
    // open_devices(), which asks the driver itself.
    static inline std::atomic<bool> fault_seen{false};
    // Held while a capture begins, and while a call is made that ends every capture of a context, from any thread.
    static inline std::mutex beginning;
    std::vector<std::unique_ptr<DeviceContext>> contexts;  // by ordinal; null: the device could not be opened

    DeviceContext* context(int ordinal) const noexcept;  // null: no such device
    bool forked() const noexcept;  // a system call: for destructors and failures, not for hot paths

    // The Status of a call that was made. Only failures look closer.
    Status status(CUresult code, const char* call) const noexcept {
        if (code == result::success) return {Code::ok, 0, call};
        return failure(code, call);
    }
    Status failure(CUresult code, const char* call) const noexcept;
};

}  // namespace isthmus::platform::cuda
