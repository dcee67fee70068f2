// SPDX-License-Identifier: Apache-2.0
// Where an access goes, and whether it may. Each is judged: its alignment, and the window that it lies in. The window
// is asked for once for each instruction and quantum.
#include "operations.hpp"
#include "state.hpp"

#include <algorithm>

namespace isthmus::ptx {
namespace {

// The access itself is described by the caller: "a load of 4 bytes at 0x10".
void refuse(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, std::uint32_t bytes, bool writes,
            FaultKind kind, const std::string& why) {
    fail(warp, op, lane, kind,
         std::string(writes ? "a write of " : "a read of ") + std::to_string(bytes) + " bytes at " + in_hex(address) +
             ": " + why);
}

std::byte* within(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t offset, std::uint32_t bytes, bool writes,
                  std::byte* begin, std::uint64_t size, const char* name, std::vector<std::byte>* written = nullptr,
                  std::uint64_t first = 0) {
    if (size >= bytes && offset <= size - bytes) {
        if (written != nullptr && !written->empty()) warp.worker->last_written = written->data() + first + offset;
        return begin + offset;
    }
    refuse(warp, op, lane, offset, bytes, writes, FaultKind::illegal_address,
           std::string("it leaves the ") + name + " (" + std::to_string(size) + " bytes)");
    return nullptr;
}

std::byte* ask(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, std::uint32_t bytes, bool writes) {
    Worker& worker = *warp.worker;
    MemoryWindow window = worker.state->memory->window(address, bytes, writes);
    const std::uint64_t offset = address - window.begin;
    if (window.size_bytes < bytes || offset > window.size_bytes - bytes) {
        refuse(warp, op, lane, address, bytes, writes, FaultKind::illegal_address, window.refusal);
        return nullptr;
    }
    worker.windows[op.slot] = {window.begin, window.size_bytes, window.host, window.whole_updates, window.written};
    worker.last_whole = window.whole_updates;
    if (window.written != nullptr) worker.last_written = window.written + offset;
    return window.host + offset;
}

std::string own_shared(const Block& block) {
    return std::to_string(block.shared.size() - reserved_shared_bytes) + " bytes at " + in_hex(reserved_shared_bytes);
}

// The block's memory from its first reserved byte on. Observed (580, H100): the reserved bytes can be read, and are 0.
// Assumed: a write to them is a fault where the program does not ask where they lie.
std::byte* within_shared(Warp& warp, const Op& op, std::uint32_t lane, Block& owner, std::uint64_t offset,
                         std::uint32_t bytes, bool writes) {
    const std::uint64_t size = owner.shared.size();
    const bool kept = writes && offset < reserved_shared_bytes && !warp.worker->state->code->reads_reserved_shared;
    if (size >= bytes && offset <= size - bytes && !kept) {
        if (!owner.shared_written.empty()) warp.worker->last_written = owner.shared_written.data() + offset;
        return owner.shared.data() + offset;
    }
    refuse(warp, op, lane, offset, bytes, writes, FaultKind::illegal_address,
           "it leaves the block's shared memory (" + own_shared(owner) + ")");
    return nullptr;
}

// The block of the cluster that an address of shared memory names; nullptr: the access is refused.
Block* block_with_rank(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t offset, std::uint32_t bytes,
                       bool writes) {
    const Cluster& cluster = *warp.block->cluster;
    const std::uint64_t rank = (offset >> cluster_shift) - 1;
    const std::size_t named = cluster.blocks.size() > 1 ? cluster.blocks.size() : 0;  // no rank names a block alone
    if (rank < named && cluster.blocks[rank] != nullptr) return cluster.blocks[rank];
    if (rank < named) {  // 719 on an H200
        refuse(warp, op, lane, offset, bytes, writes, FaultKind::launch_failed,
               "block " + std::to_string(rank) + " of the cluster has ended");
    } else {
        // Observed (580, H100, ld.shared without clusters): 16 MiB behind the block's memory, and before address 0.
        const FaultKind kind = op.space == Space::shared ? FaultKind::illegal_instruction : FaultKind::illegal_address;
        refuse(warp, op, lane, offset, bytes, writes, kind,
               "it leaves the window of shared memory (16 MiB), in which the block has " + own_shared(*warp.block));
    }
    return nullptr;
}

const char* space_read(const Op& op, std::uint64_t address) {
    const std::uint64_t window = address & window_mask;
    if (op.space == Space::shared || (op.space == Space::generic && window == shared_window)) return "shared memory";
    if (op.space == Space::local || (op.space == Space::generic && window == local_window)) return "local memory";
    return "global memory";
}

}  // namespace

std::string in_hex(std::uint64_t value) {
    constexpr char digits[] = "0123456789abcdef";
    std::string out;
    do out.insert(out.begin(), digits[value & 15]);
    while ((value >>= 4) != 0);
    return "0x" + out;
}

void note_read(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, std::uint32_t bytes) {
    Worker& worker = *warp.worker;
    const std::byte* const written = worker.last_written;
    if (written == nullptr ||
        std::all_of(written, written + bytes, [](std::byte one) { return one != std::byte{0}; })) {
        return;
    }
    Execution::State& state = *worker.state;
    const std::lock_guard lock(state.mutex);
    if (!state.reported.insert(&op).second) return;
    state.memory->uninitialised(place_of(warp, op, lane) + ": a read of " + std::to_string(bytes) + " bytes at " +
                                    in_hex(address) + " of the " + space_read(op, address) +
                                    ", of which nothing wrote all",
                                address);
}

// Other threads may record the same bytes.
void note_write(Warp& warp, std::uint32_t bytes) {
    std::byte* const written = warp.worker->last_written;
    if (written == nullptr) return;
    for (std::uint32_t at = 0; at < bytes; ++at) {
        __atomic_store_n(reinterpret_cast<unsigned char*>(written + at), 1, __ATOMIC_RELAXED);
    }
}

std::byte* reach(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, std::uint32_t bytes,
                 bool writes) {
    Worker& worker = *warp.worker;
    Execution::State& state = *worker.state;
    worker.last_whole = true;
    worker.last_written = nullptr;
    // Addresses of these spaces have 32 bits and wrap. A generic address in the place of one stays wrong.
    if ((op.space == Space::shared || op.space == Space::local) && address >> 33 == 0) address &= 0xffffffff;
    if ((address & (bytes - 1)) != 0) {
        refuse(warp, op, lane, address, bytes, writes, FaultKind::misaligned,
               "the address is not a multiple of " + std::to_string(bytes));
        return nullptr;
    }
    Space space = op.space;
    std::uint64_t offset = address;
    if (space == Space::generic) {
        offset = address & ~window_mask;
        switch (address & window_mask) {
            case shared_window: space = Space::shared; break;
            case local_window: space = Space::local; break;
            case param_window: space = Space::param; break;
            case grid_window:
                return within(warp, op, lane, offset, bytes, writes, state.grid_workspace.data(),
                              state.grid_workspace.size(), "workspace of the grid");
            default: space = Space::global;
        }
    }
    switch (space) {
        case Space::shared: {
            Block* owner = warp.block;
            if (offset >> cluster_shift != 0) {
                owner = block_with_rank(warp, op, lane, offset, bytes, writes);
                if (owner == nullptr) return nullptr;
                offset &= (std::uint64_t{1} << cluster_shift) - 1;
            }
            return within_shared(warp, op, lane, *owner, offset, bytes, writes);
        }
        case Space::local:
            return within(warp, op, lane, offset, bytes, writes, warp.local_at(lane), warp.local_bytes,
                          "thread's local memory", &warp.local_written, std::uint64_t{lane} * warp.local_bytes);
        case Space::param:
            if (writes) {
                refuse(warp, op, lane, offset, bytes, writes, FaultKind::illegal_address, "parameters are read-only");
                return nullptr;
            }
            return within(warp, op, lane, offset, bytes, writes, state.parameters.data(), state.parameters.size(),
                          "kernel's parameters");
        default: break;
    }
    const CachedWindow& cached = worker.windows[op.slot];
    if (std::byte* const found = quickly(cached, address, bytes)) {
        worker.last_whole = cached.whole_updates;
        if (cached.written != nullptr) worker.last_written = cached.written + (address - cached.begin);
        return found;
    }
    return ask(warp, op, lane, address, bytes, writes);
}

}  // namespace isthmus::ptx
