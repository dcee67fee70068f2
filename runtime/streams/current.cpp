// SPDX-License-Identifier: Apache-2.0
// ScopedDevice and ScopedStream, and the look-up of the current device and stream.
#include <isthmus/current.hpp>
#include <isthmus/device.hpp>

#include "current_scopes.hpp"
#include "device_state.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// true: the thread's list was destroyed. Destructors of static objects may still run this code afterwards.
constinit thread_local bool gone = false;

struct OpenScopes {
    std::vector<std::weak_ptr<CurrentScope>> open;  // innermost last; scopes that ended have expired
    OpenScopes() = default;
    OpenScopes(const OpenScopes&) = delete;
    OpenScopes& operator=(const OpenScopes&) = delete;
    ~OpenScopes() { gone = true; }
};

// nullptr: the list was destroyed.
std::vector<std::weak_ptr<CurrentScope>>* scopes() {
    if (gone) return nullptr;
    thread_local OpenScopes of_thread;
    return &of_thread.open;
}

}  // namespace

std::shared_ptr<CurrentScope> begin_scope(const std::shared_ptr<DeviceState>& device, std::optional<Stream> stream) {
    auto scope = std::make_shared<CurrentScope>(CurrentScope{device, device.get(), std::move(stream)});
    if (std::vector<std::weak_ptr<CurrentScope>>* const open = scopes()) {
        std::erase_if(*open, [](const std::weak_ptr<CurrentScope>& known) { return known.expired(); });
        open->push_back(scope);
    }
    return scope;
}

std::vector<const DeviceState*> scoped_devices() {
    std::vector<const DeviceState*> devices;
    const std::vector<std::weak_ptr<CurrentScope>>* const open = scopes();
    if (open == nullptr) return devices;
    for (auto known = open->rbegin(); known != open->rend(); ++known) {
        if (const std::shared_ptr<CurrentScope> scope = known->lock()) devices.push_back(scope->device);
    }
    return devices;
}

std::optional<Stream> current_stream_of(const DeviceState& device) {
    if (const std::vector<std::weak_ptr<CurrentScope>>* const open = scopes()) {
        for (auto known = open->rbegin(); known != open->rend(); ++known) {
            const std::shared_ptr<CurrentScope> scope = known->lock();
            if (scope && scope->stream && scope->device == &device) return scope->stream;
        }
    }
    if (std::shared_ptr<StreamState> first = device.first_stream.lock()) return Stream(std::move(first));
    return std::nullopt;
}

}  // namespace detail

ScopedDevice::ScopedDevice(const Device& device) : scope_(detail::begin_scope(device.state(), std::nullopt)) {}
ScopedDevice::~ScopedDevice() = default;

ScopedStream::ScopedStream(std::shared_ptr<detail::CurrentScope> scope) noexcept : scope_(std::move(scope)) {}
ScopedStream::ScopedStream(ScopedStream&&) noexcept = default;
ScopedStream& ScopedStream::operator=(ScopedStream&&) noexcept = default;
ScopedStream::~ScopedStream() = default;

Result<ScopedStream> ScopedStream::enter(const Stream& stream) {
    Stream entered = stream;
    const std::shared_ptr<detail::DeviceState>& device = entered.state()->device;
    if (device->bars(rules::PublicCall::make_current)) return device->refusal(rules::PublicCall::make_current);
    if (std::optional<Stream> before = detail::current_stream_of(*device)) {
        if (Result<void> ordered = entered.wait_stream(*before); !ordered) return std::move(ordered).error();
    }
    return ScopedStream(detail::begin_scope(device, std::move(entered)));
}

Stream Device::current_stream() const {
    std::optional<Stream> current = detail::current_stream_of(*state_);
    return current ? *std::move(current) : stream_;
}

}  // namespace v0
}  // namespace isthmus
