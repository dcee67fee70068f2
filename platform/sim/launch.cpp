// SPDX-License-Identifier: Apache-2.0
// Kernel launches: what a launch asks for is checked, and its arguments are copied, at the call.
#include "launch.hpp"

#include "call.hpp"
#include "engine/graph.hpp"
#include "module.hpp"
#include "ptx_kernels.hpp"

#include <algorithm>
#include <cstring>

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
