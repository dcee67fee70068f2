// SPDX-License-Identifier: Apache-2.0
// What a scenario may expect, also while planned faults make its calls fail: README.md beside it has the rules.
#pragma once

#include <isthmus/result.hpp>

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <thread>
#include <utility>

namespace conformance {

// Ends a scenario quietly: a planned fault changed what could no longer be expected. Caught by main() alone.
struct ScenarioEnded {};

// This process plays planned faults (ISTHMUS_FAULT_RUN), and one of them has happened.
bool fault_happened() noexcept;

namespace detail {
// `answer`: nullptr where the call succeeded; `wanted`: Code::ok where it had to.
testing::AssertionResult judge(const isthmus::Error* answer, isthmus::Code wanted);
}  // namespace detail

// EXPECT_TRUE(worked(result)): the call succeeded. After a planned fault an error ends the scenario instead; it still
// has to explain itself.
template <class T>
testing::AssertionResult worked(const isthmus::Result<T>& result) {
    return detail::judge(result.ok() ? nullptr : &result.error(), isthmus::Code::ok);
}

// EXPECT_TRUE(refused_as(result, Code::in_use)): refused for this reason. After a planned fault another error ends the
// scenario; a success where a refusal belongs is wrong in any case.
template <class T>
testing::AssertionResult refused_as(const isthmus::Result<T>& result, isthmus::Code why) {
    return detail::judge(result.ok() ? nullptr : &result.error(), why);
}

// EXPECT_TRUE(unless_fault(device.healthy())): what a failed call may change without giving an error here (health,
// placement, numbers of driver calls). Never for content of buffers.
testing::AssertionResult unless_fault(bool holds);

// As refused_as(), where what the refusal rests on may be gone after a planned fault: with its device a service ends,
// with its descriptor a reader. A success then ends the scenario.
template <class T>
testing::AssertionResult refused_while_it_lasts(const isthmus::Result<T>& result, isthmus::Code why) {
    if (result.ok() && fault_happened()) return unless_fault(false);
    return refused_as(result, why);
}

// As many rounds as asked for, or few in a process that plays planned faults, of which there are thousands.
int rounds(int asked) noexcept;

// A thread whose body may expect as a scenario does: what it throws reaches whoever joins it.
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
    std::thread thread_;  // last: begins when the rest is there
};

}  // namespace conformance
