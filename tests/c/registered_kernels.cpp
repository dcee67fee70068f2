// SPDX-License-Identifier: Apache-2.0
// Registers the kernels. In a file of its own: nvcc compiles kernels.cpp for the GPU, where there are no objects.
#include "kernels.hpp"

#include <isthmus/c_kernels.hpp>

using namespace isthmus;

namespace {

template <class K>
int registered(const char* name, const K& kernel) {
    return static_cast<int>(register_kernel(name, kernel).code());
}

}  // namespace

int register_kernels() {
    const auto own_name = static_cast<int>(register_kernel(scale).code());
    return own_name != 0 ? own_name : registered("cells.add_position", add_position);
}
int register_second_scale() {
    return registered("scale", add_position);
}
int register_foreign_kernel() {
    return isthmus_kernel_register("foreign", &scale.info(), sizeof(KernelInfo) + 8, ISTHMUS_VERSION_MINOR, nullptr);
}
int register_nameless_kernel() {
    return registered("", scale);
}
