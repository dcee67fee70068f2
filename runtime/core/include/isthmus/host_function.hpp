// HostFunction: a closure that a device calls on the CPU when a stream comes to it (Stream::call_on_host).
#pragma once

#include <isthmus/export.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace isthmus::inline v0::detail {

class OrderChecker;

// Belongs to the stream that was given it, never to the driver: a device that was lost runs nothing any more, and what
// the closure holds is freed nevertheless.
class ISTHMUS_API HostFunction {
public:
    HostFunction() = default;
    HostFunction(const HostFunction&) = delete;
    HostFunction& operator=(const HostFunction&) = delete;
    virtual ~HostFunction();
    virtual void run() noexcept = 0;
    virtual void drop() noexcept = 0;  // destroys the closure; run() is not called any more

    // Of a function that is called once.
    enum class Progress : std::uint8_t { waiting, running, ran, dropped };
    std::atomic<Progress> progress{Progress::waiting};
    // Where the order is checked: once this runs, the host has seen the stream come there.
    OrderChecker* order = nullptr;
    std::uint64_t stream_id = 0;
    std::uint64_t position = 0;
};

template <class F>
class HostFunctionOf final : public HostFunction {
public:
    static_assert(std::is_nothrow_invocable_v<F&>,
                  "a host function is called by the driver, through which nothing can be thrown: declare it noexcept");
    explicit HostFunctionOf(F function) : function_(std::move(function)) {}
    void run() noexcept override { (*function_)(); }
    void drop() noexcept override { function_.reset(); }

private:
    std::optional<F> function_;
};

}  // namespace isthmus::inline v0::detail
