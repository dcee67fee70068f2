// SPDX-License-Identifier: Apache-2.0
// Marks code that a kernel may call: it is compiled for the GPU by nvcc and for the CPU by the C++ compiler.
#pragma once

#include <cstdint>

// Whether an index is compared with its view's size: ISTHMUS_CHECK_BOUNDS 1 or 0, for the file that defines it. Not
// defined: in CPU twins and host code of debug builds (without NDEBUG), not in GPU code.
#if defined(ISTHMUS_CHECK_BOUNDS)
#define ISTHMUS_DETAIL_CHECKS_BOUNDS ISTHMUS_CHECK_BOUNDS
#elif defined(__CUDACC__) || defined(NDEBUG)
#define ISTHMUS_DETAIL_CHECKS_BOUNDS 0
#else
#define ISTHMUS_DETAIL_CHECKS_BOUNDS 1
#endif
#if defined(__CUDACC__)
#define ISTHMUS_KERNEL_FUNCTION __host__ __device__ __forceinline__
#else
// Tags make functions of the same name different ones. A kernel file (ISTHMUS_KERNEL_IMAGE) has CPU twins that may play
// a GPU, and its kernel functions ask for a simulator; functions of host files do not. Functions that check bounds
// differ from those that do not. One attribute names all tags: clang 14 takes only one of several.
#if defined(ISTHMUS_KERNEL_IMAGE)
#define ISTHMUS_DETAIL_PLAYS_GPU
#endif
#if defined(ISTHMUS_KERNEL_IMAGE) && ISTHMUS_DETAIL_CHECKS_BOUNDS
#define ISTHMUS_KERNEL_FUNCTION __attribute__((abi_tag("checked", "isthmus_kernel"))) inline
#elif defined(ISTHMUS_KERNEL_IMAGE)
#define ISTHMUS_KERNEL_FUNCTION __attribute__((abi_tag("isthmus_kernel"))) inline
#elif ISTHMUS_DETAIL_CHECKS_BOUNDS
#define ISTHMUS_KERNEL_FUNCTION __attribute__((abi_tag("checked"))) inline
#else
#define ISTHMUS_KERNEL_FUNCTION inline
#endif
#endif

#if ISTHMUS_DETAIL_CHECKS_BOUNDS && !defined(__CUDACC__)
#include <isthmus/detail/out_of_bounds.hpp>
#endif

namespace isthmus {
inline namespace v0 {

// Whether this is the GPU's code of a kernel, for `if constexpr`: where threads of a block and a loop of the CPU need
// different ways to the same result. It is false in the CPU twin, also where that plays a GPU in a simulation; a test
// of the GPU's way without a GPU compiles the twin with ISTHMUS_DETAIL_GPU_WAY.
#if defined(__CUDACC__) || defined(ISTHMUS_DETAIL_GPU_WAY)
inline constexpr bool on_gpu = true;
#else
inline constexpr bool on_gpu = false;
#endif

namespace detail {

// Ends the kernel if an index is outside its view: on the GPU by a trap, which is a sticky error; on the CPU by ending
// the process (SIGILL or SIGTRAP) after a line on standard error. A kernel cannot continue and cannot report.
[[noreturn]] ISTHMUS_KERNEL_FUNCTION void out_of_bounds([[maybe_unused]] const volatile void* data,
                                                        [[maybe_unused]] std::uint64_t size,
                                                        [[maybe_unused]] std::uint64_t index) {
#if defined(__CUDA_ARCH__)
    __trap();
    for (;;) {
    }
#else
#if ISTHMUS_DETAIL_CHECKS_BOUNDS && !defined(__CUDACC__)
    say_out_of_bounds(data, size, index);
#endif
    __builtin_trap();
#endif
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
