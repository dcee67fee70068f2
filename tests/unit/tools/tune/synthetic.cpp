// SPDX-License-Identifier: Apache-2.0
#include "synthetic.hpp"

#include <algorithm>
#include <cmath>

namespace isthmus::tools::tune {

namespace {

constexpr double us = 1e-6;
constexpr double GB = 1e9;  // a second
constexpr Way pinned{MemoryKind::pinned, Locality::anywhere};
constexpr Way write_combined{MemoryKind::write_combined, Locality::anywhere};
constexpr Way managed{MemoryKind::managed, Locality::anywhere};
constexpr Way copied{MemoryKind::device, Locality::anywhere};
constexpr Way bound{MemoryKind::host, Locality::near_device};
constexpr Way unbound{MemoryKind::host, Locality::unbound};

constexpr Cost of(double latency, double rate) {
    return {latency, rate, 0, 0};
}

// Median with the order statistics that enclose it with 95 % confidence.
Sample sample_of(double truth, const Noise& noise, std::mt19937_64& random) {
    std::normal_distribution<double> error(0, 1);
    std::uniform_real_distribution<double> chance(0, 1);
    std::vector<double> times;
    for (int i = 0; i < noise.repeats; ++i) {
        double time = truth * std::max(0.5, 1 + noise.deviation * error(random));
        if (chance(random) < noise.outliers) time *= 2 + 8 * chance(random);
        times.push_back(time);
    }
    std::sort(times.begin(), times.end());
    const double count = static_cast<double>(times.size());
    const double reach = 0.98 * std::sqrt(count);  // 1.96 deviations of a binomial distribution with p = 1/2
    const auto at = [&](double place) { return times[static_cast<std::size_t>(std::clamp(place, 0.0, count - 1))]; };
    return {times[times.size() / 2], at(count / 2 - reach), at(count / 2 + reach), noise.repeats};
}

}  // namespace

double Cost::seconds(double bytes) const {
    if (rate == 0) return latency;
    const double quick = std::min(bytes, cached);
    return latency + (bytes - quick) / rate + (quick > 0 ? quick / cached_rate : 0);
}

const WayCosts& SyntheticMachine::costs(const Way& way) const {
    return *std::find_if(ways.begin(), ways.end(), [&](const WayCosts& costs) { return costs.way == way; });
}

bool SyntheticMachine::measures(const Way& way, Role device) const {
    return way.kind != MemoryKind::write_combined || device == Role::reads;
}

double SyntheticMachine::turn(const Way& way, Role device, double bytes, double passes) const {
    const WayCosts& of_way = costs(way);
    double seconds = hand_over;
    if (device != Role::writes) seconds += of_way.host_writes.seconds(bytes) + of_way.to_device.seconds(bytes);
    if (device != Role::reads) seconds += of_way.from_device.seconds(bytes) + of_way.host_reads.seconds(bytes);
    const Cost& pass = device == Role::reads    ? of_way.device_reads
                       : device == Role::writes ? of_way.device_writes
                                                : of_way.device_updates;
    return seconds + passes * pass.seconds(bytes);
}

double SyntheticMachine::host(const Way& way, Role role, double bytes) const {
    const WayCosts& of_way = costs(way);
    double seconds = 0;
    if (role != Role::reads) seconds += of_way.host_writes.seconds(bytes);
    if (role != Role::writes) seconds += of_way.host_reads.seconds(bytes);
    return seconds;
}

double SyntheticMachine::seconds(const Way& way, const UseCase& use, double bytes, double passes) const {
    double seconds = turn(way, use.device, bytes, passes);
    if (use.device != Role::writes) seconds -= host(way, Role::writes, bytes);
    if (use.device != Role::reads) seconds -= host(way, Role::reads, bytes);
    return seconds + (use.host_often ? often_host_passes : 1) * host(way, use.host, bytes);
}

SyntheticMachine orin_with_slow_pinned_reads() {
    // The CPU reads and writes either kind equally fast here, so that the border is 30 us / (n × (1/20 - 1/100) ns).
    const Cost cpu = of(0.2 * us, 12 * GB);
    return {"orin",
            {{pinned, cpu, cpu, {}, {}, of(6 * us, 20 * GB), of(6 * us, 60 * GB), of(6 * us, 15 * GB)},
             {managed, cpu, cpu, of(30 * us, 0), of(30 * us, 0), of(6 * us, 100 * GB), of(6 * us, 80 * GB),
              of(6 * us, 50 * GB)},
             {copied, cpu, cpu, of(40 * us, 35 * GB), of(40 * us, 35 * GB), of(6 * us, 102 * GB), of(6 * us, 82 * GB),
              of(6 * us, 51 * GB)}}};
}

SyntheticMachine grace_that_pays_after_four() {
    // Over the link 400 GB/s, in the GPU's memory 3600; migrating costs what four passes gain.
    const double gained = 1 / (400 * GB) - 1 / (3600 * GB);
    const Cost cpu = of(0.1 * us, 40 * GB);
    const Cost migration = of(0, 1 / (4 * gained));
    const Cost far = of(3 * us, 400 * GB), near = of(3 * us, 3600 * GB);
    return {"grace",
            {{bound, cpu, cpu, {}, {}, far, far, of(3 * us, 250 * GB)},
             {unbound, cpu, cpu, migration, migration, near, near, of(3 * us, 1800 * GB)},
             {copied, cpu, cpu, of(9 * us, 60 * GB), of(9 * us, 60 * GB), near, near, of(3 * us, 1800 * GB)}}};
}

SyntheticMachine discrete_gpu() {
    const Cost cpu = of(0.1 * us, 11 * GB);
    const Cost link = of(5 * us, 51.4 * GB), out = of(5 * us, 52.7 * GB), both = of(5 * us, 26 * GB);
    const Cost near = of(5 * us, 3900 * GB);
    return {"discrete",
            {{pinned, cpu, cpu, {}, {}, link, out, both},
             {write_combined, of(1 * us, 0.2 * GB), of(0.1 * us, 10 * GB), {}, {}, of(5 * us, 52 * GB), out, both},
             {managed, cpu, cpu, of(40 * us, 45 * GB), of(60 * us, 20 * GB), near, near, of(5 * us, 2000 * GB)},
             {copied, cpu, cpu, of(9 * us, 55 * GB), of(9 * us, 55 * GB), near, near, of(5 * us, 2000 * GB)}}};
}

SyntheticMachine discrete_gpu_with_a_cache() {
    SyntheticMachine machine = discrete_gpu();
    machine.name = "cached";
    for (WayCosts& costs : machine.ways) {
        if (costs.way != copied && costs.way != managed) continue;
        for (Cost* const pass : {&costs.device_reads, &costs.device_writes, &costs.device_updates}) {
            pass->cached = 50e6;
            pass->cached_rate = 2 * pass->rate;
        }
    }
    return machine;
}

SyntheticMachine all_equal() {
    const Cost cpu = of(0.1 * us, 20 * GB), pass = of(4 * us, 100 * GB);
    SyntheticMachine machine{"equal", {}};
    for (const Way& way : {bound, pinned, managed, copied}) {
        machine.ways.push_back({way, cpu, cpu, of(2 * us, 50 * GB), of(2 * us, 50 * GB), pass, pass, pass});
    }
    return machine;
}

SyntheticMachine write_combined_wins() {
    SyntheticMachine machine = discrete_gpu();
    machine.name = "write-combined";
    WayCosts& combined = machine.ways[1];
    combined.host_writes = of(0.1 * us, 20 * GB);
    combined.device_reads = of(3 * us, 4000 * GB);
    return machine;
}

SyntheticMachine in_place_always() {
    const Cost cpu = of(0.1 * us, 25 * GB), pass = of(4 * us, 200 * GB);
    return {"shared DRAM",
            {{copied, cpu, cpu, of(5 * us, 90 * GB), of(5 * us, 90 * GB), pass, pass, of(4 * us, 110 * GB)},
             {bound, cpu, cpu, {}, {}, pass, pass, of(4 * us, 110 * GB)}}};
}

std::vector<SyntheticMachine> synthetic_machines() {
    return {orin_with_slow_pinned_reads(),
            grace_that_pays_after_four(),
            discrete_gpu(),
            discrete_gpu_with_a_cache(),
            all_equal(),
            write_combined_wins(),
            in_place_always()};
}

double true_border(const SyntheticMachine& machine, const Way& before, const Way& after, const UseCase& use,
                   double passes) {
    double low = 1, high = 4e9;
    while (high > low * 1.0001) {
        const double middle = std::sqrt(low * high);
        const bool is_after =
            machine.seconds(after, use, middle, passes) < machine.seconds(before, use, middle, passes);
        (is_after ? high : low) = middle;
    }
    return high;
}

Measurements measured(const SyntheticMachine& machine, const Noise& noise) {
    std::mt19937_64 random(noise.seed);
    Measurements result;
    result.device_name = machine.name;
    for (const WayCosts& costs : machine.ways) {
        const Way& way = costs.way;
        result.ways.push_back(way);
        for (int power = 6; power <= 30; ++power) {
            const std::size_t bytes = std::size_t{1} << power;
            const double size = static_cast<double>(bytes);
            for (const Role role : all_roles) {
                for (const int passes : {1, 4, 16, 256}) {
                    const bool is_spot = passes == 4 || passes == 256;
                    if (!machine.measures(way, role) || (is_spot && power % 4 != 2)) continue;
                    result.turns.push_back(
                        {way, role, bytes, passes, sample_of(machine.turn(way, role, size, passes), noise, random)});
                }
                if (way.kind == MemoryKind::write_combined && role != Role::writes) continue;
                result.hosts.push_back({way, role, bytes, sample_of(machine.host(way, role, size), noise, random)});
            }
        }
    }
    return result;
}

}  // namespace isthmus::tools::tune
