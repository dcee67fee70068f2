// CurrentScopes: the scopes that a thread is in, and which stream or device they make current.
#pragma once

#include <isthmus/stream.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace isthmus::inline v0::detail {

struct DeviceState;

// Owned by the scope's object alone: the thread's list only looks, so that ending one touches no list, and a scope that
// ends elsewhere, out of order or after its thread does no harm.
struct CurrentScope {
    // The block of memory of a device stays as long as somebody knows it, so that no later one has the same address.
    std::weak_ptr<const DeviceState> known;
    const DeviceState* device;  // compared, never looked into
    std::optional<Stream> stream;
};

std::shared_ptr<CurrentScope> begin_scope(const std::shared_ptr<DeviceState>& device, std::optional<Stream> stream);

// The devices that the calling thread's scopes name, the innermost first; only to be compared.
std::vector<const DeviceState*> scoped_devices();

// The stream that is current on the device for the calling thread; nothing: no scope says so, and the device's first
// one has gone with its runtime.
std::optional<Stream> current_stream_of(const DeviceState& device);

}  // namespace isthmus::inline v0::detail
