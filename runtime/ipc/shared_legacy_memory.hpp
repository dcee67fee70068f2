// The last rung of memory for GPUs alone: an allocation of its own, named by the driver's older handles
// (cuIpcMemHandle).
#pragma once

#include <isthmus/result.hpp>
#include <isthmus/shared_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace isthmus::inline v0::detail {

struct BufferState;
struct DeviceState;

// Not zero yet. Errors: those of an allocation of device memory, in_use (a service runs), unsupported (the driver gives
// no handle of it).
Result<MadeExportable> make_shared_legacy(const std::shared_ptr<DeviceState>& owner, std::size_t bytes,
                                          std::uint32_t element_bytes);
// The descriptor was judged by rules::may_import(). Errors: in_use (a service runs, or this runtime has imported it
// already), invalid_argument, and the driver's.
Result<std::shared_ptr<BufferState>> import_shared_legacy(const std::shared_ptr<DeviceState>& owner,
                                                          const SharedMemoryDescriptor& descriptor);

}  // namespace isthmus::inline v0::detail
