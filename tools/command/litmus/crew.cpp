// SPDX-License-Identifier: Apache-2.0
// Starts threads together.
#include "crew.hpp"

namespace isthmus::tools::litmus {
namespace {

// Spins without sleeping: the wait is short, and the next step must start at once.
template <class Condition>
void spin_until(Condition condition) {
    for (unsigned turn = 1; !condition(); ++turn) {
        if (turn % 256 == 0) std::this_thread::yield();
    }
}

}  // namespace

Crew::Crew(unsigned workers) {
    try {
        for (unsigned worker = 1; worker < workers; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
    } catch (...) {  // no more threads: those that run must not be destroyed
        end();
        throw;
    }
}

Crew::~Crew() {
    end();
}

void Crew::end() {
    ends_.store(true, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in serve()
    for (std::thread& thread : threads_) thread.join();
}

void Crew::run(const std::function<void(unsigned)>& work) {
    work_ = &work;
    busy_.store(size() - 1, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in serve()
    work(0);
    // Pairs with the release in serve(): the writes of the other workers are visible here.
    spin_until([this] { return busy_.load(std::memory_order_acquire) == 0; });
}

void Crew::serve(unsigned worker) {
    for (std::uint64_t done = 0;; ++done) {
        spin_until([&] { return round_.load(std::memory_order_acquire) != done; });
        if (ends_.load(std::memory_order_relaxed)) return;
        (*work_)(worker);
        busy_.fetch_sub(1, std::memory_order_release);
    }
}

}  // namespace isthmus::tools::litmus
