// SPDX-License-Identifier: Apache-2.0
// Checks whether a kernel, or the host, may update memory atomically: applies the rules to a buffer or an address.
#pragma once

#include <isthmus/atomic_span.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/result.hpp>

#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;

// true: the kernel updates the memory of this parameter atomically.
inline bool updates(const ParameterInfo& parameter) noexcept {
    return parameter.atomics != AtomicSet::load_store || parameter.own_device;
}

// Called for launches in every mode, because a lost update shows no error. Errors as Buffer::atomics_on_host, and
// wrong_device. At most one driver call, for a raw address that is not yet known. For pageable memory, the first check
// reads /proc if the machine's rule depends on files.
Result<void> check_kernel_atomics(const DeviceState& device, const KernelInfo& kernel, std::uint32_t argument,
                                  const LaunchArgument& given);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
