// SPDX-License-Identifier: Apache-2.0
// A weak function for every name of the driver: each function that the simulator does not define refuses with a
// message, so that no symbol is missing. Also the table behind cuGetProcAddress. It includes no declaration of the
// driver's functions: the linker replaces these functions by the strong definitions.
#include "proc_address.hpp"
#include "statistics.hpp"

#include <cstdio>
#include <cstring>

namespace isthmus::sim {
namespace {
int refuse(const char* symbol) {
    count_refused(symbol);
    std::fprintf(stderr, "isthmus simulator: %s is not modelled; answering CUDA_ERROR_NOT_SUPPORTED (801)\n", symbol);
    if (std::strcmp(symbol, "cuGetExportTable") == 0) {
        std::fputs(
            "isthmus simulator: the CUDA runtime library (libcudart, kernel<<<...>>>) calls it and cannot run on a "
            "simulated machine; the driver API (cuLaunchKernel) can\n",
            stderr);
    }
    return 801;
}
}  // namespace

extern "C" {
#define ISTHMUS_SIM_NAME(symbol, base, version, per_thread)     \
    __attribute__((weak, visibility("default"))) int symbol() { \
        return refuse(#symbol);                                 \
    }
#include "refused_names.def"
#undef ISTHMUS_SIM_NAME
}

namespace {
struct Name {
    const char* base;
    int version;
    bool per_thread;
    int (*function)();
};
constexpr Name names[] = {
#define ISTHMUS_SIM_NAME(symbol, base, version, per_thread) {#base, version, per_thread != 0, &symbol},
#include "refused_names.def"
#undef ISTHMUS_SIM_NAME
};
}  // namespace

FoundProcedure find_procedure(const char* base, int version, bool per_thread) noexcept {
    FoundProcedure found;
    const Name* best = nullptr;
    for (const Name& candidate : names) {
        if (std::strcmp(candidate.base, base) != 0 || (candidate.per_thread && !per_thread)) continue;
        found.known = true;
        if (candidate.version > version) continue;
        const bool better =
            !best || candidate.version > best->version || (candidate.version == best->version && candidate.per_thread);
        if (better) best = &candidate;
    }
    if (best) found.function = reinterpret_cast<void*>(best->function);
    return found;
}

}  // namespace isthmus::sim
