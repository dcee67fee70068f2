// SPDX-License-Identifier: Apache-2.0
// The few functions of libnvidia-ml.so.1 that are asked; names, numbers and units as NVIDIA's "NVML API Reference
// Guide" gives them. Their interface is stable within the library's major version.
#include "nvml.hpp"

#include <dlfcn.h>

#include <utility>

namespace isthmus::tools::tune {
namespace {

constexpr int success = 0;           // NVML_SUCCESS
constexpr unsigned clock_of_sm = 1;  // NVML_CLOCK_SM

struct Reason {
    unsigned long long bit;
    const char* words;
};
// nvmlClocksThrottleReason…
constexpr Reason reasons[] = {{0x4, "the power limit"},
                              {0x8, "a slowdown by hardware"},
                              {0x20, "heat, by software"},
                              {0x40, "heat, by hardware"},
                              {0x80, "a power brake outside"}};

}  // namespace

struct Nvml::Calls {
    void* library = nullptr;
    void* device = nullptr;  // nvmlDevice_t
    int (*shutdown)() = nullptr;
    int (*clock)(void*, unsigned, unsigned*) = nullptr;       // MHz
    int (*most_clock)(void*, unsigned, unsigned*) = nullptr;  // MHz
    int (*power_limit)(void*, unsigned*) = nullptr;           // mW
    int (*memory)(void*, unsigned long long*) = nullptr;      // of an nvmlMemory_t, which is three of them
    int (*throttle)(void*, unsigned long long*) = nullptr;

    template <class Call>
    void find(Call& call, const char* name) const {
        call = reinterpret_cast<Call>(::dlsym(library, name));
    }
    ~Calls() {
        if (shutdown != nullptr) shutdown();
        if (library != nullptr) ::dlclose(library);
    }
};

Nvml::Nvml(std::unique_ptr<Calls> calls) : calls_(std::move(calls)) {}
Nvml::~Nvml() = default;

std::unique_ptr<Nvml> Nvml::open(const Uuid& device) {
    if (!device) return nullptr;
    auto calls = std::make_unique<Calls>();
    calls->library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (calls->library == nullptr) return nullptr;
    int (*init)() = nullptr;
    int (*by_uuid)(const char*, void**) = nullptr;
    calls->find(init, "nvmlInit_v2");
    calls->find(by_uuid, "nvmlDeviceGetHandleByUUID");
    if (init == nullptr || by_uuid == nullptr || init() != success) return nullptr;
    calls->find(calls->shutdown, "nvmlShutdown");
    if (by_uuid(device.text().c_str(), &calls->device) != success) return nullptr;
    calls->find(calls->clock, "nvmlDeviceGetClockInfo");
    calls->find(calls->most_clock, "nvmlDeviceGetMaxClockInfo");
    calls->find(calls->power_limit, "nvmlDeviceGetEnforcedPowerLimit");
    calls->find(calls->memory, "nvmlDeviceGetMemoryInfo");
    calls->find(calls->throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
    return std::unique_ptr<Nvml>(new Nvml(std::move(calls)));
}

std::optional<double> Nvml::clock_hz() const {
    unsigned mhz = 0;
    if (calls_->clock == nullptr || calls_->clock(calls_->device, clock_of_sm, &mhz) != success) return std::nullopt;
    return mhz * 1e6;
}

std::optional<double> Nvml::most_clock_hz() const {
    unsigned mhz = 0;
    const auto call = calls_->most_clock;
    if (call == nullptr || call(calls_->device, clock_of_sm, &mhz) != success) return std::nullopt;
    return mhz * 1e6;
}

std::optional<double> Nvml::power_limit_watts() const {
    unsigned milliwatts = 0;
    if (calls_->power_limit == nullptr || calls_->power_limit(calls_->device, &milliwatts) != success) {
        return std::nullopt;
    }
    return milliwatts / 1e3;
}

std::optional<std::uint64_t> Nvml::free_memory_bytes() const {
    unsigned long long total_free_used[3] = {};
    if (calls_->memory == nullptr || calls_->memory(calls_->device, total_free_used) != success) return std::nullopt;
    return total_free_used[1];
}

std::vector<std::string> Nvml::throttle_reasons() const {
    unsigned long long bits = 0;
    std::vector<std::string> words;
    if (calls_->throttle == nullptr || calls_->throttle(calls_->device, &bits) != success) return words;
    for (const Reason& reason : reasons) {
        if ((bits & reason.bit) != 0) words.emplace_back(reason.words);
    }
    return words;
}

}  // namespace isthmus::tools::tune
