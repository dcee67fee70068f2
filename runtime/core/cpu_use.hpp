// SPDX-License-Identifier: Apache-2.0
// The cache operations of the kernel around a use of a dma-buf by the CPU; of other memory these do nothing.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/result.hpp>

#include <platform/dma_buf.hpp>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;

// What a host view with this claim does. A view for writing also reads: it may leave bytes as they are, and a camera
// may write them meanwhile.
constexpr platform::os::CpuUse cpu_use_of(ArgumentUse claimed) noexcept {
    return claimed == ArgumentUse::read ? platform::os::CpuUse::read : platform::os::CpuUse::read_write;
}
// May wait for other devices' work, without a deadline. Errors: system_error.
Result<void> begin_cpu_use(const BufferState& buffer, platform::os::CpuUse use);
// Behind the CPU's last access, and before a device may use the memory. A failure has no caller: it is logged.
void end_cpu_use(const BufferState& buffer, platform::os::CpuUse use) noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
