// SPDX-License-Identifier: Apache-2.0
// C interface of a module that links its own copy of the library. C, because two copies share no C++ types.
#pragma once

#include <cstddef>

extern "C" {
// Called after every public call of the library that may have called the driver, with the call's name.
using isthmus_test_after_call = void (*)(const char* call);
// Opens a runtime. 1: there is no GPU; −1: opening failed. The steps are played in order, repeatedly; `text` describes
// a failure (−1).
using isthmus_test_open_fn = int (*)(isthmus_test_after_call after_call, char* text, std::size_t size);
using isthmus_test_steps_fn = int (*)();
using isthmus_test_step_fn = int (*)(int step, char* text, std::size_t size);
// 1: the step captures, or synchronizes the device's context. The driver answers such a synchronization with 900 and
// ends every open capture of the context, also those of another copy of the library, unknown to this one.
using isthmus_test_alone_fn = int (*)(int step);
using isthmus_test_close_fn = int (*)();
}
