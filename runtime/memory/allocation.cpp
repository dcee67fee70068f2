// Making buffers. A step that fails leaves nothing behind: the BufferState that holds what was obtained so far gives
// it back, part by part.
#include "allocation.hpp"

#include "access_rules.hpp"
#include "allocation_policy.hpp"
#include "buffer_state.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "memory_source.hpp"
#include "stream_state.hpp"

#include <isthmus/stream.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace isthmus::inline v0::detail {
namespace {

constexpr std::size_t most_alignment = 256;               // what cuMemAlloc guarantees; pages are coarser
constexpr std::size_t most_bytes = std::size_t{1} << 46;  // no machine has more
// BufferState::recorded_in of memory whose capture another thread ended meanwhile: of no recording.
constexpr std::uint64_t over_already = std::numeric_limits<std::uint64_t>::max();

std::shared_ptr<BufferState> begin(const std::shared_ptr<DeviceState>& device, std::size_t bytes, MemoryKind kind,
                                   std::string_view reason) {
    std::shared_ptr<BufferState> buffer = BufferState::make(device);
    buffer->bytes = bytes;
    buffer->reason = reason;
    be_of_kind(*buffer, device->synchronous ? MemoryKind::host : kind);
    return buffer;
}

// A user's allocator may answer anything.
Result<void> check_block(const MemoryBlock& block, const BufferState& buffer, const Ledger::Origin& origin) {
    if (!block || block.bytes < buffer.bytes) {
        return Error(Code::invalid_argument,
                     composed("an allocator was asked for {} bytes and answered with {}", buffer.bytes,
                              (block ? std::to_string(block.bytes) : std::string("no memory and no error"))),
                     "let the allocator answer with a block of at least that size, or with an Error");
    }
    if (block.kind == MemoryKind::graph && !origin.known) {
        return Error(Code::invalid_argument, "an allocator answered with memory of a graph that no capture allocated",
                     "let the allocator answer with a block of another kind");
    }
    if (block.id == 0 || (origin.known && origin.device == buffer.device->index)) return {};
    return Error(Code::wrong_device, "an allocator of another device was asked for a buffer of this one",
                 "allocate with the device that the allocator was taken from");
}

Result<void> fill_from(BufferState& buffer, const Allocator& allocator, Stream* stream) {
    AllocationRequest request;
    request.bytes = buffer.bytes;
    request.stream = stream;
    Result<MemoryBlock> made = allocator.allocate(request);
    if (!made) return std::move(made).error();
    Ledger& ledger = buffer.device->books->ledger;
    Ledger::Origin origin = ledger.origin(made->id);
    if (Result<void> fine = check_block(*made, buffer, origin); !fine) {
        (void)allocator.release(*made, stream);  // behind its allocation
        return fine;
    }
    const MemoryBlock& block = *made;
    buffer.allocator = allocator;
    buffer.block = block;
    if (buffer.kind != block.kind) be_of_kind(buffer, block.kind);
    if (rules::host_finds(block.kind)) buffer.host = block.host;
    buffer.device_address = block.device != 0 ? block.device : reinterpret_cast<std::uintptr_t>(block.host);
    if (block.id == 0) buffer.users_id = ledger.enter_users(block, buffer.device->index);
    if (block.kind == MemoryKind::graph) {
        const std::uint64_t recording = stream->state()->recording_id();
        buffer.recorded_in = recording != 0 ? recording : over_already;
    }
    if (!rules::is_pooled(block.kind)) return {};
    buffer.pool = std::move(origin.pool);
    if (stream == nullptr) return {};
    StreamState& order = *stream->state();
    std::uint64_t position = 0;
    {
        const std::lock_guard lock(order.mutex);
        position = order.issued;  // of the allocation, or behind it
    }
    buffer.order_on(order, position);
    return {};
}

}  // namespace

Result<std::size_t> bytes_of(const Amount& amount) {
    if (amount.alignment > most_alignment) {
        return Error(Code::invalid_argument,
                     composed("an element alignment of {} bytes; at most 256 are kept", amount.alignment),
                     "align inside the buffer");
    }
    if (amount.count > most_bytes / amount.element_bytes) {
        return Error(
            Code::invalid_argument,
            composed("{} elements of {} bytes are more than any machine has", amount.count, amount.element_bytes),
            "check the element count for an overflow or a negative number");
    }
    return amount.count * amount.element_bytes;
}

void be_of_kind(BufferState& buffer, MemoryKind kind) {
    buffer.kind = kind;
    buffer.host_kind = rules::host_finds(kind) ? kind : MemoryKind::unknown;
    // One memory: what the rule would stage needs a second side, which only a staged plan makes.
    const LaunchPath path = buffer.device->paths[static_cast<std::size_t>(kind)].path;
    buffer.path = path == LaunchPath::stage ? LaunchPath::refuse : path;
}

Untyped allocate_from(const std::shared_ptr<DeviceState>& device, const Allocator& allocator, Amount amount,
                      std::string_view reason, Stream* stream) {
    if (device->bars(rules::PublicCall::allocate_host)) return device->refusal(rules::PublicCall::allocate_host);
    Result<std::size_t> bytes = bytes_of(amount);
    if (!bytes) return std::move(bytes).error();
    std::shared_ptr<BufferState> buffer = begin(device, *bytes, allocator.kind(), reason);
    if (*bytes == 0) return buffer;  // keeps its kind (K3); drivers disagree about zero bytes, so none is asked
    if (Result<void> made = fill_from(*buffer, allocator, stream); !made) return std::move(made).error();
    return buffer;
}

Untyped allocate_kind(const std::shared_ptr<DeviceState>& device, const Allocator& allocator, Amount amount) {
    return allocate_from(device, allocator, amount,
                         device->synchronous ? "the CPU device has host memory only" : "asked for by kind");
}

Untyped allocate_host(const std::shared_ptr<DeviceState>& device, Amount amount, const HostPlacement& placement) {
    return allocate_from(device, MemorySource(device, MemoryKind::host, placement), amount, "asked for as host memory");
}

Untyped allocate_shared(const std::shared_ptr<DeviceState>& device, Amount amount, const SharedUse& use,
                        bool is_signed) {
    if (device->bars(rules::PublicCall::allocate)) return device->refusal(rules::PublicCall::allocate);
    Result<std::size_t> bytes = bytes_of(amount);
    if (!bytes) return std::move(bytes).error();
    Result<rules::AllocationPlan> plan =
        rules::plan_allocation(device->capabilities, use, *bytes, {static_cast<int>(amount.element_bytes), is_signed});
    if (!plan) return std::move(plan).error();
    std::shared_ptr<BufferState> buffer = begin(device, *bytes, plan->kind, plan->reason);
    if (*bytes > 0) {
        const MemorySource source(device, plan->kind, plan->placement);
        if (Result<void> made = fill_from(*buffer, source, nullptr); !made) return std::move(made).error();
    }
    buffer->path = plan->path;
    if (plan->path != LaunchPath::stage) return buffer;
    buffer->host_kind = plan->host_kind;
    if (*bytes == 0) return buffer;
    buffer->host_allocator = MemorySource(device, plan->host_kind, plan->placement);
    AllocationRequest request;
    request.bytes = *bytes;
    Result<MemoryBlock> side = buffer->host_allocator.allocate(request);
    if (!side) return std::move(side).error();
    buffer->host_block = *side;
    buffer->host = side->host;
    buffer->host_newer = true;  // so that a first launch finds on the device what the host sees
    return buffer;
}

}  // namespace isthmus::inline v0::detail
