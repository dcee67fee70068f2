// SPDX-License-Identifier: Apache-2.0
// The runtime and what it says of itself.
#include <isthmus/profile.hpp>
#include <isthmus/runtime.hpp>

#include "calls.hpp"
#include "handles.hpp"
#include "observe.hpp"

#include <chrono>
#include <cstddef>
#include <string>

using namespace isthmus;

namespace {

constexpr std::size_t first_options = offsetof(isthmus_runtime_options, profile);

// `callbacks` keeps those of an observer.
Result<RuntimeOptions> options_of(const c::Call& call, const isthmus_runtime_options* from,
                                  ObserverCallbacks& callbacks) {
    constexpr isthmus_runtime_options otherwise = ISTHMUS_RUNTIME_OPTIONS_INIT;
    ISTHMUS_TRY(const isthmus_runtime_options given, c::read_struct(call, "options", from, first_options, otherwise));
    RuntimeOptions options;
    options.use_cuda = given.use_cuda != 0;
    ISTHMUS_TRY(const LaunchMode mode, call.enumerator<LaunchMode>("options.launch_mode", given.launch_mode, 5));
    if (mode != LaunchMode::relaxed) options.launch_mode = mode;
    if (given.cuda_library != nullptr) options.cuda_library = given.cuda_library;
    if (given.wait_timeout_ns != 0) {
        if (given.wait_timeout_ns > INT64_MAX) {
            return call.refuse("options.wait_timeout_ns", "exceeds INT64_MAX", "pass nanoseconds");
        }
        options.wait_timeout = std::chrono::nanoseconds(static_cast<std::int64_t>(given.wait_timeout_ns));
    }
    if (given.profile != nullptr) options.profile = given.profile;
    if (given.cache_bytes != 0) options.cache_bytes = given.cache_bytes == UINT64_MAX ? 0 : given.cache_bytes;
    options.cpu_threads = given.cpu_threads;
    ISTHMUS_TRY(options.wait_policy, call.enumerator<WaitPolicy>("options.wait_policy", given.wait_policy, 3));
    ISTHMUS_TRY(options.order_check, call.enumerator<OrderCheck>("options.order_check", given.order_check, 3));
    options.oversubscribe_managed = given.oversubscribe_managed != 0;
    ISTHMUS_TRY(options.observer, c::callbacks_of(call, given.observer, given.trace, callbacks));
    if (given.log != nullptr) {
        options.log = [log = given.log, context = given.log_context](Severity severity, std::string_view line) {
            (void)c::answered(false, [&] {
                log(context, static_cast<int32_t>(severity), std::string(line).c_str());
                return true;
            });
        };
    }
    return options;
}

}  // namespace

isthmus_code isthmus_runtime_open(const isthmus_runtime_options* options, isthmus_runtime** runtime,
                                  isthmus_error** error) {
    return c::guarded("isthmus_runtime_open", error, [&](const c::Call& call) -> Result<void> {
        c::prepare_errors();
        ISTHMUS_TRY(call.needs({{"runtime", runtime}}));
        ObserverCallbacks callbacks;
        ISTHMUS_TRY(const RuntimeOptions asked, options_of(call, options, callbacks));
        ISTHMUS_TRY(Runtime opened, Runtime::open(asked));
        auto made = std::make_unique<isthmus_runtime>(std::move(opened));
        made->devices.reserve(made->cpp.device_count());
        for (std::size_t at = 0; at < made->cpp.device_count(); ++at) {
            ISTHMUS_TRY(Device * device, made->cpp.device(at));
            const auto& profile = device->capabilities().profile;
            made->devices.push_back(
                {device, made.get(), std::string(device->name()), profile ? profile->measured_on.c_str() : nullptr});
        }
        if (const auto& absent = made->cpp.cuda_absence()) {
            made->absence = absent->message();
            if (!absent->remedy().empty()) made->absence.append(". Try: ").append(absent->remedy());
        }
        *runtime = made.release();
        return {};
    });
}

void isthmus_runtime_free(isthmus_runtime* runtime) {
    c::Ref<isthmus_runtime>::drop(runtime);
}

size_t isthmus_runtime_device_count(const isthmus_runtime* runtime) {
    return runtime == nullptr ? 0 : runtime->devices.size();
}
isthmus_device* isthmus_runtime_device(isthmus_runtime* runtime, size_t index) {
    return runtime == nullptr || index >= runtime->devices.size() ? nullptr : &runtime->devices[index];
}
isthmus_device* isthmus_runtime_default_device(isthmus_runtime* runtime) {
    return runtime == nullptr ? nullptr : runtime->of(runtime->cpp.default_device());
}
isthmus_device* isthmus_runtime_cpu(isthmus_runtime* runtime) {
    return runtime == nullptr ? nullptr : runtime->of(runtime->cpp.cpu());
}
const char* isthmus_runtime_cuda_absence(const isthmus_runtime* runtime) {
    return runtime == nullptr || runtime->absence.empty() ? nullptr : runtime->absence.c_str();
}
int32_t isthmus_runtime_driver_version(const isthmus_runtime* runtime) {
    return runtime == nullptr ? 0 : runtime->cpp.machine().driver_version;
}
int32_t isthmus_runtime_is_simulated(const isthmus_runtime* runtime) {
    return runtime != nullptr && runtime->cpp.machine().simulated ? 1 : 0;
}
isthmus_code isthmus_runtime_synchronize(isthmus_runtime* runtime, int64_t wait_ns, isthmus_error** error) {
    return c::guarded("isthmus_runtime_synchronize", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"runtime", runtime}}));
        ISTHMUS_TRY(const Wait wait, call.wait(wait_ns));
        return runtime->cpp.synchronize(wait);
    });
}
