// SPDX-License-Identifier: Apache-2.0
// The current device and streams of a thread, for calls that name none.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/result.hpp>

#include <memory>

namespace isthmus {
inline namespace v0 {

class Device;
class Stream;

namespace detail {
struct CurrentScope;
}

// The current device and stream are per thread (S4). They apply to Runtime::current_device(), Device::current_stream()
// and to calls without a stream (Device::launch, copy, fill, record, wait and wait_stream; isthmus::copy). An explicit
// stream takes precedence over the current device (S8). A thread starts with the runtime's default device and each
// device's first stream. Device::set_current_stream() sets a stream without a scope.
//
// Scopes nest; the innermost applies. A scope ends with its object, on every exit path and in any order, and may
// outlive the Runtime. It applies to the thread that began it, even if another thread ends it.

// Makes the device the current one of its runtime for its lifetime. Does not wait and makes no driver call.
class [[nodiscard]] ISTHMUS_API ScopedDevice {
public:
    explicit ScopedDevice(const Device& device);
    ScopedDevice(const ScopedDevice&) = delete;
    ScopedDevice& operator=(const ScopedDevice&) = delete;
    ~ScopedDevice();

private:
    std::shared_ptr<detail::CurrentScope> scope_;
};

// Makes the stream the current one of its device, and that device the current one, for its lifetime. Holds the
// stream. Movable; a moved-from scope ends nothing.
class [[nodiscard]] ISTHMUS_API ScopedStream {
public:
    // Work given to `stream` from now on is ordered behind the work given so far to the device's previously current
    // stream (S6); the host does not wait. Leaving a scope orders nothing: call wait_stream() if the outer stream has
    // to follow the inner one. Errors as Stream::wait_stream; then nothing has changed.
    static Result<ScopedStream> enter(const Stream& stream);
    ScopedStream(ScopedStream&&) noexcept;
    ScopedStream& operator=(ScopedStream&&) noexcept;
    ~ScopedStream();

private:
    explicit ScopedStream(std::shared_ptr<detail::CurrentScope> scope) noexcept;
    std::shared_ptr<detail::CurrentScope> scope_;
};

}  // namespace v0
}  // namespace isthmus
