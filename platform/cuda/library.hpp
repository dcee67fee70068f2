// What the devices share: the opened library, its functions, and the process they belong to.
#pragma once

#include "api.hpp"
#include "errors.hpp"

#include <platform/sim_registration.h>

#include <sys/types.h>

#include <string>

namespace isthmus::platform::cuda {

// Read-only after open_devices(); free to use from any thread. The library is never unloaded.
struct Library {
    os::SharedLibrary file;
    Api api;
    pid_t process = 0;                                       // that called cuInit: a forked child is another one
    isthmus_sim_register_kernel_fn register_twin = nullptr;  // null: a real driver
    isthmus_sim_fact_fn simulated_fact = nullptr;

    bool forked() const noexcept;  // a system call: for destructors and failures, not for hot paths

    // The Status of a call that was made. Only failures look closer.
    Status status(CUresult code, const char* call) const noexcept {
        if (code == result::success) return {Code::ok, 0, call};
        return failure(code, call);
    }
    Status failure(CUresult code, const char* call) const noexcept;
};

}  // namespace isthmus::platform::cuda
