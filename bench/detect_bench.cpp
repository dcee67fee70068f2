// SPDX-License-Identifier: Apache-2.0
// Measures opening a runtime: all of it, the questions to the system, and deriving capabilities from a device's
// attributes. The first runtime of a process also starts the driver, so main() opens one before the measurements.
#include <isthmus/runtime.hpp>

#include <platform/detect.hpp>
#include <platform/os.hpp>

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

void machine_facts(benchmark::State& state) {
    for (auto _ : state) {
        isthmus::MachineFacts facts = isthmus::platform::os::machine_facts();
        benchmark::DoNotOptimize(facts);
    }
}
BENCHMARK(machine_facts);

// Opens and closes a runtime. With a driver: what the library adds to a driver that has started.
void open_runtime(benchmark::State& state, bool use_cuda) {
    isthmus::RuntimeOptions options;
    options.use_cuda = use_cuda;
    for (auto _ : state) {
        isthmus::Result<isthmus::Runtime> runtime = isthmus::Runtime::open(options);
        if (!runtime) state.SkipWithError("no runtime");
        benchmark::DoNotOptimize(runtime);
    }
}
BENCHMARK_CAPTURE(open_runtime, with_the_driver, true);
BENCHMARK_CAPTURE(open_runtime, cpu_device_alone, false);

// Opens a runtime and reads all attributes, which opening alone leaves out.
void open_runtime_and_ask_for_all_facts(benchmark::State& state) {
    for (auto _ : state) {
        isthmus::Runtime runtime = isthmus::Runtime::open().value();
        for (std::size_t at = 0; at < runtime.device_count(); ++at) {
            benchmark::DoNotOptimize(runtime.device(at).value()->facts().attributes.size());
        }
    }
}
BENCHMARK(open_runtime_and_ask_for_all_facts);

}  // namespace

int main(int argc, char** argv) {
    const isthmus::Result<isthmus::Runtime> first = isthmus::Runtime::open();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
    return first ? 0 : 1;
}
