// SPDX-License-Identifier: Apache-2.0
// Keeps descriptions of kernels, each once.
#include "kernel_descriptions.hpp"

#include <isthmus/module_launch.hpp>

#include <string_view>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// As the author of an ISTHMUS_KERNEL would write the list: parameter_name() finds "0", "1", ... in it.
std::string_view use_text(ArgumentUse use) {
    switch (use) {
        case ArgumentUse::read: return ", in ";
        case ArgumentUse::write: return ", out ";
        case ArgumentUse::read_write: return ", inout ";
        case ArgumentUse::concurrent: return ", atomic ";
        case ArgumentUse::value: break;
    }
    return ", value ";
}

}  // namespace

const KernelInfo& KernelDescriptions::of(const std::string& name, const ParameterInfo* parameters, std::uint32_t count,
                                         std::uint32_t pack_bytes, Twin twin) {
    std::string key = name + '\n' + std::to_string(pack_bytes);
    for (std::uint32_t at = 0; at < count; ++at) {
        const ParameterInfo& one = parameters[at];
        for (const std::uint32_t number :
             {one.offset_bytes, one.size_bytes, one.element_bytes, static_cast<std::uint32_t>(one.use),
              static_cast<std::uint32_t>(one.atomics), std::uint32_t{one.is_signed}, std::uint32_t{one.own_device}}) {
            key += ' ' + std::to_string(number);
        }
    }
    const std::lock_guard lock(mutex_);
    Kept& kept = kept_[key];
    if (kept.info.name != nullptr) return kept.info;
    kept.name = name;
    kept.parameters.assign(parameters, parameters + count);
    kept.text = "grid";
    for (std::uint32_t at = 0; at < count; ++at) {
        kept.text += use_text(parameters[at].use);
        kept.text += std::to_string(at);
    }
    kept.info.name = kept.name.c_str();
    kept.info.symbol = kept.name.c_str();
    kept.info.parameters = kept.text.c_str();
    kept.info.parameter = kept.parameters.data();
    kept.info.parameter_count = count;
    kept.info.pack_bytes = pack_bytes;
    kept.info.rank = module_rank;
    kept.info.twin = twin;
    return kept.info;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
