// SPDX-License-Identifier: Apache-2.0
// The facet of ready-made modules: loading an image, its entries, their parameters and limits, and its variables.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <platform/status.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace isthmus::platform {

enum class ModuleHandle : std::uintptr_t { none = 0 };

// What a launch of one function may ask for. 0: not known, and not checked.
struct FunctionLimits {
    std::uint32_t threads = 0;         // per block, of this function
    std::uint32_t static_shared = 0;   // bytes that the function has itself
    std::uint32_t dynamic_shared = 0;  // bytes that a launch may add as it stands
    std::uint32_t most_shared = 0;     // static and dynamic, after allow_shared()
    std::uint32_t block[3] = {};
    std::uint32_t grid[3] = {};
    bool clusters = false;  // launches may name a cluster
};

// The function that runs in an entry's place where no GPU does. `parameters`: one pointer for each of the entry.
struct StandInEntry {
    void (*run)(void* self, const Extent& grid, const Extent& block, std::uint32_t shared_bytes,
                void* const* parameters) = nullptr;
    void* self = nullptr;
    // Memory among the parameters, by its offset in the parameter block: 8 bytes hold an address, 16 also a count.
    std::vector<ParameterInfo> views;
};

class Modules {
public:
    virtual ~Modules() = default;
    // `image` is whole, PTX ends with a NUL. `log`: what the driver's compiler said. May wait for the device's work.
    virtual Status load(const void* image, std::string& log, ModuleHandle& out) = 0;
    // The caller has waited for its functions. On an error it may still exist.
    virtual Status unload(ModuleHandle module) = 0;
    // Code::invalid_argument: the module has none of this name.
    virtual Status find(ModuleHandle module, const char* name, FunctionHandle& out) = 0;
    virtual Status global(ModuleHandle module, const char* name, std::uint64_t& address, std::size_t& bytes) = 0;
    // Parameter number `index` in the function's parameter block. Code::invalid_argument: there are fewer.
    // Code::unsupported: the driver does not tell (before CUDA 12.4).
    virtual Status parameter(FunctionHandle function, std::size_t index, std::size_t& offset, std::size_t& bytes) = 0;
    virtual Status limits(FunctionHandle function, FunctionLimits& out) = 0;
    // Lets launches ask for this much dynamic shared memory.
    virtual Status allow_shared(FunctionHandle function, std::uint32_t dynamic_bytes) = 0;
    // Compiles PTX into machine code for this device, as load() would. Code::unsupported: the driver does not offer it.
    virtual Status compile(const char* ptx, std::size_t bytes, std::string& log, std::vector<std::byte>& out) = 0;
    // Whether no GPU runs the functions: they need stand-ins.
    virtual bool simulated() const noexcept { return false; }
    // Before its first launch; `entry.self` is called until the module is unloaded.
    virtual Status stand_in(FunctionHandle, const StandInEntry&) { return {Code::unsupported, 0, "stand_in"}; }
};

}  // namespace isthmus::platform
