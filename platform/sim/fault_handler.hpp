// SPDX-License-Identifier: Apache-2.0
// The signal handler behind protection: a GPU worker's fault goes back to its landing, a CPU thread's is explained and
// then handed to whoever had the signal before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace isthmus::sim {

enum class Why : std::uint8_t;

void install_fault_handler();
bool run_with_landing(const std::function<void()>& work, std::uintptr_t& fault);

// What the handler says about an address. The table has room for some thousands of ranges; beyond that a fault is
// still a fault, only without its sentence.
void describe_closed_memory(void* pointer, std::size_t bytes, int device, Why why);
void forget_closed_memory(void* pointer);

}  // namespace isthmus::sim
