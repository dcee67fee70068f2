// SPDX-License-Identifier: Apache-2.0
// GrowableBuffer: creation, growth, trimming.
#include <isthmus/mapping/growable_buffer.hpp>

#include <isthmus/device.hpp>

#include "buffer_state.hpp"
#include "growable_memory.hpp"
#include "mapping_errors.hpp"
#include "virtual_memory_state.hpp"
#include "wait_pause.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr std::size_t max_growable_bytes = std::size_t{1} << 46;  // more than any machine has

// False for a buffer that was released or moved from: its memory cannot grow.
bool belongs(const std::shared_ptr<BufferState>& state, const GrowableMemory* memory) {
    return state && memory != nullptr && !memory->ended && memory->buffer.lock() == state;
}

// Early check, so that nothing is created in vain; the calls themselves check again.
Result<void> refuse_beside_services(const GrowableMemory& memory, std::string_view what) {
    for (const std::shared_ptr<DeviceState>& each : memory.users) {
        if (each->synchronous || !each->services.any()) continue;
        if (Result<void> fine = each->services.allow(rules::DriverUse::change_mapping, what); !fine) return fine;
    }
    return {};
}

// Preconditions of mapping or obtaining another piece. Without users the memory is the host's.
Result<void> may_grow(DeviceState& device, const GrowableMemory& memory) {
    constexpr std::string_view what = "growing a buffer";
    const bool of_host = memory.users.empty();
    const rules::PublicCall call = of_host ? rules::PublicCall::grow_host_memory : rules::PublicCall::change_mapping;
    if (device.bars(call)) return device.refusal(call, what);
    return refuse_beside_services(memory, what);
}

Result<void> may_trim(BufferState& buffer, const GrowableMemory& memory) {
    DeviceState& device = *buffer.device;
    const bool of_host = memory.users.empty();
    const rules::PublicCall call =
        of_host ? rules::PublicCall::trim_host_memory : rules::PublicCall::trim_mapped_memory;
    const rules::Bar bar = device.bar(call);
    if (bar == rules::Bar::capture_elsewhere || (bar == rules::Bar::capture && of_host)) {
        return make_error<errors::trimming_in_capture>();
    }
    if (bar != rules::Bar::none) return device.refusal(call);
    if (Result<void> fine = refuse_beside_services(memory, "trimming a buffer"); !fine) return fine;
    if (buffer.in_graphs()) return make_error<errors::trimming_buffer_of_graph>();
    if (buffer.views.has_parts()) return make_error<errors::trimming_buffer_with_parts>();
    return {};
}

}  // namespace

Result<MadeGrowable> create_growable(const Device& device, std::size_t max_bytes, const GrowableOptions& options) {
    const std::shared_ptr<DeviceState>& owner = device.state();
    if (owner->bars(rules::PublicCall::create_growable)) return owner->refusal(rules::PublicCall::create_growable);
    if (max_bytes == 0 || max_bytes > max_growable_bytes) {
        return make_error<errors::growable_buffer_size>(max_bytes);
    }
    Result<std::shared_ptr<GrowableMemory>> reserved = reserve_growable(owner, max_bytes, options);
    if (!reserved) return std::move(reserved).error();
    NewBuffer buffer(owner);
    lay_over(buffer, *reserved);
    std::shared_ptr<BufferState> state = buffer.make();
    (*reserved)->buffer = state;
    return MadeGrowable{std::move(state), std::move(reserved).value()};
}

Result<void> resize_growable(const std::shared_ptr<BufferState>& state, GrowableMemory* memory, std::size_t bytes,
                             std::size_t capacity_bytes) {
    if (!belongs(state, memory)) return make_error<errors::growable_buffer_is_empty>("growing a buffer");
    const std::size_t mapped = memory->mapped_bytes();
    const std::optional<std::size_t> step =
        rules::growth_step(memory->steps, mapped, std::max(bytes, capacity_bytes), memory->reserved_bytes,
                           memory->granularity, memory->devices);
    if (!step) return make_error<errors::growing_beyond_addresses>(memory->reserved_bytes);
    if (*step > 0) {
        if (Result<void> can = may_grow(*state->device, *memory); !can) return can;
        if (Result<void> grown = memory->extend(*step); !grown) return grown;
    }
    const std::lock_guard lock(state->views);
    if (*step > 0 && mapped > 0 && state->memory->kind == MemoryKind::vmm && state->memory->host != nullptr) {
        state->add_seam(mapped);
    }
    state->memory.change_size(bytes);
    return {};
}

Result<void> trim_growable(const std::shared_ptr<BufferState>& state, GrowableMemory* memory, Wait wait) {
    if (!belongs(state, memory)) return make_error<errors::growable_buffer_is_empty>("trimming a buffer");
    BufferState& buffer = *state;
    const std::size_t kept = rules::handles_kept(memory->handles, buffer.memory->bytes);
    if (kept == memory->handles.size()) return {};
    if (Result<void> can = may_trim(buffer, *memory); !can) return can;
    if (Result<void> alone = buffer.begin_release(); !alone) {
        return make_error<errors::trimming_buffer_with_open_view>();
    }
    Result<void> trimmed = buffer.wait_until_unused(Deadline(wait, buffer.device->config->wait_timeout));
    while (trimmed && memory->handles.size() > kept) trimmed = memory->give_back_last();
    {
        const std::lock_guard lock(buffer.views);
        buffer.drop_seams_from(memory->mapped_bytes());
    }
    buffer.views.release_failed();
    return trimmed;
}

GrowableFigures figures_of(const GrowableMemory* memory) noexcept {
    return memory != nullptr ? memory->figures() : GrowableFigures{};
}

std::optional<MemoryPlace> place_in(const GrowableMemory* memory, std::size_t byte) noexcept {
    if (memory == nullptr) return std::nullopt;
    std::size_t end = 0;
    for (std::size_t handle = 0; handle < memory->handles.size(); ++handle) {
        end += memory->handles[handle];
        if (byte < end) return memory->place(handle);
    }
    return std::nullopt;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
