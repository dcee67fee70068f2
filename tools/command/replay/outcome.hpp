// SPDX-License-Identifier: Apache-2.0
// What a recording does on one machine, and how it is said: text, one line, JSON. Pure.
#pragma once

#include "text/table_text.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::replay {

// Buffers that were asked for alike, and became alike.
struct Group {
    std::string made;       // name(Made)
    std::string kind;       // of the memory that the device uses
    std::string host_kind;  // of the host's side; "": the host has none
    std::string path;       // name(LaunchPath)
    std::string reason;     // BufferBase::explain()
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
};
struct Refusal {
    std::string call;  // "launch brighten"
    std::string code;
    std::string error;  // its id
    std::string message;
    std::string remedy;
    std::uint64_t count = 0;
    std::uint64_t recorded = 0;  // of these, refused where it was recorded, too
};
struct Copied {
    bool up = false;     // to the device's side
    std::string name;    // of the call that needed it
    std::string memory;  // the kind of the buffer
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
};
struct Waited {
    std::string inside;  // the call that waits
    std::string waits_for;
    std::uint64_t count = 0;
};

struct Outcome {
    std::string machine;  // the name that was asked for; "": this one
    std::string device;   // Device::name()
    bool simulated = true;
    std::string problem;  // why it could not be replayed at all; the rest is then empty
    std::uint64_t frames = 1;
    bool of_rings = false;  // the frames were published by rings; otherwise they are turns
    std::uint64_t launches = 0;
    std::vector<Group> groups;      // the most bytes first
    std::vector<Refusal> refusals;  // the most frequent first, as all that follow
    std::vector<Copied> copies;
    std::vector<Waited> waits;
    std::uint64_t attaches = 0;               // managed memory given to a stream
    std::uint64_t prefetches = 0;             // and moved ahead of its use
    std::uint64_t skipped = 0;                // calls that use memory which was refused
    std::uint64_t allowed = 0;                // calls that were refused where it was recorded, and work here
    std::optional<double> hand_over_seconds;  // by a profile: all turns of shared buffers
    std::string profile;                      // what the profile was measured on, or why it says nothing
    std::vector<std::string> notes;

    std::uint64_t refused() const noexcept;
    std::uint64_t copied() const noexcept;
    std::uint64_t copied_bytes() const noexcept;
    std::uint64_t waited() const noexcept;
    std::string kinds() const;  // "device (copied), pinned"
};
// Largest first, as the lists are kept.
void sort(Outcome& outcome);

// "orin: pinned; 3 refusals; 2 copies a frame (1.2 MB); 1 wait a frame"
std::string one_line(const Outcome& outcome);
// A count per frame: whole numbers without a fraction.
std::string per_frame(std::uint64_t count, std::uint64_t frames);

std::string as_text(const Outcome& outcome, const TextStyle& style);
// A row for each machine.
std::string as_table(const std::vector<Outcome>& outcomes, const TextStyle& style);
std::string as_json(const Outcome& outcome);
std::string as_json(const std::vector<Outcome>& outcomes);
// What as_json() wrote; nothing: something else.
std::optional<Outcome> read_outcome(std::string_view json);

}  // namespace isthmus::tools::replay
