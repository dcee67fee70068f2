// What it costs to turn a device's attributes into its capabilities.
#include <platform/detect.hpp>

#include <benchmark/benchmark.h>

namespace {

void detect(benchmark::State& state) {
    isthmus::MachineFacts machine;
    machine.driver_version = 13000;
    isthmus::DeviceFacts device;
    device.ordinal = 0;
    for (int id = 1; id <= 147; ++id) device.attributes.push_back({id, id % 2, 0});
    device.host_atomics = isthmus::HostAtomics{};
    for (auto _ : state) {
        isthmus::Capabilities capabilities = isthmus::platform::detect(machine, device);
        benchmark::DoNotOptimize(capabilities);
    }
}
BENCHMARK(detect);

}  // namespace

BENCHMARK_MAIN();
