// SPDX-License-Identifier: Apache-2.0
// What a scenario may expect, also while planned faults make its calls fail. The README.md of this folder has the
// rules.
#pragma once

#include <isthmus/result.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

namespace conformance {

// Ends a scenario without a failure: after a planned fault, its expectations no longer hold. Caught by main() only.
struct ScenarioEnded {};

// Whether this process plays planned faults (ISTHMUS_FAULT_RUN) and one of them has happened.
bool fault_happened() noexcept;
// How long a scenario tries again what works at some time: on a slow machine late, behind a planned fault maybe never.
inline std::chrono::seconds patience() noexcept {
    return std::chrono::seconds(fault_happened() ? 2 : 20);
}

namespace detail {
// `answer`: nullptr if the call succeeded; `wanted`: Code::ok if it must succeed.
testing::AssertionResult judge(const isthmus::Error* answer, isthmus::Code wanted);
}  // namespace detail

// EXPECT_TRUE(worked(result)): the call succeeded. After a planned fault an error ends the scenario instead; it must
// still have a message and a remedy.
template <class T>
testing::AssertionResult worked(const isthmus::Result<T>& result) {
    return detail::judge(result.ok() ? nullptr : &result.error(), isthmus::Code::ok);
}

// EXPECT_TRUE(refused_as(result, Code::in_use)): refused for this reason. After a planned fault another error ends the
// scenario; a success instead of a refusal is always wrong.
template <class T>
testing::AssertionResult refused_as(const isthmus::Result<T>& result, isthmus::Code why) {
    return detail::judge(result.ok() ? nullptr : &result.error(), why);
}

// EXPECT_TRUE(unless_fault(device.healthy())): for what a failed call may change without an error here (health,
// placement, numbers of driver calls). Never for the content of buffers.
testing::AssertionResult unless_fault(bool holds);

// As refused_as(), where a planned fault may remove the reason of the refusal: a service ends with its device, a reader
// with its descriptor. A success then ends the scenario.
template <class T>
testing::AssertionResult refused_while_it_lasts(const isthmus::Result<T>& result, isthmus::Code why) {
    if (result.ok() && fault_happened()) return unless_fault(false);
    return refused_as(result, why);
}

// `asked` rounds, or few in a process that plays planned faults, because there are thousands of such processes.
int rounds(int asked) noexcept;

// A thread whose body may use the expectations above: join() rethrows what the body threw.
class Thread {
public:
    template <class Body>
    explicit Thread(Body body) : thread_([this, body = std::move(body)]() mutable { run(body); }) {}
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;
    ~Thread() {
        if (thread_.joinable()) thread_.join();
    }
    void join() {
        thread_.join();
        if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    }

private:
    void run(const std::function<void()>& body) noexcept {
        try {
            body();
        } catch (...) {
            thrown_ = std::current_exception();
        }
    }
    std::exception_ptr thrown_;
    std::thread thread_;  // last: starts when the other members exist
};

}  // namespace conformance
