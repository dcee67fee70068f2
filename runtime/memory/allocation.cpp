// SPDX-License-Identifier: Apache-2.0
// Creates buffers. If a step fails, NewBuffer returns what was obtained so far.
#include "allocation.hpp"

#include "access_rules.hpp"
#include "alignment_rules.hpp"
#include "allocation_policy.hpp"
#include "buffer_lanes.hpp"
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "memory_errors.hpp"
#include "memory_source.hpp"
#include "provenance_errors.hpp"
#include "small_rules.hpp"
#include "stream_state.hpp"

#include <isthmus/stream.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr std::size_t max_bytes = std::size_t{1} << 46;  // more than any machine has
// BufferExtras::recorded_in if another thread has ended the capture meanwhile: matches no capture.
constexpr std::uint64_t over_already = std::numeric_limits<std::uint64_t>::max();

void begin(NewBuffer& buffer, std::size_t bytes, MemoryKind kind, std::string_view reason) {
    buffer.facts.bytes = bytes;
    buffer.explain(reason);
    buffer.be_of_kind(buffer.device()->synchronous ? MemoryKind::host : kind);
}

// A user's allocator may return any block.
Result<void> check_block(const MemoryBlock& block, const NewBuffer& buffer, const Ledger::Origin& origin,
                         std::size_t alignment) {
    const std::size_t bytes = buffer.facts.bytes;
    if (!block) return make_error<errors::allocator_answered_nothing>(bytes);
    const std::uint64_t first = block.host != nullptr ? reinterpret_cast<std::uintptr_t>(block.host) : block.device;
    if (first % alignment != 0) return make_error<errors::allocator_answered_unaligned>(alignment);
    if (block.bytes < bytes) return make_error<errors::allocator_answered_too_little>(bytes, block.bytes);
    if (block.kind == MemoryKind::graph && !origin.known) return make_error<errors::allocator_answered_graph_memory>();
    if (block.id == 0 || (origin.known && origin.device == buffer.device()->index)) return {};
    return make_error<errors::allocator_of_another_device>();
}

// The request for memory of elements that are aligned so; the default alignment is what every source keeps.
AllocationRequest request_of(std::size_t bytes, std::size_t alignment, Stream* stream = nullptr) {
    AllocationRequest request;
    request.bytes = bytes;
    request.alignment = std::max(request.alignment, alignment);
    request.stream = stream;
    return request;
}

// Whether memory so aligned may begin behind what the driver allocated. Its buffer has extras in any case, so that a
// loop that made one before it was sealed keeps what the next one takes.
bool may_have_lead(std::size_t alignment) noexcept {
    return alignment > rules::driver_alignment;
}

// Memory of an Allocator, or of the device's own, which gives it back without one.
template <class Source>
Result<void> fill_from(NewBuffer& buffer, Source& source, std::size_t alignment, Stream* stream = nullptr) {
    const AllocationRequest request = request_of(buffer.facts.bytes, alignment, stream);
    Ledger& ledger = buffer.device()->books->ledger;
    MemorySource::Origin origin;
    Result<MemoryBlock> made = MemoryBlock();
    if constexpr (std::is_same_v<Source, MemorySource>) {
        made = source.allocate(request, &origin);
        if (!made) return std::move(made).error();
    } else {
        made = source.allocate(request);
        if (!made) return std::move(made).error();
        Ledger::Origin known = ledger.origin(made->id);
        if (Result<void> fine = check_block(*made, buffer, known, alignment); !fine) {
            (void)source.release(*made, stream);  // in the order of its allocation
            return fine;
        }
        origin = {std::move(known.pool), known.lead_bytes, nullptr};
        buffer.extras().allocator = source;
    }
    const MemoryBlock& block = *made;
    if (origin.piece != nullptr) {
        buffer.take(*origin.piece);
    } else {
        buffer.take(block);
    }
    if (buffer.facts.kind != block.kind) buffer.be_of_kind(block.kind);
    if (rules::host_finds(block.kind)) buffer.facts.host = block.host;
    buffer.facts.device_address = block.device != 0 ? block.device : reinterpret_cast<std::uintptr_t>(block.host);
    if (origin.lead_bytes != 0 || may_have_lead(alignment)) buffer.extras().lead_bytes = origin.lead_bytes;
    if (block.id == 0) buffer.extras().users_id = ledger.enter_users(block, buffer.device()->index);
    if (block.kind == MemoryKind::graph) {
        const std::uint64_t recording = stream->state()->recording_id();
        buffer.facts.of_graph = true;
        buffer.extras().recorded_in = recording != 0 ? recording : over_already;
    }
    if (rules::is_pooled(block.kind) &&
        (!origin.pool || origin.pool.get() != buffer.device()->pools.own_so_far(block.kind))) {
        buffer.extras().of_other_pool = true;
        buffer.extras().pool = std::move(origin.pool);
    }
    return {};
}

// Makes other streams wait for the allocation of pool memory before their first use.
void order_on(BufferState& buffer, const Stream& stream) {
    StreamState& order = *stream.state();
    buffer.order_on(order, order.issued);  // at or after the allocation, which this thread made
}

}  // namespace

Result<std::size_t> bytes_of(const Amount& amount) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(amount.count, amount.element_bytes, &bytes) || bytes > max_bytes) {
        return make_error<errors::elements_larger_than_any_machine>(amount.count, amount.element_bytes);
    }
    return bytes;
}

namespace {

// What a buffer gets beside its state while it is made, each with what stands before it.
enum class Beside : std::uint8_t { nothing, extras, second_side };

// Whether the device keeps what the state of a buffer lies in.
bool keeps_state(const DeviceState& device, Beside beside) {
    if (!device.buffer_states->any_idle()) return false;
    if (beside == Beside::nothing) return true;
    if (!device.buffer_books->any_idle() || !device.buffer_extras->any_idle()) return false;
    return beside == Beside::extras || device.second_sides->any_idle();
}

// Otherwise it comes from the heap: a sealed scope refuses that.
Result<void> has_state(DeviceState& device, Beside beside) {
    if (device.sealed_by() == nullptr || keeps_state(device, beside)) return {};
    if (empty_lanes(device).bytes != 0 && keeps_state(device, beside)) return {};
    return device.allow_now(SealedAct::use_heap, "operator new", "making a buffer");
}

// Whether a buffer of one block gets extras while it is made. One of a kind that is staged does not: it has no second
// side. Memory allocated in a capture belongs to its graph.
template <class Source>
bool gets_extras(const DeviceState& device, MemoryKind kind, std::size_t bytes, std::size_t alignment,
                 const Stream* stream) {
    if (device.paths[static_cast<std::size_t>(kind)].path == LaunchPath::attach) return true;
    if (bytes == 0) return false;
    const bool of_allocator = !std::is_same_v<Source, MemorySource>;
    const bool may_be_captured = stream != nullptr && (device.books->captures.any() || stream->state()->others());
    return of_allocator || may_have_lead(alignment) || may_be_captured;
}

template <class Source>
Untyped fill_new(const std::shared_ptr<DeviceState>& device, Source& source, MemoryKind asked, const Amount& amount,
                 std::string_view reason, Stream* stream, bool shared, const rules::SharedRequest& request = {}) {
    if (device->bars(rules::PublicCall::allocate_host)) return device->refusal(rules::PublicCall::allocate_host);
    Result<std::size_t> bytes = bytes_of(amount);
    if (!bytes) return std::move(bytes).error();
    const MemoryKind kind = device->synchronous ? MemoryKind::host : source.kind();
    const bool with_extras = gets_extras<Source>(*device, kind, *bytes, amount.alignment, stream);
    if (Result<void> room = has_state(*device, with_extras ? Beside::extras : Beside::nothing); !room) {
        return std::move(room).error();
    }
    NewBuffer buffer(device);
    begin(buffer, *bytes, source.kind(), reason);
    buffer.asked_for(asked);
    buffer.facts.shared = shared;
    if (*bytes == 0) return buffer.make();  // keeps its kind (K3); drivers differ on zero bytes, so none is called
    if (Result<void> made = fill_from(buffer, source, amount.alignment, stream); !made) {
        return std::move(made).error();
    }
    if (buffer.facts.kind == source.kind()) buffer.of_request(request);  // memory of a graph is not
    const bool ordered = stream != nullptr && rules::is_pooled(buffer.block().kind);
    std::shared_ptr<BufferState> made = buffer.make();
    if (ordered) order_on(*made, *stream);
    return made;
}

}  // namespace

Untyped allocate_from(const std::shared_ptr<DeviceState>& device, const Allocator& allocator, Amount amount,
                      std::string_view reason, Stream* stream, bool shared) {
    // Every allocator of the CPU device gives host memory: which kind it stands for is not known.
    const MemoryKind asked = device->synchronous ? MemoryKind::unknown : allocator.kind();
    return fill_new(device, allocator, asked, amount, reason, stream, shared);
}

std::string_view text(KindReason reason) noexcept {
    switch (reason) {
        case KindReason::by_kind: return "asked for by kind";
        case KindReason::on_cpu_device: return "the CPU device has host memory only";
        case KindReason::by_current_allocator: return "the device's current allocator";
        case KindReason::by_allocator: return "asked for by allocator";
        case KindReason::in_order: return "allocated in the order of a stream";
        case KindReason::as_host: return "asked for as host memory";
    }
    return {};
}

namespace {

Untyped allocate_own(const std::shared_ptr<DeviceState>& device, MemoryKind kind, const Amount& amount,
                     KindReason reason, Stream* stream, const HostPlacement& placement) {
    if (device->bars(rules::PublicCall::allocate_host)) return device->refusal(rules::PublicCall::allocate_host);
    rules::KindRequest asked;
    asked.bytes = bytes_of(amount).value_or(0);
    asked.alignment = amount.alignment;
    asked.kind = kind;
    asked.reason = static_cast<std::uint8_t>(reason);
    asked.placement = placement;
    asked.in_order = stream != nullptr && rules::is_pooled(kind) && !device->synchronous;
    if (asked.in_order) asked.stream_id = stream->state()->id;
    const rules::SharedRequest request = rules::kind_request(asked);
    StreamState* const order = asked.in_order ? stream->state().get() : nullptr;
    std::shared_ptr<BufferState> again = wake_buffer(*device, request, order);
    if (!again && amount.alignment <= rules::driver_alignment) again = exchange_buffer(*device, request, order, {});
    if (again) {
        if (order != nullptr) order_on(*again, *stream);
        return again;
    }
    MemorySource source(device, kind, placement);
    return fill_new(device, source, kind, amount, text(reason), stream, false, request);
}

}  // namespace

Untyped allocate_kind(const std::shared_ptr<DeviceState>& device, MemoryKind kind, Amount amount, KindReason reason,
                      Stream* stream) {
    return allocate_own(device, kind, amount, reason, stream, {});
}

Untyped allocate_host(const std::shared_ptr<DeviceState>& device, Amount amount, const HostPlacement& placement) {
    return allocate_own(device, MemoryKind::host, amount, KindReason::as_host, nullptr, placement);
}

Untyped allocate_shared(const std::shared_ptr<DeviceState>& device, Amount amount, const SharedUse& use,
                        bool is_signed) {
    if (device->bars(rules::PublicCall::allocate)) return device->refusal(rules::PublicCall::allocate);
    Result<std::size_t> bytes = bytes_of(amount);
    if (!bytes) return std::move(bytes).error();
    if (use.alignment_bytes != 0 && !std::has_single_bit(use.alignment_bytes)) {
        return make_error<errors::allocation_alignment>(use.alignment_bytes);
    }
    const std::size_t alignment = std::max(amount.alignment, use.alignment_bytes);
    const rules::SharedRequest request =
        rules::shared_request(*bytes, amount.element_bytes, amount.alignment, is_signed, use);
    if (std::shared_ptr<BufferState> again = wake_buffer(*device, request)) return again;
    const rules::SharedWord word{static_cast<int>(amount.element_bytes), is_signed};
    Result<rules::AllocationPlan> plan = rules::plan_allocation(device->capabilities, use, *bytes, word);
    if (!plan) return std::move(plan).error();
    if (plan->path != LaunchPath::stage && alignment <= rules::driver_alignment) {
        OtherBuffer other{device->synchronous ? MemoryKind::host : plan->kind, plan->path, plan->reason};
        other.place_bytes = rules::small_place(device->capabilities, other.kind, plan->placement, *bytes, alignment);
        if (std::shared_ptr<BufferState> again = exchange_buffer(*device, request, nullptr, other)) return again;
    }
    const bool with_extras = plan->path == LaunchPath::attach || (*bytes > 0 && may_have_lead(alignment));
    const Beside beside = plan->path == LaunchPath::stage ? Beside::second_side
                          : with_extras                   ? Beside::extras
                                                          : Beside::nothing;
    if (Result<void> room = has_state(*device, beside); !room) return std::move(room).error();
    NewBuffer buffer(device);
    buffer.asked_for(use);
    begin(buffer, *bytes, plan->kind, plan->reason);
    bool decided = true;  // by the request and the device alone
    if (*bytes > 0) {
        const auto fill = [&] {
            MemorySource source = MemorySource(device, plan->kind, plan->placement).sharing_pages();
            return fill_from(buffer, source, alignment);
        };
        Result<void> made = fill();
        if (!made && rules::cannot_register(made.code())) {
            if (const auto other = rules::without_registering(device->capabilities, use, *plan, word)) {
                plan = *other;  // as this attempt went, not as the next one has to
                decided = false;
                begin(buffer, *bytes, plan->kind, plan->reason);
                made = fill();
            }
        }
        if (!made) return std::move(made).error();
    }
    buffer.facts.path = plan->path;
    if (decided) buffer.of_request(request);
    if (plan->path != LaunchPath::stage) return buffer.make();
    buffer.facts.host_kind = plan->host_kind;
    if (*bytes == 0) return buffer.make();
    MemorySource source = MemorySource(device, plan->host_kind, plan->placement).sharing_pages();
    MemorySource::Origin origin;
    Result<MemoryBlock> side = source.allocate(request_of(*bytes, alignment), &origin);
    if (!side) return std::move(side).error();
    buffer.second_side().host_block = *side;
    buffer.second_side().piece = origin.piece;
    buffer.facts.host = side->host;
    return buffer.make();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
