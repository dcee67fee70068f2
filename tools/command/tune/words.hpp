// SPDX-License-Identifier: Apache-2.0
// Ways, uses, sizes and times in words, and the choices of one use as runs of sizes.
#pragma once

#include "choices.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::tune {

// "pinned memory", "a copy at each hand-over"
std::string way_words(const Way& way);
// For legends and tables: "pinned", "host, unbound", "copied"
std::string way_label(const Way& way);
// "reads", "reads and writes"
std::string_view role_words(Role role);
// "once", "twice", "16 times"
std::string times_words(int passes);
// With three digits at most: "64 B", "1.5 KiB", "16 MiB"
std::string size_words(double bytes);
// With two digits: "740 KiB", "8.2 KiB"
std::string about(double bytes);
// "3.2 us", "1.05 s"
std::string time_words(double seconds);
// "the device reads, the host writes often, for latency"
std::string use_words(const UseCase& use);

// The role that the host has in the turns of this role of the device: it writes what the device reads, and reads what
// the device writes.
Role counterpart(Role device);
UseCase measured_use(Role device, Prefer prefer = Prefer::throughput);

// From this size on, this way.
struct Run {
    std::size_t from_bytes = 0;
    Way way;
    friend bool operator==(const Run&, const Run&) = default;
};
// The row of the choices that holds for this number of passes; empty: the use has none.
std::vector<Run> runs_of(const std::vector<ProfileChoice>& choices, const UseCase& use, int passes);

// The run in which a size lies; there must be a run.
const Run& run_at(const std::vector<Run>& runs, double bytes);

// The profile's choices, or where it has none those of the measurements.
std::vector<ProfileChoice> known_choices(const Measurements& measured);

}  // namespace isthmus::tools::tune
