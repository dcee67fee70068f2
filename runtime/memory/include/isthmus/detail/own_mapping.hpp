// A mapping of the runtime's own as a buffer: memory of several processes.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstddef>
#include <functional>
#include <memory>

namespace isthmus::inline v0::detail {

struct BufferState;
struct DeviceState;

struct OwnMapping {
    std::shared_ptr<void> keeper;  // unmaps it with its end
    bool writable = true;
};
// A part of a mapping of the runtime's own, of which other processes may have others, as Device::adopt() does with
// foreign memory. The keeper is held up to the memory's last use; until the process ends where the driver does not take
// it back: its addresses must not become another mapping's then. Behind the last use `ended` is called, if it is one.
ISTHMUS_API Result<std::shared_ptr<BufferState>> adopt_mapping(const std::shared_ptr<DeviceState>& device,
                                                               void* pointer, std::size_t bytes, const SharedUse& use,
                                                               const OwnMapping& mapping,
                                                               std::function<void()> ended = {});

}  // namespace isthmus::inline v0::detail
