// SPDX-License-Identifier: Apache-2.0
// What a module shows that holds a copy of the library. C, because two copies have nothing in common.
#pragma once

#include <cstddef>

extern "C" {
// Called after every public call of the library that may have called the driver, with the call's name.
using isthmus_test_after_call = void (*)(const char* call);
// Opens a runtime. 1: there is no GPU; −1: it failed. Steps are played in order, again and again; `text` tells of a
// failure (−1).
using isthmus_test_open_fn = int (*)(isthmus_test_after_call after_call, char* text, std::size_t size);
using isthmus_test_steps_fn = int (*)();
using isthmus_test_step_fn = int (*)(int step, char* text, std::size_t size);
// 1: the step captures, or waits for everything in the device's context. The driver answers such a wait with 900, and
// ends the captures that are open in the context, also those of another copy, which this one does not know of.
using isthmus_test_alone_fn = int (*)(int step);
using isthmus_test_close_fn = int (*)();
}
