// SPDX-License-Identifier: Apache-2.0
// The context that main() passes to a subcommand: the global options, and a function that opens the runtime.
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
    std::string asked_device;  // --device: a GPU's number, or cpu; empty: not given
    // The index of that device within the runtime, set when open_runtime() has returned. Nothing: no device was asked
    // for, or it does not exist; choose_device() then refuses it.
    std::optional<std::size_t> device;
    std::string machine;                              // --machine, as given; empty: this machine
    std::string machine_record;                       // the machine's record, from readable_record()
    std::optional<std::uint64_t> host_reserve_bytes;  // --host-reserve
    std::vector<std::string> program;                 // of `simulate`: the words behind --
    std::uint32_t cpu_threads = 0;                    // of `run`, --cpu-threads: see RuntimeOptions
    std::string litmus;  // --litmus: a record with findings, from readable_record(); empty: none
    std::vector<ExportFinding> export_findings;  // from tries that this command made before opening the runtime
    std::function<void(RuntimeOptions&)> adjust_options;  // of a subcommand, before open_runtime(); may be empty
    std::function<Result<Runtime>()> open_runtime;        // simulates `machine` where it is given
    int exit_code = exit_ok;                              // set by the subcommand's callback
};

}  // namespace isthmus::tools
