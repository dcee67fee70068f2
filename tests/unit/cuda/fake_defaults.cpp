// SPDX-License-Identifier: Apache-2.0
// Weak definitions of every function of functions.def: each records the call and gives the planned answer. Functions
// that do more are defined in fake_driver.cpp.
#include "abi.hpp"

using namespace isthmus::cuda_abi;

extern "C" CUresult fake_answer(const char* function);

#define X(member, symbol, exported, version, need, parameters)                          \
    extern "C" [[gnu::weak, gnu::visibility("default")]] CUresult exported parameters { \
        return fake_answer(#exported);                                                  \
    }
#include "functions.def"
#undef X
