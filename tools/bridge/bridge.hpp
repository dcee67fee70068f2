// SPDX-License-Identifier: Apache-2.0
// isthmus-bridge: frames of `isthmus share` to and from other machines, in processes of its own.
#pragma once

#include <isthmus/ucx.hpp>

#include <cstdint>
#include <string>

namespace isthmus::tools::bridge {

struct BridgeOptions {
    ucx::Address address{};  // to listen on, or to connect to
    ucx::ConnectionOptions connection{};
    std::string at;             // the directory of the ring's socket
    bool with_stdin = false;    // end when standard input ends
    std::uint32_t viewers = 0;  // send: at most so many; receive: begin when so many have connected
    double connect_s = 5;       // receive: how long to try to connect, and to connect again
    double viewer_deadline_s = 1;
};

// Whether standard input has ended, where the options ask for it.
bool stdin_ended(const BridgeOptions& options);

// Each returns the exit code. Failures are said on standard error.
int send(const BridgeOptions& options);
int receive(const BridgeOptions& options);

}  // namespace isthmus::tools::bridge
