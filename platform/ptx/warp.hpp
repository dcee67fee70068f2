// SPDX-License-Identifier: Apache-2.0
// The state of a warp, as the operations see it.
#pragma once

#include "code.hpp"
#include "execution.hpp"

#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace isthmus::ptx {

struct Block;
struct Worker;

// A call of a function by some lanes of a warp.
struct Frame {
    const FunctionCode* function = nullptr;
    Frame* parent = nullptr;
    std::uint32_t return_pc = 0;
    std::uint32_t depth = 0;
    const Op* call = nullptr;  // the parent's
    LaneMask live = 0;         // lanes that have not returned
    std::uint32_t local_base = 0;
    std::vector<Row> rows;
    std::vector<LaneMask> predicates;
};

enum class Waiting : std::uint8_t { nothing, warp, barrier, cluster };

// Lanes that execute in lockstep.
struct Group {
    Frame* frame = nullptr;
    std::uint32_t pc = 0;
    LaneMask mask = 0;
    Waiting waiting = Waiting::nothing;
    LaneMask member_mask = 0;  // of the instruction that waits for lanes
    // The last mbarrier test of its lanes, if the phase had ended for none of them; and whether they have tested since
    // the last look for an endless wait.
    const Op* failed_test = nullptr;
    std::uint32_t failed_test_pc = 0;
    bool tested_again = false;
};

// Copies of cp.async that were started and not waited for, by lane.
struct AsyncCopies {
    struct Copy {
        std::byte* to = nullptr;
        const std::byte* from = nullptr;
        std::uint32_t bytes = 0, from_bytes = 0;  // the rest is filled with zeros
        std::byte* written = nullptr;             // as Block::shared_written
        const std::byte* from_written = nullptr;
    };
    struct InGroup {
        Copy copy;
        std::uint64_t group = 0;
    };
    std::array<std::vector<InGroup>, lanes> open;
    std::array<std::uint64_t, lanes> committed = {};  // groups
    // Does what is in the first so many groups.
    void finish(std::uint32_t lane, std::uint64_t groups);
};

struct Warp {
    // Of the group that executes.
    Row* rows = nullptr;
    const Row* constants = nullptr;
    LaneMask* predicates = nullptr;
    Group now;

    Block* block = nullptr;
    Worker* worker = nullptr;
    std::uint32_t number = 0;
    LaneMask all = 0;  // lanes that exist
    LaneMask exited = 0;
    LaneMask carry = 0;  // CC.CF
    // By barrier with a stated count: lanes that count in its phase, because they have come or never will.
    std::array<LaneMask, 16> counted = {};
    std::vector<Group> others;
    std::deque<Frame> frames;
    std::vector<Frame*> free_frames;
    std::vector<std::byte> local;          // of all lanes, one after the other
    std::vector<std::byte> local_written;  // as Block::shared_written
    std::uint32_t local_bytes = 0;
    std::uint32_t stack_end = 0;                       // the least of stack_ends
    std::array<std::uint32_t, lanes> stack_ends = {};  // of each lane: what alloca has taken lies behind it
    std::unique_ptr<AsyncCopies> copies;
    std::array<std::uint64_t, lanes> cluster_tickets = {};  // of barrier.cluster.arrive: the phase + 1; 0: none
    bool waits = false;        // the instruction waits for others and is repeated by the program
    bool test_failed = false;  // an mbarrier test whose phase had ended for no lane
    std::uint32_t failed_tests = 0;
    bool finished = false;
    bool yields = false;  // it has paused: another group runs first

    const Row& in(Place place) const { return place >= 0 ? rows[place] : constants[~place]; }
    Row& out(Place place) { return rows[place]; }
    std::byte* local_at(std::uint32_t lane) { return local.data() + std::size_t{lane} * local_bytes; }
};

// Calls body(lane) for the lanes of a mask; the full warp without a test, so that the compiler can use vectors.
template <class Body>
inline void for_lanes(LaneMask mask, Body&& body) {
    if (mask == ~LaneMask{0}) {
        for (std::uint32_t lane = 0; lane < lanes; ++lane) body(lane);
        return;
    }
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) body(static_cast<std::uint32_t>(std::countr_zero(rest)));
}

// A value of a register's slot, and back. Narrow values are zero-extended.
template <class T>
inline T from_slot(std::uint64_t slot) {
    if constexpr (sizeof(T) == 8) {
        return std::bit_cast<T>(slot);
    } else if constexpr (sizeof(T) == 4) {
        return std::bit_cast<T>(static_cast<std::uint32_t>(slot));
    } else if constexpr (sizeof(T) == 2) {
        return std::bit_cast<T>(static_cast<std::uint16_t>(slot));
    } else {
        return std::bit_cast<T>(static_cast<std::uint8_t>(slot));
    }
}
template <class T>
inline std::uint64_t to_slot(T value) {
    if constexpr (sizeof(T) == 8) {
        return std::bit_cast<std::uint64_t>(value);
    } else if constexpr (sizeof(T) == 4) {
        return std::bit_cast<std::uint32_t>(value);
    } else if constexpr (sizeof(T) == 2) {
        return std::bit_cast<std::uint16_t>(value);
    } else {
        return std::bit_cast<std::uint8_t>(value);
    }
}

// Records the first fault of the execution, at this lane. `address`: of an access, or nullptr.
void fail(Warp& warp, const Op& op, std::uint32_t lane, FaultKind kind, const std::string& why);

// For messages.
std::string in_hex(std::uint64_t value);

// Describes the place of an instruction: kernel, lines, block and thread.
std::string place_of(const Warp& warp, const Op& op, std::uint32_t lane);

// For executions that find uninitialised reads, after a reach() that succeeded: reports the read of bytes that were not
// written; or records that they are.
void note_read(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, std::uint32_t bytes);
void note_write(Warp& warp, std::uint32_t bytes);

// Where an access of a lane goes; nullptr: it failed.
std::byte* reach(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, std::uint32_t bytes, bool writes);

}  // namespace isthmus::ptx
