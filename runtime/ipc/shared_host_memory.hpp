// SPDX-License-Identifier: Apache-2.0
// The share method that CPUs can read too: one sealed file of host memory, mapped in every process and adopted by a
// device of each.
#pragma once

#include <isthmus/ipc/shared_memory.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;
struct DeviceState;

// Whole pages of zeros. Errors: those of SealedMemory::create() and of Device::adopt().
Result<MadeExportable> make_shared_host(const std::shared_ptr<DeviceState>& owner, std::size_t bytes,
                                        std::uint32_t element_bytes, const SharedUse& use);
// `descriptor` has passed rules::may_import(). Errors: those of SealedMemory::accept() and of Device::adopt().
Result<std::shared_ptr<BufferState>> import_shared_host(const std::shared_ptr<DeviceState>& owner,
                                                        SharedMemoryDescriptor descriptor, const SharedUse& use);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
