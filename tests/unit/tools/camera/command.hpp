// SPDX-License-Identifier: Apache-2.0
// Runs the built command as a user does, in a folder of its own, on the machine that the test names.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <sys/types.h>
#include <vector>

namespace isthmus::tools::camera {

struct Ended {
    int code = -1;  // 128 + signal where a signal ended it
    std::string out;
    std::string err;
};

// A running command. Its standard output and error go to files.
class RunningCommand {
public:
    RunningCommand(const std::filesystem::path& folder, const std::vector<std::string>& arguments, int input);
    ~RunningCommand();
    RunningCommand(const RunningCommand&) = delete;
    RunningCommand& operator=(const RunningCommand&) = delete;
    void signal(int number) const;
    Ended wait();

private:
    std::filesystem::path folder_;
    pid_t child_ = -1;
};

// ISTHMUS_COMMAND is the program; ISTHMUS_TEST_MACHINE is the machine: "cpu", the name of a simulated machine, or,
// where it is empty, the devices of this machine.
class CommandTest : public ::testing::Test {
protected:
    void SetUp() override;
    void TearDown() override;
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    std::string file(const std::string& name, const std::string& content) const;  // writes it and returns its path
    // `isthmus run` with these arguments, on the test's machine. `input` becomes standard input.
    Ended run(std::vector<std::string> arguments, const std::string& input = {}) const;
    std::vector<std::string> on_machine(std::vector<std::string> arguments) const;
    std::vector<std::string> files() const;  // in the folder, except those of the test
    std::filesystem::path folder_;
};

std::string content(const std::string& path);

}  // namespace isthmus::tools::camera
