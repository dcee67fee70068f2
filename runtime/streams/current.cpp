// SPDX-License-Identifier: Apache-2.0
// ScopedDevice, ScopedStream and streams that are set without a scope; the look-up of the current device and stream.
#include <isthmus/current.hpp>
#include <isthmus/device.hpp>

#include "current_scopes.hpp"
#include "device_state.hpp"
#include "stream_state.hpp"
#include "streams_errors.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// true: the thread's list was destroyed. Destructors of static objects may still run this code afterwards.
constinit thread_local bool gone = false;

// A stream that the thread set without a scope.
struct Chosen {
    std::weak_ptr<StreamState> owner;  // the device's first stream
    std::weak_ptr<CurrentScope> scope;
};

// Takes the stream from its owner, for the caller to drop: it may end with that, which calls the driver.
std::shared_ptr<CurrentScope> take_back(const Chosen& one) {
    const std::shared_ptr<StreamState> owner = one.owner.lock();
    std::shared_ptr<CurrentScope> scope = one.scope.lock();
    if (!owner || !scope) return nullptr;
    const std::lock_guard lock(owner->chosen.mutex);
    std::erase(owner->chosen.all, scope);
    return scope;
}

struct OpenScopes {
    std::vector<std::weak_ptr<CurrentScope>> open;  // innermost last; scopes that ended have expired
    std::vector<Chosen> chosen;                     // one per device; expired with their runtime
    OpenScopes() = default;
    OpenScopes(const OpenScopes&) = delete;
    OpenScopes& operator=(const OpenScopes&) = delete;
    ~OpenScopes() {
        gone = true;
        for (const Chosen& one : chosen) (void)take_back(one);
    }
};

// nullptr: the list was destroyed.
OpenScopes* scopes() {
    if (gone) return nullptr;
    thread_local OpenScopes of_thread;
    return &of_thread;
}

// The innermost scope of the thread that makes a stream of the device current; nullptr: none.
std::shared_ptr<CurrentScope> stream_scope(const OpenScopes& mine, const DeviceState& device) {
    for (auto known = mine.open.rbegin(); known != mine.open.rend(); ++known) {
        std::shared_ptr<CurrentScope> scope = known->lock();
        if (scope && scope->stream && scope->device == &device) return scope;
    }
    return nullptr;
}

// What the thread set without a scope on the device; nullptr: nothing.
std::shared_ptr<CurrentScope> chosen_scope(const OpenScopes& mine, const DeviceState& device) {
    for (const Chosen& one : mine.chosen) {
        std::shared_ptr<CurrentScope> scope = one.scope.lock();
        if (scope && scope->device == &device) return scope;
    }
    return nullptr;
}

// Sets the stream below all scopes of the thread. The first stream needs no entry.
void choose(OpenScopes& mine, const std::shared_ptr<DeviceState>& device, const Stream& stream) {
    const std::shared_ptr<StreamState> first = device->first_stream.lock();
    const std::shared_ptr<CurrentScope> before = chosen_scope(mine, *device);
    std::erase_if(mine.chosen, [&](const Chosen& one) {
        const std::shared_ptr<CurrentScope> scope = one.scope.lock();
        return !scope || scope == before;
    });
    if (before) (void)take_back({first, before});
    if (!first || stream.state() == first) return;
    auto scope = std::make_shared<CurrentScope>(CurrentScope{device, device.get(), stream});
    mine.chosen.push_back({first, scope});
    const std::lock_guard lock(first->chosen.mutex);
    first->chosen.all.push_back(std::move(scope));
}

// Refuses, or orders what the stream is given from now on behind what the thread's current one was given (S6).
Result<void> order_behind_current(Stream& stream) {
    const std::shared_ptr<DeviceState>& device = stream.state()->device;
    if (device->bars(rules::PublicCall::make_current)) return device->refusal(rules::PublicCall::make_current);
    std::optional<Stream> before = current_stream_of(*device);
    return before ? stream.wait_stream(*before) : Result<void>();
}

}  // namespace

std::shared_ptr<CurrentScope> begin_scope(const std::shared_ptr<DeviceState>& device, std::optional<Stream> stream) {
    auto scope = std::make_shared<CurrentScope>(CurrentScope{device, device.get(), std::move(stream)});
    if (OpenScopes* const mine = scopes()) {
        std::erase_if(mine->open, [](const std::weak_ptr<CurrentScope>& known) { return known.expired(); });
        mine->open.push_back(scope);
    }
    return scope;
}

std::vector<const DeviceState*> scoped_devices() {
    std::vector<const DeviceState*> devices;
    const OpenScopes* const mine = scopes();
    if (mine == nullptr) return devices;
    for (auto known = mine->open.rbegin(); known != mine->open.rend(); ++known) {
        if (const std::shared_ptr<CurrentScope> scope = known->lock()) devices.push_back(scope->device);
    }
    return devices;
}

std::optional<Stream> current_stream_of(const DeviceState& device) {
    if (const OpenScopes* const mine = scopes()) {
        if (const std::shared_ptr<CurrentScope> scope = stream_scope(*mine, device)) return scope->stream;
        if (const std::shared_ptr<CurrentScope> scope = chosen_scope(*mine, device)) return scope->stream;
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
    if (Result<void> ordered = detail::order_behind_current(entered); !ordered) return std::move(ordered).error();
    return ScopedStream(detail::begin_scope(entered.state()->device, entered));
}

Result<void> Device::set_current_stream(const Stream& stream) {
    if (stream.state()->device != state_) {
        return make_error<errors::current_stream_of_another_device>(named(*state_), named(*stream.state()->device));
    }
    Stream chosen = stream;
    if (Result<void> ordered = detail::order_behind_current(chosen); !ordered) return ordered;
    detail::OpenScopes* const mine = detail::scopes();
    if (mine == nullptr) return make_error<errors::current_stream_at_the_end_of_a_thread>();
    if (const std::shared_ptr<detail::CurrentScope> scope = detail::stream_scope(*mine, *state_)) {
        scope->stream = std::move(chosen);
    } else {
        detail::choose(*mine, state_, chosen);
    }
    return {};
}

Stream Device::current_stream() const {
    std::optional<Stream> current = detail::current_stream_of(*state_);
    return current ? *std::move(current) : stream_;
}

}  // namespace v0
}  // namespace isthmus
