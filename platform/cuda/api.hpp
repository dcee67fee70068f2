// Api: the driver's functions as members of an instance, filled from one opened library. Nothing is global.
#pragma once

#include "abi.hpp"

#include <isthmus/result.hpp>

#include <platform/os.hpp>

namespace isthmus::platform::cuda {

using namespace isthmus::cuda_abi;  // the driver's types

// An optional function that this driver lacks is null; required ones never are in a loaded Api. Read-only after
// loading: free to use from any thread.
struct Api {
#define X(member, symbol, exported, version, need, parameters) CUresult(*member) parameters = nullptr;
#include "functions.def"
#undef X
    int driver_version = 0;  // 13000 is CUDA 13.0
};

// cuDriverGetVersion, which answers before cuInit. Code::no_driver: the library is not a CUDA driver;
// Code::driver_mismatch: it is the toolkit's stub.
Result<int> ask_version(const os::SharedLibrary& library);

// Fills an Api, through cuGetProcAddress where there is one (it answers before cuInit, too). Code::driver_too_old: a
// required function is missing; the error names it and the version that has it.
Result<Api> load_api(const os::SharedLibrary& library, int driver_version);

}  // namespace isthmus::platform::cuda
