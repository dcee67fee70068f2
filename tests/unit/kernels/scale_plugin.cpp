// SPDX-License-Identifier: Apache-2.0
// A shared library that is opened and closed while a runtime lives. Built twice from this source, with another FACTOR:
// the kernels have one name, and without a GPU compiler the images have one content.
#include <isthmus/kernel.hpp>
#include <isthmus/stream.hpp>

#include <cstdint>

#if FACTOR == 3 && !defined(__CUDACC__)
// The kernels' code does not begin at the same place in both, though the kernel objects do.
extern "C" int before_the_kernel(int value);
extern "C" int before_the_kernel(int value) {
    return value % 3 == 0 ? value / FACTOR : value * FACTOR;
}
#endif

ISTHMUS_KERNEL(scale, isthmus::Index i, isthmus::View<std::int32_t> data, std::int32_t more) {
    data[i] = data[i] * FACTOR + more;
}

#if !defined(__CUDACC__)
extern "C" int launch_scale(isthmus::Stream& stream, isthmus::Buffer<std::int32_t>& data);
extern "C" int launch_scale(isthmus::Stream& stream, isthmus::Buffer<std::int32_t>& data) {
    return stream.launch(scale, data.size(), data, FACTOR).ok() ? 0 : 1;
}
extern "C" const void* address_of_scale();
extern "C" const void* address_of_scale() {
    return &scale;
}
#endif
