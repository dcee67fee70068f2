// What a subcommand is given by the program around it: the global options, and the runtime that they ask for.
#pragma once

#include <isthmus/runtime.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace isthmus::tools {

// Exit codes of every subcommand; beside them 128 + signal for a run that a signal ended.
inline constexpr int exit_ok = 0;
inline constexpr int exit_failed = 1;     // the device or the system failed at what was asked rightly
inline constexpr int exit_bad_usage = 2;  // options, input or output that cannot be used

// Filled by main() before a subcommand's callback runs.
struct CommandContext {
    bool json = false;                              // --json: one JSON document on stdout instead of text
    std::optional<std::size_t> device;              // --device: index within the runtime; nothing: the default device
    std::string machine;                            // --machine, as given; empty: this machine
    std::function<Result<Runtime>()> open_runtime;  // plays `machine` where it is given
    int exit_code = exit_ok;                        // what the subcommand's callback leaves here
};

}  // namespace isthmus::tools
