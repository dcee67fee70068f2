// SPDX-License-Identifier: Apache-2.0
// Wrapping a stream that other code made, for callers that have the device's state alone.
#pragma once

#include <isthmus/result.hpp>
#include <isthmus/stream.hpp>

#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;

// Device::wrap_stream() of the device.
Result<Stream> wrapped_stream(const std::shared_ptr<DeviceState>& owner, void* native);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
