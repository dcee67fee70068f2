// What is current: the device and the streams that a thread's calls use where they name none.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/result.hpp>

#include <memory>

namespace isthmus::inline v0 {

class Device;
class Stream;

namespace detail {
struct CurrentScope;
}

// What is current belongs to a thread (S4): Runtime::current_device(), Device::current_stream() and all that goes there
// unless a stream is named (Device::launch, copy, fill and record; isthmus::copy). A stream that is named wins over
// whatever device is current (S8). A thread begins with the runtime's default device and each device's first stream.
//
// Scopes nest; the innermost counts. Each ends with its object, however that goes, in whatever order, and may outlive
// the Runtime. They count for the thread that began them, also where another one ends them.

// While it lives, the device is the current one of its runtime. Waits for nothing and calls no driver.
class [[nodiscard]] ISTHMUS_API ScopedDevice {
public:
    explicit ScopedDevice(const Device& device);
    ScopedDevice(const ScopedDevice&) = delete;
    ScopedDevice& operator=(const ScopedDevice&) = delete;
    ~ScopedDevice();

private:
    std::shared_ptr<detail::CurrentScope> scope_;
};

// While it lives, the stream is its device's current one, and that device the current one. Keeps the stream. Movable;
// one that was moved from ends nothing.
class [[nodiscard]] ISTHMUS_API ScopedStream {
public:
    // What is given to `stream` from now on comes behind what was given to the stream that was current on its device
    // until now (S6); the host waits for nothing. Leaving a scope orders nothing: wait_stream() does, where the outer
    // stream is to come behind the inner one. Errors as Stream::wait_stream; nothing has changed then.
    static Result<ScopedStream> enter(const Stream& stream);
    ScopedStream(ScopedStream&&) noexcept;
    ScopedStream& operator=(ScopedStream&&) noexcept;
    ~ScopedStream();

private:
    explicit ScopedStream(std::shared_ptr<detail::CurrentScope> scope) noexcept;
    std::shared_ptr<detail::CurrentScope> scope_;
};

}  // namespace isthmus::inline v0
