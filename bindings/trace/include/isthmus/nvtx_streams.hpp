// SPDX-License-Identifier: Apache-2.0
// name_in_nvtx: a stream's name beside its kernels in Nsight Systems. Header only; beside NVTX 3 it needs CUDA's
// cuda.h, which nvtx.hpp does not.
#pragma once

#include <isthmus/result.hpp>
#include <isthmus/stream.hpp>

#include <cuda.h>
#include <nvtx3/nvToolsExtCuda.h>

#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {

// Names the stream's CUstream, also an external one: without `name` "isthmus stream 5", by the number that traces and
// messages have (Stream::id). The tool copies the name. Thread-safe. On the CPU device, which has no CUstream, nothing
// happens. Errors: device_lost.
inline Result<void> name_in_nvtx(const Stream& stream, std::string name = {}) {
    Result<void*> handle = stream.native_handle();
    if (handle.code() == Code::unsupported) return {};
    if (!handle) return std::move(handle).error();
    if (name.empty()) name = "isthmus stream " + std::to_string(stream.id());
    nvtxNameCuStreamA(static_cast<CUstream>(*handle), name.c_str());
    return {};
}

}  // namespace v0
}  // namespace isthmus
