// SPDX-License-Identifier: Apache-2.0
// The typed calls of Stream and Module are templates over members that take types at run time, and those are private.
// C names kernels and parameters at run time, so it calls those members: an explicit instantiation may name them.
#pragma once

#include <isthmus/module.hpp>
#include <isthmus/stream.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

namespace isthmus::c {

struct LaunchPacked {
    using Member = Result<LaunchReport> (Stream::*)(const LaunchOptions& options, const KernelInfo& kernel,
                                                    const Extent& extent, void* pack,
                                                    const detail::LaunchArgument* arguments, std::size_t count);
    friend Member member_of(LaunchPacked);
};
struct FindKernel {
    using Found = Result<std::shared_ptr<const detail::ModuleKernelState>>;
    using Member = Found (Module::*)(std::string_view entry, const detail::ModuleSignature& signature) const;
    friend Member member_of(FindKernel);
};

// Defines member_of() of the tag.
template <class Tag, typename Tag::Member member>
struct Reach {
    friend typename Tag::Member member_of(Tag) { return member; }
};

}  // namespace isthmus::c
