// SPDX-License-Identifier: Apache-2.0
// The machine that a subcommand runs on: this one, or a simulated one; and files that are whole or not there.
#pragma once

#include "camera/atomic_file.hpp"
#include "camera/summary.hpp"
#include "command.hpp"

#include <isthmus/runtime.hpp>
#include <machines/record.hpp>

#include <optional>
#include <string>

namespace isthmus::tools {

// Makes --machine what libcuda.so.1 is in this process (ISTHMUS_CUDA_LIBRARY, ISTHMUS_SIM); before the runtime opens.
// Throws Failure for an unknown machine, a damaged record, or where the simulator is missing.
void play_machine(const CommandContext& context);
// … and nothing but what it throws: for commands that open the runtime in a child process.
void check_machine(const CommandContext& context);

// The device that --device names, or the default one. Throws Failure where there is no such device; the CPU is never
// taken for a GPU.
Device& choose_device(Runtime& runtime, const CommandContext& context);

// What a report says of the device, and whether it is a simulation: times then mean nothing.
camera::RanOn ran_on(const Runtime& runtime, const Device& device, const CommandContext& context);

// The record of the machine that the runtime has open, named like this; of a played one (--machine) the record that is
// played. Throws Failure.
platform::machines::MachineRecord record_of_machine(Runtime& runtime, const CommandContext& context, std::string name);

// The stand-in libcuda.so.1: beside the build, beside the installation, or where it was installed. Nothing: not found.
std::optional<std::string> find_simulator();

// Writes a file of the run, which has no name until commit(). Throws Failure.
void add_file(camera::OutputFiles& files, const std::string& path, const std::string& content);
// Gives the files their names: behind print(). Throws Failure.
void commit(camera::OutputFiles& files);

// A record's name or file, as --machine and --litmus name it, in a form that can be read again and again, also by
// children: a pipe is read to its end and kept in memory. Throws Failure.
std::string readable_record(const std::string& name_or_file);

}  // namespace isthmus::tools
