// SPDX-License-Identifier: Apache-2.0
// Defines, weakly, every function of functions.def: it notes the call and answers what was planned. Those that have to
// do more are defined in fake_driver.cpp.
#include "abi.hpp"

using namespace isthmus::cuda_abi;

extern "C" CUresult fake_answer(const char* function);

#define X(member, symbol, exported, version, need, parameters)                          \
    extern "C" [[gnu::weak, gnu::visibility("default")]] CUresult exported parameters { \
        return fake_answer(#exported);                                                  \
    }
#include "functions.def"
#undef X
