// SPDX-License-Identifier: Apache-2.0
// Copies the descriptions of kernels.
#include "kept_kernels.hpp"

#include "first_use.hpp"

#include <string>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct KeptKernels::Kept {
    explicit Kept(const KernelInfo& kernel)
        : name(text(kernel.name)),
          symbol(text(kernel.symbol)),
          parameters(text(kernel.parameters)),
          parameter(kernel.parameter, kernel.parameter + kernel.parameter_count),
          info(kernel) {
        info.name = name.c_str();
        info.symbol = symbol.c_str();
        info.parameters = parameters.c_str();
        info.parameter = parameter.data();
    }

    static const char* text(const char* given) noexcept { return given != nullptr ? given : ""; }

    const std::string name, symbol, parameters;
    const std::vector<ParameterInfo> parameter;
    KernelInfo info;
};

KeptKernels::KeptKernels() = default;
KeptKernels::~KeptKernels() = default;

const KernelInfo& KeptKernels::of(const KernelInfo& kernel) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Kept>& kept = kept_[{&kernel, first_use_of(kernel.first_use)}];
    if (!kept) kept = std::make_unique<Kept>(kernel);
    return kept->info;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
