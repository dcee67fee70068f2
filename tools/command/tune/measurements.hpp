// SPDX-License-Identifier: Apache-2.0
// What `isthmus tune` measures on one device, as data: from here on choices, reports and comparisons are pure.
#pragma once

#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/profile.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace isthmus::tools::tune {

// A repeated measurement. Times are in seconds.
struct Sample {
    double median = 0;
    double low = 0;  // confidence interval of the median, 95 %
    double high = 0;
    int count = 0;  // repeats; 0: not measured
};

// One way to share a buffer that is lawful on this device: its kind, and where host memory lies.
struct Way {
    MemoryKind kind = MemoryKind::pinned;    // device: copied at each hand-over
    Locality locality = Locality::anywhere;  // near_device or unbound where pages may migrate; else anywhere
    friend bool operator==(const Way&, const Way&) = default;
};

// A turn: the host goes over all bytes once by its role, hands over, the device goes over all bytes `passes` times by
// its role, and the host waits for it (and where the device wrote, opens a view and reads all bytes).
// device reads: the host wrote. device writes: the host reads afterwards. reads_and_writes: both.
struct TurnSample {
    Way way;
    Role device = Role::reads;
    std::size_t bytes = 0;
    int passes = 1;
    Sample seconds;  // of the whole turn
};

// One pass of the host alone over memory that it just had its turn with.
struct HostSample {
    Way way;
    Role host = Role::reads;
    std::size_t bytes = 0;
    Sample seconds;
};

// A figure for people and for the HTML page; no choice reads it.
struct Figure {
    std::string subject;  // the section: "hand-over", "allocation", "first touch", "NUMA", "copies", "bandwidth"
    std::string name;     // "cuMemcpyAsync, pinned to device"
    std::string kind;     // name(MemoryKind), or empty
    std::size_t bytes = 0;
    Sample value;
    std::string unit;  // "s", "GB/s"
};

// What the machine's clocks and power were while it was measured. Empty or 0: not known.
struct Conditions {
    std::string power_mode;
    double gpu_clock_hz_begin = 0;
    double gpu_clock_hz_end = 0;
    double gpu_clock_hz_most = 0;
    bool throttled = false;  // the reason is in `notes`
    std::vector<std::string> notes;
};

struct Measurements {
    std::string device_name;
    std::string cpu_name;
    std::string machine_record;  // the machine's record, as platform/machines writes it
    DeviceProfile profile;       // keys and date; its choices are filled by choices_of()
    std::vector<Way> ways;       // lawful ones; ways[0] breaks ties
    std::vector<TurnSample> turns;
    std::vector<HostSample> hosts;
    std::vector<Figure> figures;
    Conditions conditions;
    double seconds_taken = 0;
};

}  // namespace isthmus::tools::tune
