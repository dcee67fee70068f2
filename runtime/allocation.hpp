// Making buffers: validation, the plan, and the steps with their exact undo.
#pragma once

#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstddef>
#include <memory>

namespace isthmus::inline v0::detail {

struct BufferState;
struct DeviceState;
struct StreamState;
using Untyped = Result<std::shared_ptr<BufferState>>;

struct Amount {
    std::size_t count = 0;
    std::size_t element_bytes = 0;
    std::size_t alignment = 0;
};

// Pool memory is allocated in the order of `stream` and waited for.
Untyped allocate_kind(const std::shared_ptr<DeviceState>& device, StreamState& stream, Amount amount, MemoryKind kind);
Untyped allocate_host(const std::shared_ptr<DeviceState>& device, Amount amount, const HostPlacement& placement);
Untyped allocate_shared(const std::shared_ptr<DeviceState>& device, StreamState& stream, Amount amount,
                        const SharedUse& use);

}  // namespace isthmus::inline v0::detail
