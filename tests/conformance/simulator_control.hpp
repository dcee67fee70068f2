// SPDX-License-Identifier: Apache-2.0
// The controls of the simulator (driver_abi/sim_control.h), for tests that plan faults or count what is alive.
#pragma once

#include <driver_abi/sim_control.h>

#include <dlfcn.h>

namespace conformance {

// `Function` is one of the pointer types of sim_control.h, `name` the function that has it. nullptr: the driver in this
// process is a real one, or none is open yet. The simulator, once opened, answers to the driver's own name.
template <class Function>
Function control(const char* name) {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace conformance
