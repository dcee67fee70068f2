// SPDX-License-Identifier: Apache-2.0
// Machines whose true costs are known: what `isthmus tune` finds is compared with them.
#pragma once

#include "tune/cost_model.hpp"
#include "tune/measurements.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::tune {

// A latency, and the time of a byte up to `cached` bytes and beyond.
struct Cost {
    double latency = 0;  // seconds
    double rate = 0;     // bytes per second; 0: nothing but the latency
    double cached = 0;
    double cached_rate = 0;

    double seconds(double bytes) const;
};

// The true costs of one way to share memory.
struct WayCosts {
    Way way;
    Cost host_reads;
    Cost host_writes;
    Cost to_device;     // once in a turn whose contents the host wrote: an attachment, a copy, a migration
    Cost from_device;   // once in a turn whose contents the device wrote
    Cost device_reads;  // one pass, the launch included
    Cost device_writes;
    Cost device_updates;
};

struct SyntheticMachine {
    std::string name;
    std::vector<WayCosts> ways;
    double hand_over = 4e-6;

    double turn(const Way& way, Role device, double bytes, double passes) const;
    double host(const Way& way, Role role, double bytes) const;
    // The true time for a use, which may have another role of the host than the turn that is measured.
    double seconds(const Way& way, const UseCase& use, double bytes, double passes) const;
    bool measures(const Way& way, Role device) const;

private:
    const WayCosts& costs(const Way& way) const;
};

SyntheticMachine orin_with_slow_pinned_reads();  // 5 times slower than managed memory, which costs an attachment
SyntheticMachine grace_that_pays_after_four();   // passes: then a migration is cheaper than access over the link
SyntheticMachine discrete_gpu();                 // like an H200
SyntheticMachine discrete_gpu_with_a_cache();    // device memory is faster up to 50 MB
SyntheticMachine all_equal();
SyntheticMachine write_combined_wins();  // where the host never reads
SyntheticMachine in_place_always();      // one DRAM; a copy never pays
std::vector<SyntheticMachine> synthetic_machines();

// Where device reads and host writes: the size from which `after` is faster than `before`.
double true_border(const SyntheticMachine& machine, const Way& before, const Way& after, const UseCase& use,
                   double passes);

// How measuring goes wrong: each repeat has relative noise (the standard deviation), and some take far longer.
struct Noise {
    double deviation = 0;
    double outliers = 0;  // share of the repeats
    int repeats = 1;
    std::uint64_t seed = 1;
};
// Powers of two from 64 bytes to 1 GiB, 1 and 16 passes; at every fourth size 4 and 256 too.
Measurements measured(const SyntheticMachine& machine, const Noise& noise = {});

}  // namespace isthmus::tools::tune
