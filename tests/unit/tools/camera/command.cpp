// SPDX-License-Identifier: Apache-2.0
// Starts the built command, and returns its output.
#include "command.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace isthmus::tools::camera {
namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// Where the build is for another architecture, Meson names the program that runs its programs here.
std::vector<std::string> wrapper() {
    std::vector<std::string> words;
    std::istringstream text(variable("MESON_EXE_WRAPPER"));
    for (std::string word; text >> word;) words.push_back(word);
    return words;
}

}  // namespace

std::string content(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

RunningCommand::RunningCommand(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                               int input)
    : folder_(folder) {
    std::vector<std::string> words = wrapper();
    words.push_back(variable("ISTHMUS_COMMAND"));
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const std::string out = (folder / ".out").string(), err = (folder / ".err").string();
    child_ = ::fork();
    if (child_ != 0) return;
    const int out_file = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err_file = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(input, 0);
    ::dup2(out_file, 1);
    ::dup2(err_file, 2);
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGHUP, SIG_DFL);
    ::execvp(pointers[0], pointers.data());
    ::_exit(127);
}

RunningCommand::~RunningCommand() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
}

void RunningCommand::signal(int number) const {
    ::kill(child_, number);
}

Ended RunningCommand::wait() {
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content((folder_ / ".out").string()),
            content((folder_ / ".err").string())};
}

void CommandTest::SetUp() {
    if (variable("ISTHMUS_COMMAND").empty()) GTEST_SKIP() << "ISTHMUS_COMMAND does not name the isthmus command";
    std::string pattern = (std::filesystem::temp_directory_path() / "isthmus-run-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
}

void CommandTest::TearDown() {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
}

std::string CommandTest::file(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
}

std::vector<std::string> CommandTest::on_machine(std::vector<std::string> arguments) const {
    const std::string machine = variable("ISTHMUS_TEST_MACHINE");
    std::vector<std::string> words{"run"};
    if (machine == "cpu") {
        words.insert(words.end(), {"--device", "cpu"});
    } else if (!machine.empty()) {
        words.insert(words.end(), {"--machine", machine});
    }
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
}

Ended CommandTest::run(std::vector<std::string> arguments, const std::string& input) const {
    const std::string in = file(".in", input);
    const int input_file = ::open(in.c_str(), O_RDONLY | O_CLOEXEC);
    RunningCommand command(folder_, on_machine(std::move(arguments)), input_file);
    ::close(input_file);
    return command.wait();
}

std::vector<std::string> CommandTest::files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
        const std::string name = entry.path().filename().string();
        if (name != ".in" && name != ".out" && name != ".err") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace isthmus::tools::camera
