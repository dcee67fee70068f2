// Making buffers. A step that fails leaves nothing behind: the BufferState that holds what was obtained so far frees
// it, part by part.
#include "allocation.hpp"

#include "allocation_policy.hpp"
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "stream_state.hpp"

#include <cstdint>
#include <limits>
#include <string>

namespace isthmus::inline v0::detail {
namespace {

constexpr std::size_t most_alignment = 256;  // what cuMemAlloc guarantees; pages are coarser
// No machine has more: the driver's own answer would be "out of memory" after a long search.
constexpr std::size_t most_bytes = std::size_t{1} << 46;

Result<std::size_t> bytes_of(const Amount& amount) {
    if (amount.alignment > most_alignment) {
        return Error(Code::invalid_argument,
                     "an element alignment of " + std::to_string(amount.alignment) + " bytes; at most 256 are kept",
                     "align inside the buffer");
    }
    if (amount.count > most_bytes / amount.element_bytes) {
        return Error(Code::invalid_argument,
                     std::to_string(amount.count) + " elements of " + std::to_string(amount.element_bytes) +
                         " bytes are more than any machine has",
                     "check the element count for an overflow or a negative number");
    }
    return amount.count * amount.element_bytes;
}

// The feature without which a kind cannot be had on a GPU.
Result<void> offers(const DeviceState& device, MemoryKind kind) {
    const auto needs = [&](Feature feature) -> Result<void> {
        const Capability& capability = device.capabilities.feature(feature);
        if (capability) return {};
        return Error(Code::unsupported,
                     std::string(name(kind)) + " memory is not to be had on this device: " + capability.reason,
                     "use allocate_shared and let the machine's row choose");
    };
    switch (kind) {
        case MemoryKind::device:
        case MemoryKind::pinned:
        case MemoryKind::write_combined:
        case MemoryKind::host:
        case MemoryKind::host_numa: return {};
        case MemoryKind::pool: return needs(Feature::pools);
        case MemoryKind::managed: return needs(Feature::managed);
        case MemoryKind::registered: return needs(Feature::host_register);
        default: break;
    }
    return Error(
        Code::unsupported, "this version does not allocate " + std::string(name(kind)) + " memory",
        "device, pool, managed, pinned, write_combined, registered, host and host_numa memory can be allocated");
}

bool host_sees(MemoryKind kind) {
    return kind != MemoryKind::device && kind != MemoryKind::pool;
}

Result<void> from_driver(BufferState& buffer, MemoryKind kind, StreamState* stream, platform::Allocation& part) {
    DeviceState& device = *buffer.device;
    const bool guarded = device.capabilities.managed == ManagedModel::phase_guarded;
    const platform::Attachment attachment = guarded ? platform::Attachment::host : platform::Attachment::global;
    const platform::StreamHandle order = stream != nullptr ? stream->handle : platform::StreamHandle::none;
    const platform::Status status = device.driver->memory().allocate(kind, buffer.bytes, attachment, order, part);
    if (status.ok()) return {};
    part = {};
    return device.failure(
        status, "allocating " + std::to_string(buffer.bytes) + " bytes of " + std::string(name(kind)) + " memory");
}

Result<void> from_system(BufferState& buffer, const HostPlacement& placement) {
    const DeviceState& device = *buffer.device;
    Result<platform::os::HostPages> pages = platform::os::HostPages::allocate(
        buffer.bytes, placement, device.capabilities.host_numa_node, device.config->machine);
    if (!pages) return std::move(pages).error();
    buffer.pages = std::move(pages).value();
    buffer.host = buffer.pages.data();
    buffer.device_address = reinterpret_cast<std::uintptr_t>(buffer.host);
    return {};
}

Result<void> register_pages(BufferState& buffer) {
    DeviceState& device = *buffer.device;
    const platform::Status status =
        device.driver->memory().register_host(buffer.pages.data(), buffer.bytes, false, buffer.device_address);
    if (!status.ok()) return device.failure(status, "registering host memory");
    buffer.registered = true;
    return {};
}

// Fills `buffer` with memory of `kind` that the device uses; the host's view of it follows from the kind.
Result<void> provide(BufferState& buffer, MemoryKind kind, StreamState* stream, const HostPlacement& placement) {
    if (buffer.device->synchronous || kind == MemoryKind::host || kind == MemoryKind::host_numa) {
        return from_system(buffer, placement);
    }
    if (kind == MemoryKind::registered) {
        if (Result<void> made = from_system(buffer, placement); !made) return made;
        return register_pages(buffer);
    }
    if (Result<void> made = from_driver(buffer, kind, stream, buffer.allocation); !made) return made;
    buffer.device_address = buffer.allocation.device;
    if (host_sees(kind)) buffer.host = buffer.allocation.host;
    return {};
}

std::shared_ptr<BufferState> begin(const std::shared_ptr<DeviceState>& device, std::size_t bytes, MemoryKind kind,
                                   std::string_view reason) {
    auto buffer = std::make_shared<BufferState>(device);
    buffer->bytes = bytes;
    buffer->kind = device->synchronous ? MemoryKind::host : kind;
    buffer->host_kind = host_sees(buffer->kind) ? buffer->kind : MemoryKind::unknown;
    // One memory: what the rule would stage needs a second side, which only a staged plan makes.
    const LaunchPath path = device->paths[static_cast<std::size_t>(buffer->kind)].path;
    buffer->path = path == LaunchPath::stage ? LaunchPath::refuse : path;
    buffer->reason = reason;
    return buffer;
}

// Pool memory may be used on any stream once its allocation is done: waited for here, because the caller has no
// stream to order it on yet.
Result<void> settle_pool(BufferState& buffer, StreamState& stream) {
    std::uint64_t position = 0;
    {
        const std::lock_guard lock(stream.mutex);
        position = stream.advance("a pool allocation");
    }
    {
        const std::lock_guard lock(buffer.mutex);
        buffer.touch(stream, position, true);
    }
    return stream.wait_until(position, Wait{});
}

// A pool allocation is an operation of `stream`, which therefore needs its handle first.
Result<void> provide_ordered(BufferState& buffer, MemoryKind kind, StreamState& stream,
                             const HostPlacement& placement) {
    const bool pooled = kind == MemoryKind::pool && !buffer.device->synchronous;
    if (pooled) {
        const std::lock_guard lock(stream.mutex);
        if (Result<void> opened = stream.open_handle(); !opened) return opened;
    }
    if (Result<void> made = provide(buffer, kind, &stream, placement); !made) return made;
    return pooled ? settle_pool(buffer, stream) : Result<void>();
}

}  // namespace

Untyped allocate_kind(const std::shared_ptr<DeviceState>& device, StreamState& stream, Amount amount, MemoryKind kind) {
    if (!device->usable()) return device->unusable("an allocation");
    Result<std::size_t> bytes = bytes_of(amount);
    if (!bytes) return std::move(bytes).error();
    if (!device->synchronous) {
        if (Result<void> offered = offers(*device, kind); !offered) return std::move(offered).error();
    }
    std::shared_ptr<BufferState> buffer =
        begin(device, *bytes, kind, device->synchronous ? "the CPU device has host memory only" : "asked for by kind");
    if (*bytes == 0) return buffer;  // keeps its kind (K3); drivers disagree about zero bytes, so none is asked
    HostPlacement placement;
    if (kind == MemoryKind::host_numa) placement.locality = Locality::near_device;
    if (Result<void> made = provide_ordered(*buffer, kind, stream, placement); !made) return std::move(made).error();
    return buffer;
}

Untyped allocate_host(const std::shared_ptr<DeviceState>& device, Amount amount, const HostPlacement& placement) {
    if (device->config->forked()) return device->unusable("an allocation");
    Result<std::size_t> bytes = bytes_of(amount);
    if (!bytes) return std::move(bytes).error();
    std::shared_ptr<BufferState> buffer = begin(device, *bytes, MemoryKind::host, "asked for as host memory");
    if (*bytes == 0) return buffer;
    if (Result<void> made = from_system(*buffer, placement); !made) return std::move(made).error();
    return buffer;
}

Untyped allocate_shared(const std::shared_ptr<DeviceState>& device, StreamState& stream, Amount amount,
                        const SharedUse& use) {
    if (!device->usable()) return device->unusable("an allocation");
    Result<std::size_t> bytes = bytes_of(amount);
    if (!bytes) return std::move(bytes).error();
    Result<rules::AllocationPlan> plan = rules::plan_allocation(device->capabilities, use);
    if (!plan) return std::move(plan).error();
    if (!device->synchronous) {
        if (Result<void> offered = offers(*device, plan->kind); !offered) return std::move(offered).error();
    }
    std::shared_ptr<BufferState> buffer = begin(device, *bytes, plan->kind, plan->reason);
    buffer->path = plan->path;
    if (plan->path == LaunchPath::stage) buffer->host_kind = plan->host_kind;
    if (*bytes == 0) return buffer;
    if (Result<void> made = provide_ordered(*buffer, plan->kind, stream, plan->placement); !made) {
        return std::move(made).error();
    }
    if (plan->path == LaunchPath::stage) {
        if (Result<void> made = from_driver(*buffer, plan->host_kind, nullptr, buffer->host_side); !made) {
            return std::move(made).error();
        }
        buffer->host = buffer->host_side.host;
        buffer->host_newer = true;  // so that a first launch finds on the device what the host sees
    }
    return buffer;
}

}  // namespace isthmus::inline v0::detail
