// SPDX-License-Identifier: Apache-2.0
#include "counted_new.hpp"

#include <sanitized.hpp>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t taken = 0;

}  // namespace

#ifndef ISTHMUS_ADDRESS_SANITIZED  // which has operators of its own
// Not inlined: compilers would see memory of new in free().
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    ++taken;
    if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
#endif

namespace isthmus::tools::latency {

std::uint64_t counted_new() noexcept {
    return taken;
}

}  // namespace isthmus::tools::latency
