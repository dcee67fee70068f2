// SPDX-License-Identifier: Apache-2.0
// A buffer over a mapping that the runtime made itself: memory shared by several processes.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstddef>
#include <functional>
#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;
struct DeviceState;

struct OwnMapping {
    std::shared_ptr<void> keeper;  // unmaps when destroyed
    bool writable = true;
};
// Makes a buffer of a part of such a mapping, as Device::adopt() does with foreign memory; other processes may hold
// other parts. The keeper is held until the last use of the memory. Where the driver fails to unregister the memory,
// the keeper is held until the process ends: its addresses must not be reused by another mapping. `ended`, unless
// empty, is called after the last use.
ISTHMUS_API Result<std::shared_ptr<BufferState>> adopt_mapping(const std::shared_ptr<DeviceState>& device,
                                                               void* pointer, std::size_t bytes, const SharedUse& use,
                                                               const OwnMapping& mapping,
                                                               std::function<void()> ended = {});

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
