// SPDX-License-Identifier: Apache-2.0
// How many blocks of a kernel a multiprocessor holds, as CUDA's cuda_occupancy.h computes it: by threads, blocks,
// registers and shared memory.
#include "call.hpp"
#include "module.hpp"

#include <program.hpp>

#include <algorithm>
#include <vector>

namespace isthmus::sim {
namespace {

constexpr int lanes = 32;

int rounded_up(int value, int unit) {
    return (value + unit - 1) / unit * unit;
}

// cuda_occupancy.h: a multiprocessor has 4 parts, each with its registers, and a warp gets them by 256.
int blocks_by_registers(int of_multiprocessor, int registers, int warps) {
    constexpr int parts = 4, unit = 256;
    if (of_multiprocessor <= 0 || registers <= 0) return 1 << 16;
    const int of_warp = rounded_up(registers * lanes, unit);
    return of_multiprocessor / parts / of_warp * parts / warps;
}

}  // namespace

int blocks_by_shared_memory(const Driver& d, int device, const Function& function, std::size_t dynamic_bytes) {
    const int of_multiprocessor = d.fact(device, attribute::shared_per_multiprocessor);
    const int own = static_shared_bytes(function);
    const auto set = function.set_attributes.find(function_attribute::dynamic_shared);
    const int most =
        set != function.set_attributes.end() ? own + set->second : d.fact(device, attribute::max_shared_per_block);
    if (most > 0 && dynamic_bytes > static_cast<std::size_t>(std::max(0, most - own))) return 0;
    if (of_multiprocessor <= 0) return 1 << 16;
    const int unit = d.fact(device, attribute::cc_major) < 8 ? 256 : 128;
    const int bytes = own + static_cast<int>(dynamic_bytes);
    if (bytes == 0 && d.fact(device, attribute::reserved_shared) == 0) return 1 << 16;
    return of_multiprocessor / rounded_up(bytes + d.fact(device, attribute::reserved_shared), unit);
}

int resident_blocks(const Driver& d, int device, const Function& function, int block, std::size_t dynamic_bytes) {
    if (block > max_threads(d, device, function)) return 0;
    const int warps = rounded_up(block, lanes) / lanes;
    const int most = d.fact(device, attribute::max_blocks_per_multiprocessor);
    const int threads = d.fact(device, attribute::max_threads_per_multiprocessor);
    return std::min(
        {threads > 0 ? threads / lanes / warps : blocks_per_multiprocessor(d, device, block), most > 0 ? most : 1 << 16,
         blocks_by_registers(d.fact(device, attribute::registers_per_multiprocessor), registers_of(function), warps),
         blocks_by_shared_memory(d, device, function, dynamic_bytes)});
}

namespace {

// Dynamic shared memory of blocks of 32, 64, … threads: asked before the driver's mutex is held.
struct SharedOfBlocks {
    SharedOfBlocks(DynamicShared of, std::size_t otherwise, int most_threads) {
        for (int block = lanes; block <= most_threads; block += lanes) bytes.push_back(of ? of(block) : otherwise);
    }
    std::vector<std::size_t> bytes;
};

// cuda_occupancy.h: of the sizes in steps of a warp, from the largest down, the first with the most threads.
Result best_block(const Driver& d, int device, const Function& function, int* grid, int* block, int limit,
                  const SharedOfBlocks& shared) {
    const int most = std::max(1, max_threads(d, device, function));
    const int largest = limit > 0 ? std::min(limit, most) : most;
    int best_threads = 0;
    *block = 0;
    *grid = 0;
    for (int aligned = rounded_up(largest, lanes); aligned > 0; aligned -= lanes) {
        const auto at = static_cast<std::size_t>(aligned / lanes - 1);
        const int size = std::min(largest, aligned);
        const int blocks = at < shared.bytes.size() ? resident_blocks(d, device, function, size, shared.bytes[at]) : 0;
        if (blocks * size <= best_threads) continue;
        best_threads = blocks * size;
        *block = size;
        *grid = std::max(1, d.fact(device, attribute::multiprocessors)) * blocks;
    }
    return result::ok;
}

// Body: Result(Driver&, int device, const Function&), called with the driver's mutex held.
template <class Body>
Result call_for_occupancy(CallId id, Function* function, unsigned flags, Body&& body) {
    return call_in_context(id, [&](Driver& d, Context& context) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
        if (flags > 1) return result::invalid_value;
        return body(d, context.device, *function);
    });
}

Result best_block(CallId id, int* grid, int* block, Function* function, DynamicShared of, std::size_t dynamic_bytes,
                  int limit, unsigned flags) {
    return call_in_context(id, [&](Driver& d, Context& context) -> Result {
        int most = 0;
        {
            const std::lock_guard lock(d.mutex);
            if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
            if (flags > 1 || !grid || !block || limit < 0) return result::invalid_value;
            most = max_threads(d, context.device, *function);
            if (limit > 0) most = std::min(most, limit);
        }
        const SharedOfBlocks shared(of, dynamic_bytes, rounded_up(most, lanes));  // asks the program
        const std::lock_guard lock(d.mutex);
        if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
        return best_block(d, context.device, *function, grid, block, limit, shared);
    });
}

Result active_blocks(CallId id, int* blocks, Function* function, int block, std::size_t dynamic_bytes, unsigned flags) {
    return call_for_occupancy(id, function, flags, [&](Driver& d, int device, const Function& f) -> Result {
        if (!blocks || block <= 0) return result::invalid_value;
        *blocks = resident_blocks(d, device, f, block, dynamic_bytes);
        return result::ok;
    });
}

}  // namespace

int max_threads(const Driver& d, int device, const Function& function) {
    const int most = d.fact(device, attribute::max_threads_per_block);
    const std::uint32_t stated = function.twin->entry != nullptr ? function.twin->entry->most_threads : 0;
    return stated == 0 ? most : static_cast<int>(std::min<std::uint32_t>(stated, static_cast<std::uint32_t>(most)));
}

int static_shared_bytes(const Function& function) {
    return function.twin->entry != nullptr ? static_cast<int>(function.twin->entry->static_shared_bytes) : 0;
}

int registers_of(const Function& function) {
    if (function.twin->entry == nullptr) return 32;
    const std::uint32_t most = function.module != nullptr ? function.module->most_registers : 0;
    const std::uint32_t registers = function.twin->entry->registers;
    return static_cast<int>(most != 0 ? std::min(registers, most) : registers);
}

int blocks_per_multiprocessor(const Driver& d, int device, int block) {
    const int threads = d.fact(device, attribute::max_threads_per_multiprocessor);
    return std::max(1, threads > 0 ? threads / std::max(1, block) : 2048 / std::max(1, block));
}

extern "C" {

Result cuOccupancyMaxPotentialBlockSize(int* grid, int* block, Function* function, DynamicShared of,
                                        std::size_t dynamic_bytes, int limit) {
    return best_block(CallId::cuOccupancyMaxPotentialBlockSize, grid, block, function, of, dynamic_bytes, limit, 0);
}

Result cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, Function* function, DynamicShared of,
                                                 std::size_t dynamic_bytes, int limit, unsigned flags) {
    return best_block(CallId::cuOccupancyMaxPotentialBlockSizeWithFlags, grid, block, function, of, dynamic_bytes,
                      limit, flags);
}

Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function* function, int block,
                                                   std::size_t dynamic_bytes) {
    return active_blocks(CallId::cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, function, block, dynamic_bytes,
                         0);
}

Result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Function* function, int block,
                                                            std::size_t dynamic_bytes, unsigned flags) {
    return active_blocks(CallId::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, function, block,
                         dynamic_bytes, flags);
}

// Observed (580, H200): the shared memory of a multiprocessor, divided, without the driver's own bytes of each block;
// no more than the function may have.
Result cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, Function* function, int blocks, int block) {
    return call_in_context(CallId::cuOccupancyAvailableDynamicSMemPerBlock, [&](Driver& d, Context& context) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
        if (!bytes || blocks <= 0 || block <= 0) return result::invalid_value;
        const int device = context.device;
        if (block > d.fact(device, attribute::max_threads_per_block)) return result::invalid_value;
        if (blocks > blocks_per_multiprocessor(d, device, block)) return result::invalid_value;  // observed, too
        const int own = static_shared_bytes(*function);
        const int all = d.fact(device, attribute::shared_per_multiprocessor);
        const int set = attribute_of(*function, function_attribute::dynamic_shared);
        const int most = set != 0 ? set : d.fact(device, attribute::max_shared_per_block) - own;
        *bytes = static_cast<std::size_t>(std::clamp(all / blocks - own, 0, std::max(0, most)));
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
