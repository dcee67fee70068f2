// SPDX-License-Identifier: Apache-2.0
// A kernel while it runs: its arguments are checked against provenance and the machine; then its CPU twin, its stand-in
// or its PTX does the work.
#include "launch.hpp"

#include "aliases.hpp"
#include "blocks.hpp"
#include "call.hpp"
#include "ptx_kernels.hpp"
#include "updates.hpp"
#include "written_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace isthmus::sim {
namespace {

struct View {  // struct of a view in a pack
    Address data;
    std::uint64_t size;
};

// Replaces GPU addresses by the worker's addresses of the same memory; false: the GPU may not access an argument.
bool check_arguments(const Driver& d, const KernelLaunch& launch, std::vector<std::byte>& pack) {
    GpuAgent agent = launch.agent;
    // Assumed: managed memory that is attached to the stream of a graph's launch is that of its nodes.
    agent.stream = engine::Engine::running_stream();
    for (std::size_t i = 0; i < launch.twin->parameters.size(); ++i) {
        const Parameter& parameter = launch.twin->parameters[i];
        if (!parameter.is_view()) continue;
        View view;
        std::memcpy(&view, pack.data() + parameter.offset_bytes, sizeof(view));
        const std::size_t bytes = static_cast<std::size_t>(view.size) * parameter.element_bytes;
        const GpuAccess access = check_gpu_access(d, agent, view.data, bytes, parameter.writes());
        if (!access.allowed) {
            say("kernel %s, argument %zu: device %d cannot reach %#llx (%zu bytes): %s; this becomes "
                "CUDA_ERROR_ILLEGAL_ADDRESS (700)",
                launch.twin->symbol.c_str(), i, launch.agent.device, view.data, bytes, access.reason.c_str());
            return false;
        }
        // What a CPU twin writes is not followed: it counts as all of what it may write.
        if (parameter.writes()) written_bytes::written(access.pointer, bytes);
        view.data = reinterpret_cast<Address>(access.pointer);
        std::memcpy(pack.data() + parameter.offset_bytes, &view, sizeof(view));
    }
    return true;
}

// The same for an entry of a ready-made image. How much memory lies behind an address alone is not said, so that all of
// its allocation counts.
bool check_pointers(const Driver& d, const KernelLaunch& launch, std::vector<std::byte>& block) {
    for (std::size_t i = 0; i < launch.twin->pointers.size(); ++i) {
        const Parameter& parameter = launch.twin->pointers[i];
        View view{0, 0};
        const bool counted = parameter.size_bytes >= sizeof(view);
        std::memcpy(&view, block.data() + parameter.offset_bytes, counted ? sizeof(view) : sizeof(view.data));
        if (view.data == 0) continue;
        std::size_t bytes = static_cast<std::size_t>(view.size) * parameter.element_bytes;
        if (!counted) {
            const Found found = d.regions.find(view.data);
            bytes = found ? std::max<std::size_t>(found.region->usable_bytes(found.offset_bytes), 1) : 1;
            if (const std::optional<BlockInUse> lent = block_in_use(d, view.data)) {
                bytes = lent->first + lent->bytes - view.data;
            }
        }
        const GpuAccess access = check_gpu_access(d, launch.agent, view.data, bytes, parameter.writes());
        if (!access.allowed) {
            say("entry %s, memory argument %zu: device %d cannot reach %#llx (%zu bytes): %s; this becomes "
                "CUDA_ERROR_ILLEGAL_ADDRESS (700)",
                launch.twin->symbol.c_str(), i, launch.agent.device, view.data, bytes, access.reason.c_str());
            return false;
        }
        if (parameter.writes()) written_bytes::written(access.pointer, bytes);
        view.data = reinterpret_cast<Address>(access.pointer);
        std::memcpy(block.data() + parameter.offset_bytes, &view.data, sizeof(view.data));
    }
    return true;
}

int run_stand_in(Driver& d, const KernelLaunch& launch) {
    std::vector<std::byte> block = launch.pack;
    {
        const std::lock_guard lock(d.mutex);
        if (!check_pointers(d, launch, block)) return result::illegal_address;
    }
    std::vector<void*> parameters;
    for (const BlockParameter& parameter : launch.twin->block)
        parameters.push_back(block.data() + parameter.offset_bytes);
    const isthmus_sim_extent grid = {launch.shape.grid[0], launch.shape.grid[1], launch.shape.grid[2]};
    const isthmus_sim_extent threads = {launch.shape.block[0], launch.shape.block[1], launch.shape.block[2]};
    std::uintptr_t fault = 0;
    const auto work = [&] {
        launch.twin->stand_in(launch.twin->self, &grid, &threads, launch.shape.shared_bytes, parameters.data());
    };
    if (Protection::run_guarded(work, fault)) return result::ok;
    say("entry %s touched %#zx, which device %d cannot reach; this becomes CUDA_ERROR_ILLEGAL_ADDRESS (700)",
        launch.twin->symbol.c_str(), static_cast<std::size_t>(fault), launch.agent.device);
    return result::illegal_address;
}

std::uint64_t outermost(const KernelLaunch& launch) {
    switch (launch.twin->rank) {
        case 2: return launch.extent.y;
        case 3: return launch.extent.z;
        case 1: return launch.extent.x;
        default: return launch.extent.x * launch.extent.y * launch.extent.z;  // the number of blocks
    }
}

// Does the work of cudaGraphSetConditional in GPU code, which has no equivalent in a CPU function.
int set_condition(const SetsCondition& pack, const std::vector<std::shared_ptr<std::atomic<unsigned>>>& conditions) {
    if (pack.condition == 0 || pack.condition > conditions.size()) {
        say("kernel %s: no graph has the condition %llu; this becomes CUDA_ERROR_ILLEGAL_ADDRESS (700)",
            sets_condition_symbol, static_cast<unsigned long long>(pack.condition));
        return result::illegal_address;
    }
    const int value = *reinterpret_cast<const std::int32_t*>(static_cast<std::uintptr_t>(pack.word));
    conditions[pack.condition - 1]->store(value != 0 ? 1 : 0, std::memory_order_relaxed);
    return result::ok;
}

int run(Driver& d, const KernelLaunch& launch) {
    if (launch.twin->stand_in) return run_stand_in(d, launch);
    if (launch.twin->entry) return run_ptx(d, launch);
    std::vector<std::byte> pack = launch.pack;
    std::vector<std::shared_ptr<std::atomic<unsigned>>> conditions;
    std::optional<AliasedMemory> aliases;
    const bool sets = launch.twin->symbol == sets_condition_symbol && pack.size() == sizeof(SetsCondition);
    {
        const std::lock_guard lock(d.mutex);
        if (!check_arguments(d, launch, pack)) return result::illegal_address;
        if (sets) conditions = d.conditions;
        aliases.emplace(d, *launch.twin, pack.data());
    }
    if (sets) {
        SetsCondition request;
        std::memcpy(&request, pack.data(), sizeof request);
        return set_condition(request, conditions);
    }
    const PlayingGpu playing(d, launch.agent.device, *launch.twin, *aliases);
    std::uintptr_t fault = 0;
    const auto work = [&] { launch.twin->run(&launch.extent, 0, outermost(launch), pack.data()); };
    if (Protection::run_guarded(work, fault)) return result::ok;
    say("kernel %s touched %#zx, which device %d cannot reach; this becomes CUDA_ERROR_ILLEGAL_ADDRESS (700)",
        launch.twin->symbol.c_str(), static_cast<std::size_t>(fault), launch.agent.device);
    return result::illegal_address;
}

}  // namespace

engine::Operation kernel_operation(Driver& d, std::shared_ptr<const KernelLaunch> launch) {
    engine::Operation operation;
    operation.kind = engine::Kind::kernel;
    operation.label = launch->twin->symbol;
    operation.device = launch->agent.device;
    operation.details = launch;
    operation.body = [&d, launch = std::move(launch)] { return run(d, *launch); };
    return operation;
}

}  // namespace isthmus::sim
