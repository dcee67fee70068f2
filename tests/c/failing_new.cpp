// SPDX-License-Identifier: Apache-2.0
// operator new that fails when it is told to.
#include "failing_new.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> made{0};
std::atomic<long> fails_at{-1};  // counted as `made`; -1: never

void* allocated(std::size_t bytes) noexcept {
    const long number = made.fetch_add(1, std::memory_order_relaxed);
    return number == fails_at.load(std::memory_order_relaxed) ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace

long news_made() {
    return made.load();
}
void fail_new(long number) {
    fails_at.store(number < 0 ? -1 : made.load() + number);
}

void* operator new(std::size_t bytes) {
    void* const memory = allocated(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return allocated(bytes);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}
