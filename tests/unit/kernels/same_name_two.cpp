// SPDX-License-Identifier: Apache-2.0
// A shared library whose kernel has the same name as another library's, in no namespace.
#include <isthmus/kernel.hpp>
#include <isthmus/stream.hpp>

#include <cstdint>

ISTHMUS_KERNEL(same_name, isthmus::Index i, isthmus::View<std::int32_t> data) {
    data[i] += 20;
}

#if !defined(__CUDACC__)
extern "C" int launch_of_library_two(isthmus::Stream& stream, isthmus::Buffer<std::int32_t>& data);
extern "C" int launch_of_library_two(isthmus::Stream& stream, isthmus::Buffer<std::int32_t>& data) {
    return stream.launch(same_name, data.size(), data).ok() ? 0 : 1;
}
#endif
