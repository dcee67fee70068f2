// The kernel images of one device: each loaded once, on the first use of one of its kernels.
#pragma once

#include "context.hpp"

#include <isthmus/kernel_info.hpp>

#include <mutex>
#include <unordered_map>

namespace isthmus::platform::cuda {

// Thread-safe. Holds its lock while the driver loads an image, so that an image is never loaded twice.
class KernelModules {
public:
    explicit KernelModules(DeviceContext& context) noexcept : context_(context) {}
    ~KernelModules();  // unloads, unless in a forked child
    KernelModules(const KernelModules&) = delete;
    KernelModules& operator=(const KernelModules&) = delete;

    Status resolve(const KernelInfo& kernel, FunctionHandle& out);
    bool knows(const KernelInfo& kernel);
    // The same code without a context, of a kernel that resolve() has found: what a node of a graph can be given on
    // any thread. Loaded apart, on the first use of a kernel of its image.
    Status free_of_context(const KernelInfo& kernel, CUkernel& out);
    bool knows_free_of_context(const KernelInfo& kernel);

private:
    Status load(const KernelImage& image, CUmodule& module);
    Status load(const KernelImage& image, CUlibrary& library);

    DeviceContext& context_;
    std::mutex mutex_;
    std::unordered_map<const KernelInfo*, FunctionHandle> functions_;
    std::unordered_map<const unsigned char*, CUmodule> modules_;  // by the image's data
    std::unordered_map<const KernelInfo*, CUkernel> kernels_;
    std::unordered_map<const unsigned char*, CUlibrary> libraries_;
};

// Tells the simulator which CPU function stands for a kernel. 0, or 1: it knows another kernel of that image and name.
int register_twin(const Library& library, const KernelInfo& kernel);

}  // namespace isthmus::platform::cuda
