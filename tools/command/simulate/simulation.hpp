// SPDX-License-Identifier: Apache-2.0
// What a program did on a simulated machine: how it ended, and the simulator's counts. Pure.
#pragma once

#include "text/table_text.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::simulate {

struct Ending {
    int status = 0;       // the exit status, where `signal` is 0
    int signal = 0;       // that ended the program
    std::string problem;  // it did not run, or not to its end; empty: it did
    // As shells give it: the status, or 128 and the signal; with a problem 1.
    int exit_code() const noexcept;
    std::string text() const;  // "exit code 3"
};

struct Counted {
    std::string name;
    std::uint64_t count = 0;
};

struct Answer {
    std::string call;
    int code = 0;  // a CUresult
    std::uint64_t count = 0;
};

struct Copied {
    std::string_view from, to;  // host, device, managed
    std::uint64_t count = 0, bytes = 0;
};

struct Fault {
    int code = 0;  // sticky
    std::uint64_t count = 0;
};

// Counts of all processes of the program.
struct Counts {
    std::uint64_t processes = 0;  // that called the driver
    std::uint64_t kernels = 0, kernels_from_ptx = 0, fills = 0, filled_bytes = 0;
    std::vector<Counted> calls;            // most calls first
    std::vector<Answer> refusals;          // codes that calls answered; without 600 (not ready)
    std::vector<Copied> copies;            // that ran
    std::vector<Fault> faults;             // devices that were lost, by their sticky code
    std::vector<Counted> caught;           // messages about the program, with the first one's values
    std::vector<Counted> unsupported;      // functions and uses that the simulator lacks
    std::uint64_t dropped = 0;             // for which the file had no place
    bool asks_for_private_tables = false;  // cuGetExportTable: the CUDA runtime library does

    std::uint64_t all_calls() const noexcept;
    std::uint64_t copied_bytes() const noexcept;
    std::uint64_t refused() const noexcept;
};

struct Simulation {
    std::string machine;
    std::vector<std::string> program;
    Ending ending;
    Counts counts;
    std::string last_line;  // of what the program printed, where that was kept
};

// The bytes of the file that ISTHMUS_SIM_STATISTICS named. Empty: no process called the driver. Nothing: the file is
// another simulator's, or damaged.
std::optional<Counts> read_counts(std::string_view bytes);

// A message about the simulator, not about the program.
bool is_about_the_simulator(std::string_view message) noexcept;

// The message with "0x…" for each address, which differs from run to run.
std::string without_addresses(std::string_view message);

// Lines that explain the whole: no call, or the CUDA runtime library. Empty: nothing to explain.
std::vector<std::string> notes_of(const Counts& counts);

std::string as_text(const Simulation& simulation, const TextStyle& style);
std::string as_matrix(const std::vector<Simulation>& simulations, const TextStyle& style);
std::string as_json(const Simulation& simulation);
std::string as_json(const std::vector<Simulation>& simulations);

}  // namespace isthmus::tools::simulate
