// SPDX-License-Identifier: Apache-2.0
// Names and texts of the driver's codes, and the lookup of functions by name and version.
#include "call.hpp"
#include "proc_address.hpp"

#include <cstdint>

namespace isthmus::sim {
namespace {

struct Text {
    int code;
    const char* name;
    const char* words;
};

constexpr Text texts[] = {
#define ISTHMUS_SIM_TEXT(code, name, words) {code, #name, words},
#include "result_texts.def"
#undef ISTHMUS_SIM_TEXT
};

const Text* find_text(Result code) {
    for (const Text& text : texts) {
        if (text.code == code) return &text;
    }
    return nullptr;
}

constexpr std::uint64_t per_thread_default_stream = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

// status: 0 found, 1 unknown name, 2 the requested version is older than the function.
Result get_procedure(const char* symbol, void** function, int version, std::uint64_t flags, int* status) {
    if (!symbol || !function) return result::invalid_value;
    *function = nullptr;
    const Machine& played = machine();
    const int driver_version = played.found() ? played.record().facts.driver_version : 0;
    if (version > driver_version) return result::invalid_value;  // newer than the driver: observed
    const FoundProcedure found = find_procedure(symbol, version, (flags & per_thread_default_stream) != 0);
    *function = found.function;
    if (status) *status = found.function ? 0 : found.known ? 2 : 1;
    return result::ok;  // with a null function: observed
}

}  // namespace

const char* name_of_result(Result code) noexcept {
    const Text* const found = find_text(code);
    return found ? found->name : "an unknown code";
}

extern "C" {

Result cuGetErrorName(Result code, const char** text) {
    return call_without_driver(CallId::cuGetErrorName, [&]() -> Result {
        if (!text) return result::invalid_value;
        const Text* found = find_text(code);
        *text = found ? found->name : nullptr;
        return found ? result::ok : result::invalid_value;
    });
}

Result cuGetErrorString(Result code, const char** text) {
    return call_without_driver(CallId::cuGetErrorString, [&]() -> Result {
        if (!text) return result::invalid_value;
        const Text* found = find_text(code);
        *text = found ? found->words : nullptr;
        return found ? result::ok : result::invalid_value;
    });
}

Result cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags) {
    return call_without_driver(CallId::cuGetProcAddress,
                               [&] { return get_procedure(symbol, function, version, flags, nullptr); });
}

Result cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t flags, int* status) {
    return call_without_driver(CallId::cuGetProcAddress_v2,
                               [&] { return get_procedure(symbol, function, version, flags, status); });
}
}

}  // namespace isthmus::sim
