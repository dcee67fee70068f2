// SPDX-License-Identifier: Apache-2.0
// The machine under test.
#include "conformance.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>

namespace conformance {

namespace {

std::optional<isthmus::Runtime>& opened() {
    static std::optional<isthmus::Runtime> instance;
    return instance;
}

}  // namespace

isthmus::Runtime& runtime() {
    static std::mutex mutex;  // threads of a scenario may make the first call
    const std::lock_guard lock(mutex);
    if (opened()) return *opened();
    isthmus::RuntimeOptions options;
    options.launch_mode = isthmus::LaunchMode::checked;
    // Runs the whole suite under the order checker: any report would be a mistake of a scenario, or of the checker.
    const char* order = std::getenv("ISTHMUS_TEST_ORDER");
    if (order != nullptr) {
        options.order_check =
            std::string_view(order) == "refuse" ? isthmus::OrderCheck::refuse : isthmus::OrderCheck::report;
        options.log = [](isthmus::Severity severity, std::string_view line) {
            if (line.substr(0, 11) == "not ordered") ADD_FAILURE() << line;
            (void)severity;
        };
    }
    isthmus::Runtime& made = opened().emplace(isthmus::Runtime::open(options).value());
    // Without this check, a machine without a driver would pass on its CPU.
    if (std::getenv("ISTHMUS_TEST_REAL") != nullptr && std::getenv("ISTHMUS_CUDA_LIBRARY") == nullptr) {
        EXPECT_TRUE(!made.default_device().is_cpu() && !made.machine().simulated)
            << "--setup real is for machines with a GPU of their own";
    }
    return made;
}

void close_runtime() {
    opened().reset();
}

long driver_calls() {
    return driver_calls(nullptr);
}

long driver_calls(const char* function) {
    // The simulator, once opened, is found by the driver's own library name.
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return -1;
    using Count = unsigned long long (*)(const char*);
    const auto count = reinterpret_cast<Count>(dlsym(library, "isthmus_sim_call_count"));
    const long calls = count == nullptr ? -1 : static_cast<long>(count(function));
    dlclose(library);
    return calls;
}

}  // namespace conformance
