// SPDX-License-Identifier: Apache-2.0
// Marks code that a kernel may call: it is compiled for the GPU by nvcc and for the CPU by the C++ compiler.
#pragma once

#if defined(__CUDACC__)
#define ISTHMUS_KERNEL_FUNCTION __host__ __device__ __forceinline__
#elif defined(ISTHMUS_KERNEL_IMAGE)
// A kernel file: its CPU twins may play a GPU, and its kernel functions ask for a simulator. The tag makes them
// different functions from those of the same name in host files, which do not ask.
#define ISTHMUS_DETAIL_PLAYS_GPU
#define ISTHMUS_KERNEL_FUNCTION __attribute__((abi_tag("isthmus_kernel"))) inline
#else
#define ISTHMUS_KERNEL_FUNCTION inline
#endif

namespace isthmus {
inline namespace v0 {
namespace detail {

// Ends the kernel if an index is outside its view (ISTHMUS_CHECK_BOUNDS): on the GPU by a sticky error, on the CPU by
// ending the process. A kernel cannot continue and cannot report.
[[noreturn]] ISTHMUS_KERNEL_FUNCTION void out_of_bounds() {
#if defined(__CUDA_ARCH__)
    __trap();
    for (;;) {
    }
#else
    __builtin_trap();
#endif
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
