// SPDX-License-Identifier: Apache-2.0
// Runs a kernel's CPU twin over a whole extent, as a device would.
#pragma once

#include <isthmus/kernel.hpp>

#include <type_traits>

template <class Space, class... P>
void run_twin(const isthmus::Kernel<void(Space, P...)>& kernel,
              typename isthmus::KernelTraits<void(Space, P...)>::ExtentType items,
              const std::type_identity_t<P>&... values) {
    using Traits = isthmus::KernelTraits<void(Space, P...)>;
    const isthmus::Extent extent = Traits::extent(items);
    const auto pack = Traits::pack(values...);
    const std::uint64_t outermost[] = {extent.x * extent.y * extent.z, extent.x, extent.y, extent.z};
    kernel.info().twin(extent, 0, outermost[Traits::rank], &pack);
}
