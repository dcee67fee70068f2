// SPDX-License-Identifier: Apache-2.0
// Crew: threads that repeatedly do the same work together, and start within a fraction of a microsecond.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace isthmus::tools::litmus {

// For one calling thread, which is worker 0. Between runs the other threads spin; they yield where there are more
// threads than processors.
class Crew {
public:
    explicit Crew(unsigned workers);  // throws std::system_error where a thread cannot be started
    ~Crew();
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    unsigned size() const noexcept { return static_cast<unsigned>(threads_.size()) + 1; }
    // Calls work(0), …, work(size() - 1) at the same time, each on its own thread, and returns when all calls have
    // returned.
    void run(const std::function<void(unsigned worker)>& work);

private:
    void serve(unsigned worker);
    void end();
    std::vector<std::thread> threads_;
    const std::function<void(unsigned)>* work_ = nullptr;  // published by round_
    std::atomic<std::uint64_t> round_{0};
    std::atomic<unsigned> busy_{0};
    std::atomic<bool> ends_{false};
};

}  // namespace isthmus::tools::litmus
