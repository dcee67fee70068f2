// SPDX-License-Identifier: Apache-2.0
// The controls of the simulator (driver_abi/sim_control.h), for tests that plan faults or count live objects.
#pragma once

#include <driver_abi/sim_control.h>

#include <dlfcn.h>

namespace conformance {

// `Function` is a pointer type of sim_control.h, `name` its function. nullptr: the process has a real driver, or none
// yet. The simulator, once opened, is found by the driver's own library name.
template <class Function>
Function control(const char* name) {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace conformance
