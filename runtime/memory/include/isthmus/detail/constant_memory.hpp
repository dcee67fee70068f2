// SPDX-License-Identifier: Apache-2.0
// A buffer over memory of other code that nobody may write, although its mapping may allow it: a tensor of DLPack that
// is marked read-only.
#pragma once

#include <isthmus/adopt.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;
struct DeviceState;

// As Device::adopt<std::byte>(). Each use that writes is refused, on both sides; `options.use` has to declare that both
// sides read. The memory is registered and copied as its mapping allows: nothing stops code of the program that has its
// address. Any thread. Errors: those of Device::adopt(); not_accessible (a use that writes was declared).
ISTHMUS_API Result<std::shared_ptr<BufferState>> adopt_constant(const std::shared_ptr<DeviceState>& device,
                                                                void* pointer, std::size_t bytes, AdoptOptions options);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
