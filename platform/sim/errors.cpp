// SPDX-License-Identifier: Apache-2.0
// Names and texts of the driver's codes, and the lookup of functions by name and version.
#include "call.hpp"
#include "proc_address.hpp"

#include <driver_abi/results.def>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::sim {
namespace {

struct Text {
    int code;
    const char* name;
    std::string words;  // the driver writes sentences here; the simulator spells the name out
};

std::string spell_out(const char* name) {
    std::string words;
    const std::size_t prefix = std::strncmp(name, "CUDA_ERROR_", 11) == 0 ? 11 : 5;
    for (const char* letter = name + prefix; *letter; ++letter) {
        words += *letter == '_' ? ' ' : static_cast<char>(*letter >= 'A' && *letter <= 'Z' ? *letter + 32 : *letter);
    }
    return words;
}

const std::vector<Text>& texts() {
    static const auto* const all = new std::vector<Text>{
#define ISTHMUS_SIM_TEXT(ours, name, value) {value, #name, spell_out(#name)},
        ISTHMUS_CUDA_RESULTS(ISTHMUS_SIM_TEXT) ISTHMUS_CUDA_RESULTS_13(ISTHMUS_SIM_TEXT)
#undef ISTHMUS_SIM_TEXT
    };
    return *all;
}

const Text* find_text(Result code) {
    for (const Text& text : texts()) {
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
        *text = found ? found->words.c_str() : nullptr;
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
