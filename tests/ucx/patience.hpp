// SPDX-License-Identifier: Apache-2.0
// Connections on a busy machine: options that outlast a thread which stands still, and tests of a short silence, which
// are played again where a thread did.
#pragma once

#include <isthmus/ucx.hpp>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

namespace isthmus {

// Times that a busy machine meets, too.
inline ucx::ConnectionOptions patient() {
    ucx::ConnectionOptions options;
    options.step_timeout = options.setup_timeout = options.silence = std::chrono::seconds(30);
    return options;
}

// The next connection, or that none came.
inline Result<FileDescriptor> accepted_by(ucx::Listener& listener) {
    pollfd one{listener.descriptor(), POLLIN, 0};
    (void)::poll(&one, 1, 30000);
    return listener.accept();
}

// The steps of one thread, between which it should not stand still.
class Steps {
public:
    Steps() = default;
    Steps(const Steps&) = delete;
    Steps& operator=(const Steps&) = delete;
    ~Steps() { step(); }
    void step() noexcept {
        const Clock::time_point now = Clock::now();
        const std::chrono::nanoseconds gap = now - last_;
        last_ = now;
        std::chrono::nanoseconds known = longest.load();
        while (known < gap && !longest.compare_exchange_weak(known, gap)) {
        }
    }
    static inline std::atomic<std::chrono::nanoseconds> longest{std::chrono::nanoseconds(0)};  // between two, of any

private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point last_ = Clock::now();
};

// Plays a test of connections that end after `silence`. Where a thread stood still for a third of it, an end may
// rightly have given up the other: a failure then counts in the last of 20 plays only.
template <class Play>
void play_undisturbed(std::chrono::nanoseconds silence, Play play) {
    for (int left = 20; left > 0; --left) {
        Steps::longest = std::chrono::nanoseconds(0);
        ::testing::TestPartResultArray results;
        std::optional<std::string> thrown;
        {
            const ::testing::ScopedFakeTestPartResultReporter kept(
                ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
            try {
                play();
            } catch (const std::exception& error) {
                thrown = error.what();
            }
        }
        bool failed = thrown.has_value();
        for (int at = 0; at < results.size(); ++at) failed = failed || results.GetTestPartResult(at).failed();
        if (failed && left > 1 && Steps::longest.load() > silence / 3) {
            std::printf("played again: a thread stood still for %lld ms\n",
                        static_cast<long long>(Steps::longest.load() / std::chrono::milliseconds(1)));
            continue;
        }
        for (int at = 0; at < results.size(); ++at) {
            const ::testing::TestPartResult& each = results.GetTestPartResult(at);
            if (each.failed()) ADD_FAILURE_AT(each.file_name(), each.line_number()) << each.message();
        }
        if (thrown) ADD_FAILURE() << *thrown;
        return;
    }
}

}  // namespace isthmus
