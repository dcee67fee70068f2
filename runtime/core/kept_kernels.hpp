// SPDX-License-Identifier: Apache-2.0
// KeptKernels: what the runtime remembers of kernels for longer than a call, because a shared library may be closed
// while the runtime lives.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Thread-safe; its mutex is the innermost.
class KeptKernels {
public:
    KeptKernels();
    KeptKernels(const KeptKernels&) = delete;
    KeptKernels& operator=(const KeptKernels&) = delete;
    ~KeptKernels();

    // A copy that lives as long as this object, with its texts and its parameters. The image and the functions stay
    // those of the library. One copy for each kernel and loading of its library.
    const KernelInfo& of(const KernelInfo& kernel);

private:
    struct Kept;
    std::mutex mutex_;
    std::map<std::pair<const KernelInfo*, std::uint64_t>, std::unique_ptr<Kept>> kept_;  // by address and first use
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
