// SPDX-License-Identifier: Apache-2.0
// The state of one execution: blocks, and the threads that run them.
#pragma once

#include "warp.hpp"

#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace isthmus::ptx {

struct Barrier {
    std::uint32_t arrived = 0;
    std::uint32_t expected = 0;  // 0: all threads of the block
    std::uint32_t absent = 0;    // lanes without a thread or that have ended, of warps that have come
    std::uint32_t waiting = 0;
    std::uint32_t count = 0;  // of bar.red: threads whose predicate is true
    std::uint32_t result_count = 0, result_threads = 0;
};

struct Block;

// Blocks that run at the same time and reach each other's shared memory: those of one thread that runs blocks.
struct Cluster {
    std::vector<Block*> blocks;  // by their rank; nullptr: it has ended
    std::uint32_t threads = 0;   // that have not ended
    std::uint32_t arrived = 0;   // at barrier.cluster, in this phase
    std::uint64_t phase = 0;
    std::uint32_t idle_passes = 0;  // since one of its blocks progressed
    // Passes since a warp did something else than to wait or to test an mbarrier object, and when to look at it again.
    std::uint32_t quiet_passes = 0, next_look = first_look;
    bool suspected = false;  // every group could wait for ever: the next look decides
    static constexpr std::uint32_t first_look = 16;
    void disturb() {
        quiet_passes = 0;
        next_look = first_look;
        suspected = false;
    }
    void complete() {
        if (arrived == 0 || arrived < threads) return;
        arrived = 0;
        ++phase;
    }
};

struct Block {
    Dimensions at;
    std::uint64_t number = 0;
    std::uint32_t threads = 0, exited = 0;
    std::vector<std::byte> shared;          // reserved_shared_bytes, then the block's own
    std::vector<std::byte> shared_written;  // 0: not yet; empty: this is not recorded
    std::set<std::uint32_t> mbarriers;      // offsets of mbarrier objects in shared memory
    std::shared_ptr<Cluster> cluster;       // of itself alone, if the launch has no clusters
    std::uint32_t rank = 0;                 // in its cluster
    std::array<Barrier, 16> barriers;
    std::deque<Warp> warps;
    bool progressed = false;  // in the current pass
};

// The answer about a window of memory that an instruction used last.
struct CachedWindow {
    std::uint64_t begin = 0, size_bytes = 0;
    std::byte* host = nullptr;
    bool whole_updates = true;
    std::byte* written = nullptr;
};

// An access to global memory within the window of the instruction's last one; nullptr: it needs the long way.
inline std::byte* quickly(const CachedWindow& cached, std::uint64_t address, std::uint32_t bytes) {
    const std::uint64_t offset = address - cached.begin;
    if (offset >= cached.size_bytes || cached.size_bytes - offset < bytes || (address & (bytes - 1)) != 0)
        return nullptr;
    return cached.host + offset;
}

// A thread that runs blocks.
struct Worker {
    Execution::State* state = nullptr;
    std::vector<CachedWindow> windows;
    std::deque<std::pair<std::uint64_t, TextureBytes>> textures;  // by their handles
    std::deque<std::unique_ptr<Block>> resident;
    Warp* warp = nullptr;    // that runs now
    const Op* op = nullptr;  // memory access that runs now
    bool stop = false;
    bool last_whole = true;  // of the window of the last reach()
    bool finds_uninitialised = false;
    std::byte* last_written = nullptr;  // record of the bytes of the last reach(); nullptr: there is none
    std::uint64_t thread_instructions = 0;
};

}  // namespace isthmus::ptx

struct isthmus::ptx::Execution::State {
    const Program* program = nullptr;
    const ProgramCode* code = nullptr;
    const Entry* entry = nullptr;
    const FunctionCode* function = nullptr;
    ExecutionShape shape;
    std::vector<std::byte> parameters;
    Memory* memory = nullptr;
    std::uint64_t blocks = 0, cluster_blocks = 1;
    std::uint32_t threads = 0;  // of a block
    std::uint32_t local_bytes = 0;
    std::atomic<std::uint64_t> next_block{0};
    std::atomic<bool> stopped{false};
    std::mutex mutex;  // guards what follows
    Fault fault;
    std::set<const Op*> reported;  // of reads of memory that was not written
    std::vector<std::unique_ptr<Worker>> workers;
    std::uint64_t thread_instructions = 0;
    alignas(16) std::array<std::byte, 64> grid_workspace{};  // of grid.sync()
};
