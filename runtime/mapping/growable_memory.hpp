// SPDX-License-Identifier: Apache-2.0
// GrowableMemory: the reserved addresses of one buffer and the handles mapped there so far.
#pragma once

#include <isthmus/mapping/growable_buffer.hpp>
#include <isthmus/result.hpp>

#include "buffer_memory.hpp"
#include "virtual_memory_rules.hpp"
#include "virtual_memory_state.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Not thread-safe: only the buffer's owner grows it. Its end releases everything, newest first.
class GrowableMemory : public BufferMemory {
public:
    // Adds `bytes`, a multiple of the granularity, at the end: one step. On an error nothing has changed.
    virtual Result<void> extend(std::size_t bytes) = 0;
    // Releases the newest handle, which must not be in use. On an error nothing has changed.
    virtual Result<void> give_back_last() = 0;
    // Where a handle lies; 0 is the oldest.
    virtual MemoryPlace place(std::size_t handle) const noexcept = 0;

    GrowableFigures figures() const noexcept {
        return {reserved_bytes, mapped_bytes(), granularity, handles.size(), devices};
    }
    std::size_t mapped_bytes() const noexcept;

    std::vector<std::size_t> handles;  // size of each in bytes, oldest first
    std::size_t reserved_bytes = 0;
    std::size_t granularity = 0;
    std::size_t devices = 1;  // that the handles lie on, round-robin
    rules::GrowthSteps steps = rules::GrowthSteps::doubling;
    // Devices that the driver may wait for when mappings change. Empty: no mapping changes.
    DeviceStates users;
    std::weak_ptr<BufferState> buffer;  // the buffer of this memory
};

// The devices that get access, each once: the device, those in `also` after validation, and the host if the memory lies
// there.
Result<DeviceStates> let_into(const std::shared_ptr<DeviceState>& device, const MemoryPlace& place,
                              const std::vector<const Device*>& also);
// Checks that all are devices of this runtime and not null.
Result<void> check_also(const DeviceState& device, const std::vector<const Device*>& also, const char* what);
// Checks that each of `owners` (not empty) has mappable memory, and that all of them, the device and those in `also`
// reach all of it. Returns the devices that get access, each once.
Result<DeviceStates> let_into_stripe(const std::shared_ptr<DeviceState>& device, const DeviceStates& owners,
                                     const std::vector<const Device*>& also);
// Do they reach ordinary host memory?
Result<void> check_host_reach(const std::vector<const Device*>& also);

// Validates, then reserves the addresses. Errors as GrowableBuffer::create.
Result<std::shared_ptr<GrowableMemory>> reserve_growable(const std::shared_ptr<DeviceState>& device,
                                                         std::size_t max_bytes, const GrowableOptions& options);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
