// SPDX-License-Identifier: Apache-2.0
// GraphInstance::set_arguments: replaces the arguments of one kernel, under the rules of a launch.
#include <isthmus/graph.hpp>

#include "atomic_guard.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "graph_errors.hpp"
#include "graph_state.hpp"
#include "kernel_argument.hpp"
#include "launch_judge.hpp"
#include "stream_state.hpp"

#include <cstring>
#include <optional>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace {

using detail::BufferState;
using detail::DeviceState;
using detail::InstanceOperation;
using detail::InstanceState;
using detail::LaunchArgument;

// Refuses what a captured launch refuses: the graph cannot do it either.
Result<void> refuse_in_graphs(const InstanceState& instance, const KernelInfo& kernel, const LaunchArgument* arguments,
                              std::size_t count, const detail::Judgement& judged) {
    if (!judged.staged.empty()) {
        return make_error<errors::node_argument_needs_copies>(
            detail::argument_text(kernel, judged.staged.front().argument));
    }
    for (std::uint32_t at = 0; at < count; ++at) {
        if (!arguments[at].is_view || arguments[at].buffer == nullptr) continue;
        const BufferState& buffer = **arguments[at].buffer;
        if (buffer.memory->of_graph && buffer.recorded_in() != instance.as_of->id) {
            return make_error<errors::node_argument_of_another_graph>(detail::argument_text(kernel, at));
        }
    }
    return {};
}

// true: the graph holds the buffer of this argument.
bool is_use(const LaunchArgument& argument) noexcept {
    if (!argument.is_view || argument.buffer == nullptr) return false;
    const BufferState& buffer = **argument.buffer;
    return buffer.memory->bytes > 0 && !buffer.memory->of_graph;
}

bool same(const Extent& left, const Extent& right) noexcept {
    return left.x == right.x && left.y == right.y && left.z == right.z;
}

// Most changes: whole buffers of the only device take the places of others that the kernel uses alike, and a launch of
// this extent was taken before. Then there is nothing to judge. The addresses are in the pack; false: perhaps some.
bool replaces_alike(const InstanceState& instance, const InstanceOperation& operation, const Extent& extent, void* pack,
                    const LaunchArgument* arguments, std::size_t count) noexcept {
    const detail::DriverGraph& graph = *instance.made.from;
    if (operation.function == platform::FunctionHandle::none || !same(operation.extent, extent) ||
        graph.devices.size() != 1 || instance.as_of->devices.size() != 1) {
        return false;
    }
    const DeviceState& device = *instance.device;
    if (device.synchronous) return false;
    const InstanceOperation::Use* known = operation.uses.data();
    const InstanceOperation::Use* const end = known + operation.uses.size();
    const ParameterInfo* parameter = operation.kernel->parameter;
    for (std::uint32_t at = 0; at < count; ++at, ++parameter) {
        const LaunchArgument& argument = arguments[at];
        if (!argument.fits) return false;
        if (!argument.is_view) continue;
        if (argument.buffer == nullptr || argument.is_part || detail::updates(*parameter)) return false;
        const BufferState* const buffer = argument.buffer->get();
        if (buffer == nullptr || buffer->device.get() != &device) return false;
        const detail::StorageFacts& facts = *buffer->memory.operator->();
        if (facts.bytes == 0 || facts.of_graph || !device.reaches(facts.kind)) return false;
        if (known == end || known->argument != at || known->use != parameter->use || !known->range.whole())
            return false;
        ++known;
        std::memcpy(static_cast<unsigned char*>(pack) + parameter->offset_bytes, &facts.device_address,
                    sizeof facts.device_address);
    }
    return known == end;
}

// take_over_uses() for what replaces_alike() found.
void take_over_buffers(detail::GraphUses& all, InstanceOperation& operation, const LaunchArgument* arguments,
                       detail::GraphUses::LetGo& let_go) {
    for (InstanceOperation::Use& use : operation.uses) {
        const std::shared_ptr<BufferState>& buffer = *arguments[use.argument].buffer;
        if (use.buffer == buffer.get()) continue;
        all.add(buffer, use.use);
        all.remove(*std::exchange(use.buffer, buffer.get()), use.use, let_go);
    }
}

platform::Status give_arguments(InstanceState& instance, platform::Captures& captures,
                                const InstanceOperation& operation, const Extent& extent, void* pack) {
    const platform::LaunchRequest request{operation.kernel, operation.function, extent, pack,
                                          platform::StreamHandle::none};
    // The graph names the node; the driver allows one thread at a time per graph.
    const std::lock_guard graph(instance.made.from->mutex);
    return captures.set_kernel_arguments(instance.made.handle, operation.node, request);
}

// Replaces the operation's uses. Buffers that the instance no longer uses go to `let_go`.
void take_over_uses(detail::GraphUses& all, InstanceOperation& operation, const KernelInfo& kernel,
                    const LaunchArgument* arguments, std::size_t count, detail::GraphUses::LetGo& let_go) {
    // Usually the same parameters are buffers as before: each replaces the entry at its place, or equals it.
    std::size_t place = 0;
    std::vector<InstanceOperation::Use>& uses = operation.uses;
    for (std::uint32_t at = 0; at < count; ++at) {
        if (!is_use(arguments[at])) continue;
        const std::shared_ptr<BufferState>& buffer = *arguments[at].buffer;
        const rules::ByteSpan span = span_of(arguments[at], kernel.parameter[at]);
        const ArgumentUse use = rules::recorded_use(kernel.parameter[at].use, span);
        const rules::ByteRange range =
            span.whole() ? rules::ByteRange{} : rules::ByteRange{.offset = span.begin, .width = span.end - span.begin};
        while (place < uses.size() && uses[place].argument < at) {
            all.remove(*uses[place].buffer, uses[place].use, let_go);
            uses.erase(uses.begin() + static_cast<std::ptrdiff_t>(place));
        }
        if (place == uses.size() || uses[place].argument != at) {
            all.add(buffer, use);
            uses.insert(uses.begin() + static_cast<std::ptrdiff_t>(place), {buffer.get(), use, at, range});
        } else if (uses[place].buffer != buffer.get() || uses[place].use != use || uses[place].range != range) {
            all.add(buffer, use);
            all.remove(*uses[place].buffer, uses[place].use, let_go);
            uses[place] = {buffer.get(), use, at, range};
        }
        ++place;
    }
    for (std::size_t at = place; at < uses.size(); ++at) all.remove(*uses[at].buffer, uses[at].use, let_go);
    uses.resize(place);
}

}  // namespace

Result<void> GraphInstance::set_packed(const detail::NodeName& node, const Extent& extent, void* pack,
                                       const LaunchArgument* arguments, std::size_t count) {
    InstanceState& instance = *state_;
    if (instance.device->bars(rules::PublicCall::set_graph_kernel))
        return instance.device->refusal(rules::PublicCall::set_graph_kernel);
    if (instance.device->services.any()) instance.device->services.forget_ended();
    // destroyed after the lock is released: releasing a buffer may wait for streams
    detail::GraphUses::LetGo let_go;
    const std::lock_guard lock(instance.mutex);
    if (node.graph != instance.as_of->id || node.operation >= instance.operations.size()) {
        return make_error<errors::node_of_another_graph>();
    }
    InstanceOperation& operation = instance.operations[node.operation];
    const KernelInfo& kernel = *operation.kernel;
    if (operation.node == platform::NodeHandle::none) return make_error<errors::node_without_name>(kernel.name);
    if (replaces_alike(instance, operation, extent, pack, arguments, count)) {
        const platform::Status status = give_arguments(instance, instance.captures, operation, extent, pack);
        if (!status.ok()) return instance.device->failure(status, "setting the arguments of a graph's kernel");
        take_over_buffers(instance.made.uses, operation, arguments, let_go);
        return {};
    }
    // Otherwise the question above was all: whether the instance's own device is usable.
    if (const detail::DriverGraph& graph = *instance.made.from; graph.devices.size() > 1) {
        if (Result<void> well = graph.usable("setting the arguments of a graph's kernel"); !well) return well;
    }
    if (Result<void> possible = detail::check_extent(kernel, extent); !possible) return possible;
    if (extent.x == 0 || extent.y == 0 || extent.z == 0) {
        return make_error<errors::node_without_items>(kernel.name);
    }
    DeviceState& device = *instance.as_of->device_at(operation.device);
    detail::Judgement judged;
    if (Result<void> lawful =
            detail::judge_arguments(device, device.config->launch_mode, kernel, arguments, count, pack, judged);
        !lawful) {
        return lawful;
    }
    if (Result<void> possible = refuse_in_graphs(instance, kernel, arguments, count, judged); !possible) {
        return possible;
    }
    platform::Captures& captures = *device.driver->captures();
    if (operation.function == platform::FunctionHandle::none) {
        // Functions for nodes are loaded apart from those for launches, at the first change of a kernel of their image.
        constexpr rules::DriverUse use = rules::DriverUse::load_code;
        std::optional<detail::CallInFlight> loading;
        if (!captures.is_resolved_for_nodes(kernel)) {
            if (Result<void> fine = device.allow_now(SealedAct::load_code, "cuLibraryLoadData", kernel.name); !fine) {
                return fine;
            }
            loading = device.services.try_enter(use);
            if (!loading) {
                return device.services.refusal(
                    use, worded("setting the arguments of kernel '{}', whose code for nodes is not loaded yet,",
                                kernel.name));
            }
        }
        const platform::Status found = captures.resolve_for_nodes(kernel, operation.function);
        if (!found.ok()) return device.failure(found, kernel.name);
    }
    // Uses the driver of the node's device: the kernel runs in its context.
    const platform::Status status = give_arguments(instance, captures, operation, extent, pack);
    if (!status.ok()) return device.failure(status, "setting the arguments of a graph's kernel");
    operation.extent = extent;
    take_over_uses(instance.made.uses, operation, kernel, arguments, count, let_go);
    return {};
}

}  // namespace v0
}  // namespace isthmus
