// SPDX-License-Identifier: Apache-2.0
// Kernels from PTX through the driver's functions: a module's kernel, and what it reads and writes.
#pragma once

#include "sim_test.hpp"

#include <cstddef>
#include <vector>

namespace isthmus::sim::test {

inline Function* entry(Module* module, const char* name) {
    Function* function = nullptr;
    REQUIRE_CODE(cuModuleGetFunction(&function, module, name), 0);
    return function;
}

template <class T>
Address on_device(const std::vector<T>& values) {
    const Address place = device_memory(values.size() * sizeof(T));
    REQUIRE_CODE(cuMemcpyHtoD_v2(place, values.data(), values.size() * sizeof(T)), 0);
    return place;
}
template <class T>
std::vector<T> back(Address place, std::size_t count) {
    std::vector<T> out(count);
    REQUIRE_CODE(cuMemcpyDtoH_v2(out.data(), place, count * sizeof(T)), 0);
    return out;
}

}  // namespace isthmus::sim::test
