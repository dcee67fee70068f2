// SPDX-License-Identifier: Apache-2.0
// The last method for memory of GPUs alone: a separate allocation, named by the driver's older handles
// (cuIpcMemHandle).
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

// Not zeroed yet. Errors: those of allocating device memory, in_use (a service runs), unsupported (the driver gives no
// handle for it).
Result<MadeExportable> make_shared_legacy(const std::shared_ptr<DeviceState>& owner, std::size_t bytes,
                                          std::uint32_t element_bytes);
// `descriptor` has passed rules::may_import(). Errors: in_use (a service runs, or this runtime has imported the memory
// already), invalid_argument, and the driver's.
Result<std::shared_ptr<BufferState>> import_shared_legacy(const std::shared_ptr<DeviceState>& owner,
                                                          const SharedMemoryDescriptor& descriptor);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
