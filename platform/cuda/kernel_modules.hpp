// SPDX-License-Identifier: Apache-2.0
// The kernel images of one device, each loaded once, on the first use of one of its kernels.
#pragma once

#include "context.hpp"

#include <isthmus/kernel_info.hpp>

#include <mutex>
#include <string>
#include <unordered_map>

namespace isthmus::platform::cuda {

// Thread-safe. Holds its lock while the driver loads an image, so that no image is loaded twice.
// A kernel is known by its address and its first use: another library's kernel may lie there later (ADR 94). An image
// is known by its content, so that a library which is closed and opened again loads nothing. Images are unloaded with
// the device, because graphs may hold their functions.
class KernelModules {
public:
    explicit KernelModules(DeviceContext& context) noexcept : context_(context) {}
    ~KernelModules();  // unloads, unless in a forked child
    KernelModules(const KernelModules&) = delete;
    KernelModules& operator=(const KernelModules&) = delete;

    Status resolve(const KernelInfo& kernel, FunctionHandle& out);
    bool knows(const KernelInfo& kernel);
    // The context-independent handle of a kernel that resolve() has found; a graph node can be given it on any thread.
    // Loaded separately, on the first use of a kernel of its image.
    Status free_of_context(const KernelInfo& kernel, CUkernel& out);
    bool knows_free_of_context(const KernelInfo& kernel);

private:
    template <class Handle>
    struct Found {
        std::uint64_t first_use = 0;
        Handle handle{};
    };
    template <class Handle>
    using FoundKernels = std::unordered_map<const KernelInfo*, Found<Handle>>;

    std::string key_of(const KernelImage& image) const;
    Status load(const KernelImage& image, CUmodule& module);
    Status load(const KernelImage& image, CUlibrary& library);

    DeviceContext& context_;
    std::mutex mutex_;
    FoundKernels<FunctionHandle> functions_;
    FoundKernels<CUkernel> kernels_;
    std::unordered_map<std::string, CUmodule> modules_;  // by key_of()
    std::unordered_map<std::string, CUlibrary> libraries_;
};

// Registers a kernel's CPU function with the simulator. 0, or 1: another kernel of that image and name is registered.
int register_twin(const Library& library, const KernelInfo& kernel);

}  // namespace isthmus::platform::cuda
