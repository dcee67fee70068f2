// SPDX-License-Identifier: Apache-2.0
// Registers the kernels when the library is opened. In a file of its own: nvcc compiles kernels.cpp for the GPU, where
// there are no objects.
#include "kernels.hpp"

#include <isthmus/c_kernels.hpp>

namespace {
const bool registered = isthmus::register_kernel("test.brighten", brighten).ok() &&
                        isthmus::register_kernel(scale).ok() && isthmus::register_kernel(churn).ok() &&
                        isthmus::register_kernel(wait_for_gate).ok();
}

// Whether all of them were.
extern "C" __attribute__((visibility("default"))) int isthmus_test_kernels_registered() {
    return registered ? 1 : 0;
}
