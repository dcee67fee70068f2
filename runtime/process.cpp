// Which process this is.
#include "process.hpp"

#include <pthread.h>

#include <atomic>

namespace isthmus::process {
namespace {
std::atomic<std::uint64_t> forks{0};
void in_child() {
    forks.fetch_add(1, std::memory_order_relaxed);
}
// pthread_atfork: drivers answer 3 in a forked child and touching managed memory there faults, so the child is
// recognised before any call is made.
const int registered = pthread_atfork(nullptr, nullptr, in_child);
}  // namespace

std::uint64_t generation() noexcept {
    (void)registered;
    return forks.load(std::memory_order_relaxed);
}

}  // namespace isthmus::process
