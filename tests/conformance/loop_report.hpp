// SPDX-License-Identifier: Apache-2.0
// What was seen of one loop, in memory that the process of the loop shares with the test.
#pragma once

#include "call_origin.hpp"

#include <isthmus/result.hpp>

#include <atomic>
#include <array>
#include <cstddef>

namespace conformance {

struct CallCount {
    long number = -1;
    Origin by = Origin::system;
    long count = 0;
};

struct LoopReport {
    enum Phase : int { not_begun, warm, traced, over };
    std::atomic<int> phase{not_begun};
    std::atomic<int> thread{0};       // the loop's, for its tracer
    std::atomic<bool> enough{false};  // tells the other process of a loop to end

    enum Device : int { none, cpu, gpu };  // none: the machine has no device with this number
    int device = none;
    bool unsupported = false;  // this device cannot play the loop

    long turns = 0;                            // that were watched
    isthmus::Code answer = isthmus::Code::ok;  // the last turn's
    std::array<char, 512> error{};             // its text, or what was thrown

    long allocations = 0;
    long frees = 0;
    long mappings = 0;
    long most_mutexes = 0;           // in one turn
    std::array<char, 2048> where{};  // the first allocation

    std::array<CallCount, 48> calls{};  // system calls, by number and origin
    CallCount forbidden{};              // number −1: none
    std::array<char, 2048> forbidden_where{};
    CodeMap code{};  // of the loop's process

    void count(long number, Origin by) noexcept {
        for (CallCount& call : calls) {
            if (call.count != 0 && (call.number != number || call.by != by)) continue;
            call.number = number;
            call.by = by;
            ++call.count;
            return;
        }
    }
};
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace conformance
