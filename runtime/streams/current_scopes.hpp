// SPDX-License-Identifier: Apache-2.0
// CurrentScopes: a thread's open scopes, and the stream or device that they make current.
#pragma once

#include <isthmus/stream.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;

// Owned by the scope's object alone. The thread's list does not own it: ending a scope touches no list, and a scope may
// end on another thread, out of order or after its thread.
struct CurrentScope {
    // Keeps the device's memory block allocated, so that no later device has the same address.
    std::weak_ptr<const DeviceState> known;
    const DeviceState* device;  // compared, never dereferenced
    std::optional<Stream> stream;
};
// What Device::set_current_stream() set is one, too, owned by the device's first stream (StreamState::chosen).

std::shared_ptr<CurrentScope> begin_scope(const std::shared_ptr<DeviceState>& device, std::optional<Stream> stream);

// The devices of the calling thread's scopes, innermost first. Compare the pointers only.
std::vector<const DeviceState*> scoped_devices();

// The calling thread's current stream of the device. nullopt: no scope sets one, and the device's first stream was
// destroyed with its runtime.
std::optional<Stream> current_stream_of(const DeviceState& device);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
