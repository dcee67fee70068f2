// SPDX-License-Identifier: Apache-2.0
// The machine of a subcommand, real or simulated, and the output files of the command.
#pragma once

#include "camera/atomic_file.hpp"
#include "camera/summary.hpp"
#include "command.hpp"

#include <isthmus/runtime.hpp>
#include <machines/record.hpp>

#include <optional>
#include <string>

namespace isthmus::tools {

// Selects the libcuda.so.1 of --machine for this process (ISTHMUS_CUDA_LIBRARY, ISTHMUS_SIM); call it before the
// runtime opens. Throws Failure for an unknown machine, a damaged record, or where the simulator is missing.
void play_machine(const CommandContext& context);
// Makes the checks of play_machine() and throws the same, but selects nothing: for commands that open the runtime in a
// child process.
void check_machine(const CommandContext& context);
// Makes the same checks, and returns what ISTHMUS_SIM has to be: a name, or a record's absolute path.
std::string machine_to_play(const CommandContext& context);

// The device that --device names, or the default one. Throws Failure where there is no such device; never replaces a
// GPU by the CPU.
Device& choose_device(Runtime& runtime, const CommandContext& context);

// What a report states about the device, and whether it is simulated: times then mean nothing.
camera::RanOn ran_on(const Runtime& runtime, const Device& device, const CommandContext& context);

// The record of the machine that the runtime has open, under this name; of a simulated machine (--machine) its own
// record. Throws Failure.
platform::machines::MachineRecord record_of_machine(Runtime& runtime, const CommandContext& context, std::string name);

// The simulator's libcuda.so.1: beside the build, beside the installation, or where it was installed. Nothing: not
// found.
std::optional<std::string> find_simulator();

// isthmus-bridge, beside this command. Nothing: not found.
std::optional<std::string> find_bridge();

// `run-tests` of the installed tests (-Dinstall_tests=true), beside this command or where they were installed. Nothing:
// not found.
std::optional<std::string> find_installed_tests();

// All bytes of a file or a pipe. Throws Failure where it cannot be read or has more than `most_bytes`.
std::string read_text(const std::string& path, std::size_t most_bytes);

// Writes a file of the run, which gets its name in commit(). Throws Failure.
void add_file(camera::OutputFiles& files, const std::string& path, const std::string& content);
// Gives the files their names; call it after print(). Throws Failure.
void commit(camera::OutputFiles& files);

// The record of --machine or --litmus, a name or a file, in a form that this process and its children can read
// repeatedly: a pipe is read to its end and kept in memory. Throws Failure.
std::string readable_record(const std::string& name_or_file);

}  // namespace isthmus::tools
