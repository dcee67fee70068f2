// SPDX-License-Identifier: Apache-2.0
// KernelDescriptions: descriptions of kernels that no program defines, for as long as the runtime lives.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Streams, the order checker and warnings keep a kernel by its address, also after the kernel's module is unloaded. So
// the description is never freed, the same one is made once, and what belongs to one module is not in it. Thread-safe.
class KernelDescriptions {
public:
    using Twin = void (*)(const Extent& extent, std::uint64_t first, std::uint64_t last, const void* pack);
    // A kernel of rank module_rank. Its parameters have numbers for names.
    const KernelInfo& of(const std::string& name, const ParameterInfo* parameters, std::uint32_t count,
                         std::uint32_t pack_bytes, Twin twin);

private:
    struct Kept {
        std::string name;
        std::string text;
        std::vector<ParameterInfo> parameters;
        KernelInfo info{};
    };
    std::mutex mutex_;
    std::map<std::string, Kept> kept_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
