// SPDX-License-Identifier: Apache-2.0
// Runs a program as if it had been started in place of this one: with its terminal, input and output, and its signals.
#pragma once

#include "simulation.hpp"

#include <string>
#include <vector>

namespace isthmus::tools::simulate {

// The file that a shell would run for this word: itself where it has a '/', else the first in PATH. Empty: none.
std::string found_program(const std::string& word);

// Runs the file with these words and waits for its end. Signals that another process sends here go on to the program
// (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH); those of the terminal reach both, and end
// only the program. It ends with this process. `output_to_stderr`: its standard output becomes the standard error. The
// process must have one thread. Throws Failure where the file cannot be run (exit code 126).
Ending play_program(const std::string& file, const std::vector<std::string>& words, bool output_to_stderr);

}  // namespace isthmus::tools::simulate
