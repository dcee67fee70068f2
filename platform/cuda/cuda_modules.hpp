// SPDX-License-Identifier: Apache-2.0
// Ready-made modules on one CUDA device.
#pragma once

#include "context.hpp"

namespace isthmus::platform::cuda {

class CudaModules final : public Modules {
public:
    explicit CudaModules(DeviceContext& context) noexcept : context_(context) {}
    // Does this driver have the functions of the facet, without those whose absence it reports?
    static bool complete(const Api& api) noexcept;

    Status load(const void* image, std::string& log, ModuleHandle& out) override;
    Status unload(ModuleHandle module) override;
    Status find(ModuleHandle module, const char* name, FunctionHandle& out) override;
    Status global(ModuleHandle module, const char* name, std::uint64_t& address, std::size_t& bytes) override;
    Status parameter(FunctionHandle function, std::size_t index, std::size_t& offset, std::size_t& bytes) override;
    Status limits(FunctionHandle function, FunctionLimits& out) override;
    Status allow_shared(FunctionHandle function, std::uint32_t dynamic_bytes) override;
    Status compile(const char* ptx, std::size_t bytes, std::string& log, std::vector<std::byte>& out) override;
    bool simulated() const noexcept override { return context_.library().set_stand_in != nullptr; }
    Status stand_in(FunctionHandle function, const StandInEntry& entry) override;

private:
    DeviceContext& context_;
};

// One driver call: cuLaunchKernel, or cuLaunchKernelEx with a cluster.
Status launch_of_module(DeviceContext& context, const LaunchRequest& request);

}  // namespace isthmus::platform::cuda
