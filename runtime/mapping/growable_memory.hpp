// GrowableMemory: reserved addresses of one buffer, and the handles that were put there so far.
#pragma once

#include <isthmus/growable_buffer.hpp>
#include <isthmus/result.hpp>

#include "buffer_memory.hpp"
#include "virtual_memory_rules.hpp"
#include "virtual_memory_state.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace isthmus::inline v0::detail {

// Not thread-safe: growing is its buffer's owner's. Its end gives everything back, newest first.
class GrowableMemory : public BufferMemory {
public:
    // So many bytes, a multiple of the granularity, behind what is there: one step. On an error nothing has changed.
    virtual Result<void> extend(std::size_t bytes) = 0;
    // The newest handle, which nobody uses any more. On an error nothing has changed.
    virtual Result<void> give_back_last() = 0;
    // Where a handle lies, counted from the oldest.
    virtual MemoryPlace place(std::size_t handle) const noexcept = 0;

    GrowableFigures figures() const noexcept {
        return {reserved_bytes, mapped_bytes(), granularity, handles.size(), devices};
    }
    std::size_t mapped_bytes() const noexcept;

    std::vector<std::size_t> handles;  // their bytes, oldest first
    std::size_t reserved_bytes = 0;
    std::size_t granularity = 0;
    std::size_t devices = 1;  // that the handles lie on in turn
    rules::GrowthSteps steps = rules::GrowthSteps::doubling;
    // Whom the driver may wait for when mappings change. None: it changes none.
    DeviceStates users;
    std::weak_ptr<BufferState> buffer;  // that it is the memory of
};

// Whom the driver lets in, each once: the device, those besides, validated, and the host, where the memory lies there.
Result<DeviceStates> let_into(const std::shared_ptr<DeviceState>& device, const MemoryPlace& place,
                              const std::vector<const Device*>& also);
// Devices of this runtime, and none that is null.
Result<void> check_also(const DeviceState& device, const std::vector<const Device*>& also, const char* what);
// Each of `owners`, which are not empty, has memory that is mapped, and all of them, the device and those besides reach
// all of it. Whom the driver lets in, each once.
Result<DeviceStates> let_into_stripe(const std::shared_ptr<DeviceState>& device, const DeviceStates& owners,
                                     const std::vector<const Device*>& also);
// Do they reach ordinary host memory?
Result<void> check_host_reach(const std::vector<const Device*>& also);

// Validates, and reserves the addresses. Errors as GrowableBuffer::make.
Result<std::shared_ptr<GrowableMemory>> reserve_growable(const std::shared_ptr<DeviceState>& device,
                                                         std::size_t most_bytes, const GrowableOptions& options);

}  // namespace isthmus::inline v0::detail
