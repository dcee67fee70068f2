// SPDX-License-Identifier: Apache-2.0
// Counts for `isthmus simulate`, kept in the file that ISTHMUS_SIM_STATISTICS names (sim_statistics.h). Without the
// variable every function here does nothing. All of them may be called from any thread, under any lock, and, once
// prepare_statistics() has run, inside a signal handler. Declares no function of the driver.
#pragma once

#include <cstddef>
#include <cstdint>

namespace isthmus::sim {

enum class Place { host, device, managed };

void prepare_statistics() noexcept;  // opens the file; otherwise the first count does

void count_statistics_call(int index) noexcept;              // index: of exports.def
void count_statistics_answer(int index, int code) noexcept;  // a code other than 0
void count_refused(const char* symbol) noexcept;             // a function that the simulator does not define
// A message, which is the same as an earlier one if its format is. `line`: with the values.
void count_message(const char* format, const char* line) noexcept;
void count_sticky_code(int code) noexcept;
void count_copy(Place from, Place to, std::uint64_t bytes) noexcept;
void count_fill(std::uint64_t bytes) noexcept;
void count_kernel() noexcept;
void count_kernel_from_ptx() noexcept;

}  // namespace isthmus::sim
