// SPDX-License-Identifier: Apache-2.0
// Kernel launches: arguments are copied at the call and checked against provenance and the machine when the kernel
// runs; the CPU twin does the work.
#include "launch.hpp"

#include "aliases.hpp"
#include "blocks.hpp"
#include "call.hpp"
#include "engine/graph.hpp"
#include "module.hpp"
#include "ptx_kernels.hpp"
#include "updates.hpp"
#include "written_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace isthmus::sim {
namespace {

bool within_limits(const Driver& d, int device, const Function& function, const LaunchShape& shape) {
    const DeviceLimits& limits = d.devices[static_cast<std::size_t>(device)].limits;
    if (!is_block(d, device, shape.block)) return false;
    for (int axis = 0; axis < 3; ++axis) {
        if (shape.grid[axis] == 0) return false;
        if (limits.grid[axis] != 0 && shape.grid[axis] > limits.grid[axis]) return false;
    }
    const std::uint64_t threads = std::uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
    const ptx::Entry* const entry = function.twin->entry;
    if (entry != nullptr) {
        if (entry->most_threads != 0 && threads > entry->most_threads) return false;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const std::uint32_t required = entry->required_threads[axis];
            if (required != 0 && shape.block[axis] != required) return false;
        }
    }
    const auto set = function.set_attributes.find(8);  // MAX_DYNAMIC_SHARED_SIZE_BYTES
    if (set != function.set_attributes.end()) return shape.shared_bytes <= static_cast<unsigned>(set->second);
    const std::uint64_t shared =
        std::uint64_t{shape.shared_bytes} + (entry != nullptr ? entry->static_shared_bytes : 0);
    return limits.shared_bytes <= 0 || shared <= static_cast<unsigned>(limits.shared_bytes);
}

// Blocks of a cooperative launch wait for each other, so that all must be resident at a time.
bool resident(const Driver& d, int device, const Function& function, const LaunchShape& shape) {
    const std::uint64_t threads = std::uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
    const std::uint64_t blocks = std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
    const int multiprocessors = std::max(1, d.fact(device, attribute::multiprocessors));
    const int held = resident_blocks(d, device, function, static_cast<int>(threads), shape.shared_bytes);
    return blocks <= static_cast<std::uint64_t>(multiprocessors) * static_cast<std::uint64_t>(held);
}

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

// CU_LAUNCH_PARAM_…
constexpr std::uintptr_t end_of_extra = 0, buffer_pointer = 1, buffer_size = 2;

void* key(std::uintptr_t number) {
    return reinterpret_cast<void*>(number);
}

// Parameters in one buffer.
struct Packed {
    const void* buffer = nullptr;
    std::size_t bytes = 0;
};

// Observed (580, H100): what is behind the bytes of a buffer that is too short is 0; one that is too long answers 701.
Result read_packed(const Twin& twin, void** extra, Packed& packed) {
    const std::size_t* bytes = nullptr;
    for (void** word = extra; *word != key(end_of_extra); word += 2) {
        switch (reinterpret_cast<std::uintptr_t>(*word)) {
            case buffer_pointer: packed.buffer = word[1]; break;
            case buffer_size: bytes = static_cast<const std::size_t*>(word[1]); break;
            default: return result::invalid_value;
        }
    }
    if (!packed.buffer || !bytes || *bytes == 0) return result::invalid_value;
    packed.bytes = *bytes;
    std::size_t needed = 0;
    if (!twin.block.empty()) needed = std::size_t{twin.block.back().offset_bytes} + twin.block.back().size_bytes;
    return packed.bytes > needed ? result::launch_out_of_resources : result::ok;
}

}  // namespace

bool is_block(const Driver& d, int device, const unsigned (&block)[3]) {
    const DeviceLimits& limits = d.devices[static_cast<std::size_t>(device)].limits;
    std::uint64_t threads = 1;
    for (int axis = 0; axis < 3; ++axis) {
        if (block[axis] == 0 || (limits.block[axis] != 0 && block[axis] > limits.block[axis])) return false;
        threads *= block[axis];
    }
    return limits.threads_per_block <= 0 || threads <= static_cast<std::uint64_t>(limits.threads_per_block);
}

const KernelLaunch* launch_of(const engine::GraphNode& node) {
    if (node.child || node.operation.kind != engine::Kind::kernel) return nullptr;
    return static_cast<const KernelLaunch*>(node.operation.details.get());
}

LaunchRequest request_of(const KernelLaunch& launch) {
    const bool packed = !launch.extra.empty();
    return {launch.function,
            launch.shape,
            launch.agent,
            packed ? nullptr : const_cast<void**>(launch.parameters.data()),
            packed ? const_cast<void**>(launch.extra.data()) : nullptr,
            launch.settings};
}

unsigned largest_cluster(const Function& function) {
    constexpr unsigned portable = 8, largest = 16;
    const auto allowed = function.set_attributes.find(function_attribute::any_cluster);
    return allowed != function.set_attributes.end() && allowed->second != 0 ? largest : portable;
}

unsigned most_cluster_blocks(const Function& function) {
    const unsigned most = largest_cluster(function);
    const std::uint32_t stated = function.twin->entry != nullptr ? function.twin->entry->most_cluster_blocks : 0;
    return stated != 0 ? std::min(most, stated) : most;
}

ClusterSize cluster_of(const KernelLaunch& launch) {
    return launch.settings.cluster.x != 0 ? launch.settings.cluster : launch.required_cluster;
}

namespace {

// The cluster that a launch states, or its function, which must not differ. Observed (580, H200) for
// .reqnctapercluster; assumed for cuFuncSetAttribute.
Result check_cluster_of(const Driver& d, const LaunchRequest& request, const ClusterSize& wanted) {
    LaunchSettings settings = request.settings;
    if (wanted.x != 0 || wanted.y != 0 || wanted.z != 0) {
        if (!attribute_facts(d, request.agent.device).clusters) return result::not_supported;
        // Documented: all three are 0 or none is, which the launch checks.
        if (wanted.x == 0 || wanted.y == 0 || wanted.z == 0) return result::invalid_cluster_size;
        const ClusterSize& stated = settings.cluster;
        const bool differs = stated.x != wanted.x || stated.y != wanted.y || stated.z != wanted.z;
        if (stated.x != 0 && differs) return result::invalid_cluster_size;
        settings.cluster = wanted;
    }
    const unsigned most = most_cluster_blocks(*request.function);
    const ClusterSize& size = settings.cluster;
    if (size.x == 0 && needs_cluster(*request.function)) {
        say("%s states .explicitcluster: its launch needs the size of its clusters "
            "(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)",
            request.function->twin->symbol.c_str());
        return result::invalid_cluster_size;
    }
    if (size.x != 0) {  // a driver 580 answers 912 for both
        const unsigned(&grid)[3] = request.shape.grid;
        if (grid[0] % size.x != 0 || grid[1] % size.y != 0 || grid[2] % size.z != 0)
            return result::invalid_cluster_size;
        if (std::uint64_t{size.x} * size.y * size.z > most) return result::invalid_cluster_size;
    }
    return check_cluster(settings, request.shape.grid, most);
}

}  // namespace

Result prepare_launch(const Driver& d, const LaunchRequest& request, KernelLaunch& out) {
    const bool is_packed = request.extra && *request.extra != key(end_of_extra);
    if (is_packed && request.parameters) return result::invalid_value;  // documented
    if (!d.functions.alive(request.function)) return lost_or_unknown(d.functions, request.function);
    if (!within_limits(d, request.agent.device, *request.function, request.shape)) return result::invalid_value;
    out.function = request.function;
    out.twin = request.function->twin;
    const bool takes_nothing = out.twin->ready_made && out.twin->block.empty();
    if (is_packed && !out.twin->ready_made) {
        say("launches of a registered twin with packed parameter buffers (extra) are not modelled");
        return result::not_supported;
    }
    Packed packed;
    if (is_packed) {
        if (const Result code = read_packed(*out.twin, request.extra, packed)) return code;
    } else if (!request.parameters && !takes_nothing) {
        return result::invalid_value;
    }
    out.own_twin = request.function->own_twin;
    if (out.twin->ready_made && !out.twin->stand_in && !can_run_ptx(*out.twin)) return result::not_supported;
    if (request.settings.cooperative && !out.twin->entry) {
        say("cooperative launches are modelled for kernels from PTX alone, and %s is none", out.twin->symbol.c_str());
        return result::not_supported;
    }
    if (request.settings.cooperative && !resident(d, request.agent.device, *request.function, request.shape)) {
        return result::cooperative_launch_too_large;
    }
    out.required_cluster = required_cluster(*request.function);
    if (const Result code = check_cluster_of(d, request, out.required_cluster)) return code;
    out.shape = request.shape;
    out.settings = request.settings;
    out.agent = request.agent;
    if (out.twin->ready_made) {
        out.pack.resize(out.twin->pack_bytes);
        if (is_packed) std::memcpy(out.pack.data(), packed.buffer, packed.bytes);
        for (std::size_t i = 0; i < out.twin->block.size(); ++i) {
            const BlockParameter& parameter = out.twin->block[i];
            std::byte* const place = out.pack.data() + parameter.offset_bytes;
            if (!is_packed) std::memcpy(place, request.parameters[i], parameter.size_bytes);
            out.parameters.push_back(place);
        }
        if (is_packed) {
            out.packed_bytes = packed.bytes;
            out.extra = {key(buffer_size), &out.packed_bytes, key(buffer_pointer), out.pack.data(), key(end_of_extra)};
        }
        return result::ok;
    }
    // The two parameters of every kernel: the extent, then one pack with all arguments.
    std::memcpy(&out.extent, request.parameters[0], sizeof(out.extent));
    out.pack.resize(out.twin->pack_bytes);
    if (out.twin->pack_bytes > 0) std::memcpy(out.pack.data(), request.parameters[1], out.twin->pack_bytes);
    out.parameters = {&out.extent, out.pack.data()};
    return result::ok;
}

engine::Operation kernel_operation(Driver& d, std::shared_ptr<const KernelLaunch> launch) {
    engine::Operation operation;
    operation.kind = engine::Kind::kernel;
    operation.label = launch->twin->symbol;
    operation.device = launch->agent.device;
    operation.details = launch;
    operation.body = [&d, launch = std::move(launch)] { return run(d, *launch); };
    return operation;
}

namespace {

// Observed (580, H100): 400 for a launch; kernel nodes of graphs, and kernels of libraries, are played in any context.
bool is_of_another_context(const Driver& d, const Function* function, const Context* of_stream) {
    if (!d.functions.alive(function)) return false;
    const Context* const own = function->module ? function->module->context : nullptr;
    if (!own || own == of_stream) return false;
    say("%s was loaded in another context than its stream's%s: CUDA_ERROR_INVALID_HANDLE (400)",
        function->twin->symbol.c_str(), own->device == of_stream->device ? "" : ", on another device");
    return true;
}

}  // namespace

Result launch_in_stream(Driver& d, LaunchRequest request, Stream* handle, const LaunchConfig* config) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    request.agent = {stream.device, stream.context, stream.id};
    auto prepared = std::make_shared<KernelLaunch>();
    {
        const std::lock_guard lock(d.mutex);
        if (is_of_another_context(d, request.function, stream.context)) return result::invalid_handle;
        const bool cooperative = request.settings.cooperative;
        request.settings = settings_of_work(d, stream);
        request.settings.cooperative = cooperative;
        if (config) {
            const AttributeFacts facts = attribute_facts(d, stream.device);
            if (const Result code = read_launch_settings(facts, *config, request.settings)) return code;
        }
        if (const Result code = prepare_launch(d, request, *prepared)) return code;
        const ptx::Entry* const entry = prepared->twin->entry;
        if (entry && entry->uses_heap && !make_heap(d, stream.context, stream.device)) return result::out_of_memory;
    }
    const Result code = d.engine().submit(stream.id, kernel_operation(d, std::move(prepared)));
    update_managed_access(d);
    return code;
}

extern "C" {

Result cuLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream* stream, void** parameters,
                      void** extra) {
    return call(CallId::cuLaunchKernel, [&](Driver& d) {
        const LaunchShape shape = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
        return launch_in_stream(d, {function, shape, {}, parameters, extra, {}}, stream);
    });
}

Result cuLaunchCooperativeKernel(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                 Stream* stream, void** parameters) {
    return call(CallId::cuLaunchCooperativeKernel, [&](Driver& d) {
        const LaunchShape shape = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
        LaunchSettings settings;
        settings.cooperative = true;
        return launch_in_stream(d, {function, shape, {}, parameters, nullptr, settings}, stream);
    });
}

Result cuLaunchKernelEx(const LaunchConfig* config, Function* function, void** parameters, void** extra) {
    return call(CallId::cuLaunchKernelEx, [&](Driver& d) -> Result {
        if (!config) return result::invalid_value;
        const LaunchShape shape = {{config->grid_x, config->grid_y, config->grid_z},
                                   {config->block_x, config->block_y, config->block_z},
                                   config->shared_bytes};
        return launch_in_stream(d, {function, shape, {}, parameters, extra, {}}, config->stream, config);
    });
}
}

}  // namespace isthmus::sim
