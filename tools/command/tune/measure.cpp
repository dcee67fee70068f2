// SPDX-License-Identifier: Apache-2.0
// First the turns, then the figures in the time that is kept for them.
#include "measure.hpp"

#include "common/console.hpp"
#include "conditions.hpp"
#include "figures.hpp"
#include "real_clock.hpp"
#include "sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace isthmus::tools::tune {
namespace {

constexpr std::size_t most_simulated_bytes = std::size_t{1} << 20;  // a simulated GPU's kernels run on this CPU

// The share of the budget that is kept: memory is given back, and the choices are searched for, which takes a second or
// two of one CPU.
double kept_for_the_end(double budget) {
    return std::clamp(2.0 / budget, 0.03, 0.15);
}

std::string today() {
    const std::time_t time = std::time(nullptr);
    std::tm date{};
    ::gmtime_r(&time, &date);
    return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

// An idle GPU and an idle CPU have low clocks: both are kept busy for a while.
void warm_up(RealClock& clock, const Way& way, std::size_t bytes, double seconds) {
    for (const double end = clock.now() + seconds; clock.now() < end;) {
        if (!clock.turn(way, Role::reads, bytes, 16)) return;
    }
}

DeviceProfile keys_of(const Runtime& runtime, const Device& device) {
    DeviceProfile profile;
    const MachineFacts& machine = runtime.machine();
    profile.device = device.facts().uuid;
    profile.driver_version = machine.driver_version;
    profile.kernel_release = machine.kernel_release;
    profile.simulated = machine.simulated && !device.is_cpu();
    profile.translation = device.capabilities().translation;
    profile.memory = device.capabilities().memory;
    profile.measured_on = today();
    return profile;
}

}  // namespace

double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Measurements measure(Runtime& runtime, Device& device, const MeasureRequest& request) {
    const double budget = request.effort.budget;
    Measurements found;
    found.device_name = device.name();
    found.cpu_name = runtime.machine().cpu_name;
    found.machine_record = request.machine_record;
    found.profile = keys_of(runtime, device);
    found.ways = ways_of(device, candidate_ways(device.capabilities()));
    if (found.ways.empty()) cannot("this device has no memory that host and device both use");

    ConditionsWatch watch(device, runtime.machine());
    const FreeMemory free = watch.free_memory();
    std::size_t largest = largest_size(free, found.ways);
    if (found.profile.simulated) largest = std::min(largest, most_simulated_bytes);
    const std::uint64_t least_free = free.shared ? free.host_bytes : std::min(free.host_bytes, free.device_bytes);
    RealClock clock(device, least_free / 4);
    warm_up(clock, found.ways.front(), std::min(largest, std::size_t{1} << 20), std::min(0.03 * budget, 1.0));
    watch.begin();

    double looked = 0;
    const auto tell = [&](double share, std::string_view what) {
        constexpr double between_looks = 0.25;
        if (const double now = clock.now(); now - looked >= between_looks) {
            looked = now;
            watch.look();
        }
        if (request.progress) request.progress(share, what);
    };
    const double usable = 1 - kept_for_the_end(budget);
    const double for_turns = usable - request.effort.for_figures;
    SamplerRequest turns{request.effort, found.ways, largest, request.began + budget * for_turns,
                         [&](double share, std::string_view what) { tell(share * for_turns, what); }};
    Sampled sampled = sample_turns(clock, turns);
    clock.clear();
    found.turns = std::move(sampled.turns);
    found.hosts = std::move(sampled.hosts);

    const double after_turns = (clock.now() - request.began) / budget;
    FigureRequest figures{
        found.ways, largest, request.began + budget * usable,
        [&](double share, std::string_view what) { tell(after_turns + share * (usable - after_turns), what); }};
    found.figures = latency_figures(found.turns);
    for (Figure& figure : bandwidth_figures(found.turns)) found.figures.push_back(std::move(figure));
    for (Figure& figure : measure_figures(runtime, device, figures)) found.figures.push_back(std::move(figure));
    found.conditions = watch.end(sampled.drift);
    for (std::string& note : sampled.notes) found.conditions.notes.push_back(std::move(note));
    found.seconds_taken = clock.now() - request.began;
    return found;
}

}  // namespace isthmus::tools::tune
