// SPDX-License-Identifier: Apache-2.0
// Helpers for the tests of the simulator's engine: gates that operations wait at, and a log of what ran.
#pragma once

#include <engine.hpp>

#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::sim::engine::tests {

// Opened once, by any thread. An operation that waits here ends only after open().
class Gate {
public:
    void open() {
        const std::lock_guard<std::mutex> lock(mutex_);
        open_ = true;
        opened_.notify_all();
    }
    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        opened_.wait(lock, [this] { return open_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool open_ = false;
};

class Log {
public:
    void add(std::string entry) {
        const std::lock_guard<std::mutex> lock(mutex_);
        entries_.push_back(std::move(entry));
    }
    std::vector<std::string> entries() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return entries_;
    }

private:
    std::mutex mutex_;
    std::vector<std::string> entries_;
};

inline Operation operation(Kind kind, std::function<int()> body) {
    Operation made;
    made.kind = kind;
    made.body = std::move(body);
    return made;
}
inline Operation kernel(std::function<int()> body) {
    return operation(Kind::kernel, std::move(body));
}
inline Operation logs(Log& log, std::string entry) {
    return kernel([&log, entry] {
        log.add(entry);
        return 0;
    });
}
inline Operation waits_for(Gate& gate) {
    return kernel([&gate] {
        gate.wait();
        return 0;
    });
}
inline Operation opens(Gate& gate) {
    return kernel([&gate] {
        gate.open();
        return 0;
    });
}
inline Operation fails_with(int code) {
    return kernel([code] { return code; });
}

inline Options threads(int devices = 1) {
    Options options;
    options.devices = devices;
    // Never reached, however slow the machine: tests of the grace period set their own.
    options.grace_ns = 60'000'000'000;
    return options;
}
inline Options seeded(std::uint64_t seed) {
    Options options;
    options.mode = Mode::seeded;
    options.seed = seed;
    return options;
}
inline StreamOptions non_blocking() {
    return {.blocking = false, .priority = 0};
}

using Entries = std::vector<std::string>;

}  // namespace isthmus::sim::engine::tests
