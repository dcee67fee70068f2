// SPDX-License-Identifier: Apache-2.0
// The record of the machine that a runtime has open, as its driver and its system answer.
#pragma once

#include <isthmus/runtime.hpp>
#include <machines/record.hpp>

#include <string>

namespace isthmus::tools {

// The name of a record in this file: "my-board" for "folder/my-board.json"; "recorded" where the file has none.
std::string record_name(const std::string& file);

// Every value is marked as observed, also those that a simulated machine answered; what was not asked is assumed. Where
// the runtime knows the results of tries (RuntimeOptions::export_findings), they are part of the record.
platform::machines::MachineRecord recorded_machine(Runtime& runtime, std::string name);

}  // namespace isthmus::tools
