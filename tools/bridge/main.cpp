// SPDX-License-Identifier: Apache-2.0
// The options of isthmus-bridge. `isthmus share --listen` and `isthmus view --from` start it.
#include "bridge.hpp"

#include "common/console.hpp"
#include "common/exit_codes.hpp"
#include "common/number_options.hpp"
#include "common/process.hpp"

#include <isthmus/version.hpp>

#include <CLI/CLI.hpp>

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace isthmus::tools::bridge {
namespace {

struct Words {
    std::string address, key;
    double silence_s = 5;
    BridgeOptions options{};
};

void add_options(CLI::App& command, Words& words) {
    command.add_option("--at", words.options.at, "directory of the local socket")->type_name("DIRECTORY")->required();
    command.add_option("--key", words.key, "file with the key of both ends; without one only loopback is accepted")
        ->type_name("FILE");
    add_number(command, "--silence", words.silence_s, {0.1, 3600.0}, "seconds until a silent other end counts as lost")
        ->capture_default_str();
    command.add_flag("--until-stdin-ends", words.options.with_stdin, "end when standard input ends");
}

BridgeOptions options_of(const Words& words) {
    BridgeOptions options = words.options;
    Result<ucx::Address> address = ucx::Address::parse(words.address);
    if (!address) bad_input("bridge: " + address.error().text());
    options.address = std::move(address).value();
    options.connection.silence = std::chrono::nanoseconds(static_cast<std::int64_t>(words.silence_s * 1e9));
    if (!words.key.empty()) {
        Result<ucx::Key> key = ucx::Key::load(words.key);
        if (!key) bad_input("bridge: " + key.error().text());
        options.connection.key = *key;
    }
    return options;
}

int run(int argc, char** argv) {
    CLI::App app("Sends the frames of `isthmus share` to other machines over UCX, and receives them there.",
                 "isthmus-bridge");
    app.set_version_flag("--version", "isthmus-bridge " ISTHMUS_VERSION_STRING);
    app.require_subcommand(1);
    Words sends, receives;
    int code = exit_ok;
    CLI::App* const send_command = app.add_subcommand("send", "Send the frames of the ring in a directory");
    send_command->add_option("--listen", sends.address, "where remote viewers connect; port 0: one that is free")
        ->type_name("HOST:PORT")
        ->required();
    sends.options.viewers = 16;
    add_number(*send_command, "--viewers", sends.options.viewers, {1, 64}, "remote viewers at most")
        ->capture_default_str();
    add_options(*send_command, sends);
    send_command->callback([&] { code = send(options_of(sends)); });
    CLI::App* const receive_command = app.add_subcommand("receive", "Receive frames, for local viewers at a directory");
    receive_command->add_option("--from", receives.address, "the sender's address")->type_name("HOST:PORT")->required();
    receives.options.viewers = 1;
    add_number(*receive_command, "--viewers", receives.options.viewers, {0, 64},
               "begin when this many local viewers have connected")
        ->capture_default_str();
    add_number(*receive_command, "--connect-deadline", receives.options.connect_s, {0.0, 3600.0},
               "seconds to wait for the sender, also after a loss")
        ->capture_default_str();
    add_number(*receive_command, "--viewer-deadline", receives.options.viewer_deadline_s, {0.001, 3600.0},
               "seconds that a local viewer may delay others without finishing a frame, where the sender waits")
        ->capture_default_str();
    add_options(*receive_command, receives);
    receive_command->callback([&] { code = receive(options_of(receives)); });
    try {
        app.parse(argc, argv);
        return code;
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        complain(std::string(error.what()) + " (see isthmus-bridge --help)");
        return exit_bad_usage;
    } catch (const Failure& failure) {
        complain(failure.what());
        return failure.exit_code();
    } catch (const std::exception& error) {
        complain(error.what());
        return exit_failed;
    }
}

// UCX reads these when it is loaded, which is before main(). Its signal handlers and its file system for watching it
// would be in the way; its log would be on standard output.
void prepare_ucx(char** argv) {
    if (std::getenv("ISTHMUS_BRIDGE_PREPARED") != nullptr) return;
    ::setenv("ISTHMUS_BRIDGE_PREPARED", "1", 1);
    ::setenv("UCX_HANDLE_ERRORS", "none", 0);
    ::setenv("UCX_LOG_LEVEL", "fatal", 0);
    ::setenv("UCX_VFS_ENABLE", "n", 0);
    // With error handling UCX sends frames over TCP in fragments of this size, otherwise 64 KiB (1.13) or 8 KiB (1.22),
    // and copies each where it arrives (bench/network_bench.py). The library sets them where UCX lets it.
    ::setenv("UCX_TCP_RX_SEG_SIZE", "256k", 0);
    ::setenv("UCX_TCP_TX_SEG_SIZE", "256k", 0);
    ::execv("/proc/self/exe", argv);
}

}  // namespace

bool stdin_ended(const BridgeOptions& options) {
    if (!options.with_stdin) return false;
    pollfd wait{STDIN_FILENO, POLLIN, 0};
    if (::poll(&wait, 1, 0) <= 0) return false;
    char byte = 0;
    return ::read(STDIN_FILENO, &byte, 1) <= 0;
}

}  // namespace isthmus::tools::bridge

int main(int argc, char** argv) {
    isthmus::tools::prepare_process();
    // Its process group is none of the terminal's foreground: with `stty tostop` a message would stop it.
    ::signal(SIGTTOU, SIG_IGN);
    isthmus::tools::bridge::prepare_ucx(argv);
    return isthmus::tools::bridge::run(argc, argv);
}
