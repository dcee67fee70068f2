// SPDX-License-Identifier: Apache-2.0
// SignalsHeld: all signals of the calling thread are blocked while it lives.
#pragma once

#include <csignal>

namespace isthmus::tools {

// Threads that start meanwhile inherit the mask, and keep it. Destroyed on the thread that made it.
class SignalsHeld {
public:
    SignalsHeld() {
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsHeld(const SignalsHeld&) = delete;
    SignalsHeld& operator=(const SignalsHeld&) = delete;

private:
    sigset_t before_;
};

}  // namespace isthmus::tools
