// SPDX-License-Identifier: Apache-2.0
// HostFunction: a closure that a stream calls on the CPU (Stream::call_on_host).
#pragma once

#include <isthmus/export.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

class OrderChecker;

// Owned by the stream that it was given to, not by the driver: a lost device runs nothing any more, and what the
// closure holds must still be freed.
class ISTHMUS_API HostFunction {
public:
    HostFunction() = default;
    HostFunction(const HostFunction&) = delete;
    HostFunction& operator=(const HostFunction&) = delete;
    virtual ~HostFunction();
    virtual void run() noexcept = 0;
    virtual void drop() noexcept = 0;  // destroys the closure; run() is not called afterwards

    // For a function that is called once.
    enum class Progress : std::uint8_t { waiting, running, ran, dropped };
    std::atomic<Progress> progress{Progress::waiting};
    // For the order checker: when this function runs, the host has seen the stream reach this position.
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

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
