// SPDX-License-Identifier: Apache-2.0
// The signal handler behind protection: a fault of a GPU worker jumps back to its landing point; a fault of a CPU
// thread is explained and then passed to the previous handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace isthmus::sim {

enum class Why : std::uint8_t;

void install_fault_handler();
bool run_with_landing(const std::function<void()>& work, std::uintptr_t& fault);

// The handler's description of an address range. The table has room for some thousands of ranges; further ranges fault
// without an explanation.
void describe_closed_memory(void* pointer, std::size_t bytes, int device, Why why);
void forget_closed_memory(void* pointer);

}  // namespace isthmus::sim
