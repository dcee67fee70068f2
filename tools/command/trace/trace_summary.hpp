// SPDX-License-Identifier: Apache-2.0
// What a recorded trace says: bytes copied and why, waits by cause, allocations once the program was warm, refusals,
// and what to change. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::trace {

struct Copies {
    bool up = false;     // to the device's side
    std::string name;    // of the launch or the deed that needed it
    std::string memory;  // the kind of the buffer
    std::string reason;  // why the buffer has two sides: the sentence of explain()
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
};
struct Waits {
    std::string inside;  // the call that waits: "a view for reading"; empty: a wait asked for
    std::string waits_for;
    std::uint64_t count = 0;
    double total_us = 0;
    double longest_us = 0;
};
struct Allocations {
    std::string memory;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t made_new = 0;  // of these, not served by kept memory
};
struct Refusals {
    std::string name;
    std::string code;
    std::string error;
    std::uint64_t count = 0;
};

// Each list has the largest first: bytes, time, new allocations, count.
struct Summary {
    double duration_us = 0;
    double warm_after_us = 0;
    std::uint64_t events = 0;
    std::uint64_t dropped = 0;
    std::uint64_t launches = 0;
    std::vector<Copies> copies;
    std::vector<Waits> waits;
    std::vector<Allocations> allocations;  // that began after warm_after_us
    std::vector<Refusals> refusals;
    std::vector<std::string> changes;  // sentences: what to change

    std::uint64_t copied_bytes() const noexcept;
    double waited_us() const noexcept;
};

struct Read {
    std::optional<Summary> summary;
    std::string problem;  // why there is none
};
// `warm_after_ms`: when the program counts as warm; none: after a third of the trace.
Read summarise(std::string_view json, std::optional<double> warm_after_ms);

std::string as_text(const Summary& summary, std::size_t width, bool has_colour);
std::string as_json(const Summary& summary);

}  // namespace isthmus::tools::trace
