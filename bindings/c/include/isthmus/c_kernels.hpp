// SPDX-License-Identifier: Apache-2.0
// Registers kernels so that C, Python and others launch them by name (isthmus_stream_launch). Link isthmus and
// isthmus-c.
#pragma once

#include <isthmus.h>
#include <isthmus/kernel.hpp>
#include <isthmus/result.hpp>
#include <isthmus/version.hpp>

#include <cstdint>
#include <string>

namespace isthmus {
inline namespace v0 {
namespace detail {
// Of the headers that a kernel was compiled with: MINOR versions before 1.0 may change KernelInfo.
inline constexpr std::uint32_t kernel_abi = ISTHMUS_VERSION_MINOR + 1000u * ISTHMUS_VERSION_MAJOR;
}  // namespace detail

// Registers a kernel of ISTHMUS_KERNEL under a name, or under its own. The kernel, and the shared library that defines
// it, stay until the process ends. Thread-safe; registering the same kernel again under the same name does nothing.
// Errors: invalid_argument (an empty name; the C library is of another version), in_use (another kernel has the name),
// out_of_memory.
template <class Signature>
Result<void> register_kernel(const char* name, const Kernel<Signature>& kernel) {
    isthmus_error* error = nullptr;
    const isthmus_code code =
        isthmus_kernel_register(name, &kernel.info(), sizeof(KernelInfo), detail::kernel_abi, &error);
    if (code == ISTHMUS_OK) return {};
    Error failed(static_cast<Code>(code), isthmus_error_message(error), isthmus_error_remedy(error));
    isthmus_error_free(error);
    return failed;
}
template <class Signature>
Result<void> register_kernel(const Kernel<Signature>& kernel) {
    return register_kernel(kernel.info().name, kernel);
}

}  // namespace v0
}  // namespace isthmus
