// SPDX-License-Identifier: Apache-2.0
// The functions that Nvml asks, with the numbers of "NVML API Reference Guide": NVML_CLOCK_SM is 1.
#include "fake_nvml.hpp"

#include <cstring>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

FAKE_EXPORT FakeNvml* fake_nvml() {
    static FakeNvml gpu;
    return &gpu;
}

namespace {
constexpr int not_found = 6, invalid_argument = 2;

template <class T>
int answered(const void* device, T* to, T value) {
    if (device != fake_nvml()) return invalid_argument;
    *to = value;
    return fake_nvml()->answer;
}
}  // namespace

FAKE_EXPORT int nvmlInit_v2() {
    return 0;
}
FAKE_EXPORT int nvmlShutdown() {
    return 0;
}
FAKE_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
    *device = fake_nvml();
    return std::strcmp(uuid, fake_nvml()->uuid) == 0 ? 0 : not_found;
}
FAKE_EXPORT int nvmlDeviceGetClockInfo(void* device, unsigned type, unsigned* mhz) {
    return type == 1 ? answered(device, mhz, fake_nvml()->clock_mhz) : invalid_argument;
}
FAKE_EXPORT int nvmlDeviceGetMaxClockInfo(void* device, unsigned type, unsigned* mhz) {
    return type == 1 ? answered(device, mhz, fake_nvml()->most_clock_mhz) : invalid_argument;
}
FAKE_EXPORT int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
    return answered(device, milliwatts, fake_nvml()->power_limit_mw);
}
FAKE_EXPORT int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* total_free_used) {
    if (device != fake_nvml()) return invalid_argument;
    total_free_used[0] = 80;
    total_free_used[1] = 70;
    total_free_used[2] = 10;
    return fake_nvml()->answer;
}
FAKE_EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* bits) {
    return answered(device, bits, fake_nvml()->throttle);
}
