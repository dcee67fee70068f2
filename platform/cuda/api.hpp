// SPDX-License-Identifier: Apache-2.0
// Api: the driver's functions as members of an instance, filled from one opened library. No global state.
#pragma once

#include "abi.hpp"

#include <isthmus/result.hpp>

#include <platform/os.hpp>

namespace isthmus::platform::cuda {

using namespace isthmus::cuda_abi;  // the driver's types

// Optional functions missing in this driver are null; required ones are always set in a loaded Api. Read-only after
// loading: usable from any thread.
struct Api {
#define X(member, symbol, exported, version, need, parameters) CUresult(*member) parameters = nullptr;
#include "functions.def"
#undef X
    int driver_version = 0;  // 13000 means CUDA 13.0
};

// cuDriverGetVersion; works before cuInit. Code::no_driver: the library is not a CUDA driver. Code::driver_mismatch: it
// is the toolkit's stub.
Result<int> ask_version(const os::SharedLibrary& library);

// Fills an Api, by cuGetProcAddress where it exists (it also works before cuInit). Code::driver_too_old: a required
// function is missing; the error names it and the version that has it.
Result<Api> load_api(const os::SharedLibrary& library, int driver_version);

}  // namespace isthmus::platform::cuda
