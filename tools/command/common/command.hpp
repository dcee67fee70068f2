// SPDX-License-Identifier: Apache-2.0
// What a subcommand is given by the program around it: the global options, and the runtime that they ask for.
#pragma once

#include "exit_codes.hpp"

#include <isthmus/export_finding.hpp>
#include <isthmus/runtime.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools {

// Filled by main() before a subcommand's callback runs.
struct CommandContext {
    bool json = false;         // --json: one JSON document on stdout instead of text
    std::string asked_device;  // --device: a GPU's number, or cpu; empty: none is asked for
    // The index of that device within the runtime; nothing: none is asked for, or there is no such one, which
    // choose_device() refuses. Set when open_runtime() has returned.
    std::optional<std::size_t> device;
    std::string machine;                              // --machine, as given; empty: this machine
    std::string machine_record;                       // … as readable_record() gives it
    std::optional<std::uint64_t> host_reserve_bytes;  // --host-reserve
    std::string litmus;                               // --litmus: a record with findings; empty: none. Readable, too
    std::vector<ExportFinding> export_findings;       // of tries that this command made before it opens the runtime
    std::function<Result<Runtime>()> open_runtime;    // plays `machine` where it is given
    int exit_code = exit_ok;                          // what the subcommand's callback leaves here
};

}  // namespace isthmus::tools
