// SPDX-License-Identifier: Apache-2.0
// Adopting foreign memory: query driver and system, register, add the device's copy and the fence, enter the ledger. If
// a step fails, the owner keeps the memory and its release callback is not called.
#include <isthmus/detail/constant_memory.hpp>
#include <isthmus/detail/own_mapping.hpp>
#include <isthmus/device.hpp>

#include "access_rules.hpp"
#include "adoption_rules.hpp"
#include "allocation.hpp"
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "memory_errors.hpp"
#include "memory_source.hpp"
#include "piece_release.hpp"
#include "share_method.hpp"
#include "stream_state.hpp"

#include <platform/dma_buf.hpp>
#include <platform/os.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// The resources that an adoption has obtained so far. Unless they are kept, the destructor releases them without a call
// of the owner's release.
struct Taking {
    Taking(DeviceState& owner, void* pointer, std::size_t bytes, AdoptOptions& options) : device(owner) {
        piece.make_own().adopted =
            std::make_unique<AdoptedPart>(pointer, bytes, std::move(options.release), options.c_release);
    }
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;
    ~Taking() {
        AdoptedPart* const part = piece.adopted();
        if (part == nullptr) return;
        part->forget();
        free_or_keep(device, std::move(piece), "whose adoption failed");  // registered until a running service ends
    }
    DeviceState& device;
    Piece piece;
    std::uint64_t address = 0;  // device address, once known
};

Result<void> check_pointer(std::uintptr_t address, std::size_t bytes, std::size_t alignment) {
    if (address == 0) return make_error<errors::adoption_of_null_pointer>();
    if (bytes == 0) return make_error<errors::adoption_of_no_elements>();
    if (address + bytes < address) return make_error<errors::adoption_beyond_all_addresses>();
    if (address % alignment == 0) return {};
    return make_error<errors::adoption_of_unaligned_pointer>(alignment);
}

// For pageable memory the driver states nothing; the system's mapping facts are used.
Result<rules::ForeignMemory> facts_of(DeviceState& device, std::uintptr_t address, std::size_t bytes,
                                      platform::PointerFacts& known) {
    rules::ForeignMemory memory;
    const platform::Status asked = device.driver->memory().pointer_facts(address, known);
    if (!asked.ok()) return device.failure(asked, "asking what the adopted memory is");
    // A lost device left this registration behind: the address may now hold other memory.
    if (device.books->ledger.left_registered(address, bytes)) known = {};
    memory.kind = known.kind;
    memory.own_device = known.ordinal == device.driver->facts().ordinal;
    if (known.kind != MemoryKind::unknown) {
        const std::uint64_t offset = address - known.base;
        if (known.base == 0 || (offset <= known.bytes && bytes <= known.bytes - offset)) {
            // Other code may have registered a read-only mapping or device memory. The driver's own pinned allocations
            // also have no pages, so only the mapping's file tells them from device memory.
            if (memory.kind != MemoryKind::pinned && memory.kind != MemoryKind::write_combined) return memory;
            const platform::os::MappingFacts mapping =
                platform::os::mapping_facts(reinterpret_cast<const void*>(address), bytes);
            // Unknown to the system: possibly device memory. It can be used, but nothing may rely on its loads, stores
            // or atomics.
            memory.io_memory = !mapping.known || !mapping.mapped;
            if (!mapping.known || !mapping.mapped) return memory;
            memory.readable = mapping.readable;
            memory.writable = mapping.writable;
            memory.io_memory = mapping.device_mapping;
            return memory;
        }
        return make_error<errors::adoption_leaves_its_allocation>();
    }
    const platform::os::MappingFacts mapping =
        platform::os::mapping_facts(reinterpret_cast<const void*>(address), bytes);
    // Without mapping facts the range may have no pages or not be mapped: an access would fault.
    if (!mapping.known) return make_error<errors::adoption_of_unknown_mapping>();
    if (!mapping.mapped) return make_error<errors::adoption_of_unmapped_memory>();
    memory.readable = mapping.readable;
    memory.writable = mapping.writable;
    memory.driver_mapping = mapping.driver_mapping;
    return memory;
}

// false: the driver call failed, or it would wait for a running service.
bool unregister_beside_services(DeviceState& device, void* pointer) {
    const std::optional<CallInFlight> call = device.services.try_enter(rules::DriverUse::unregister_host);
    return call && device.driver->memory().unregister_host(pointer).ok();
}

// Whether the driver has imported the dma-buf. Only a try shows whether it can: no attribute tells.
bool import_here(Taking& taking, const platform::os::DmaBuf& dma_buf) {
    AdoptedPart& part = *taking.piece.adopted();
    if (!taking.device.services.allow(rules::DriverUse::register_host, "importing the dma-buf")) return false;
    platform::ImportedDmaBuf imported;
    platform::Memory& memory = taking.device.driver->memory();
    const platform::Status status = memory.import_dma_buf(dma_buf.descriptor(), dma_buf.size_bytes(), imported);
    if (status.ok()) {
        part.registered = true;
        part.imported = imported;
        taking.address = imported.device + dma_buf.offset();
        return true;
    }
    (void)taking.device.failure(status, "importing the dma-buf");
    if (imported) {  // the second step failed
        const std::optional<CallInFlight> call = taking.device.services.try_enter(rules::DriverUse::unregister_host);
        part.registered = !call || !memory.release_dma_buf(imported).ok();
        if (part.registered) part.imported = imported;
    }
    return false;
}

// The adoption that results: registered memory if registration succeeded, else the plan's fallback.
Result<rules::AdoptedAs> settle(Taking& taking, const rules::AdoptionPlan& plan, const platform::os::DmaBuf* dma_buf) {
    if (plan.imports && dma_buf != nullptr) {
        if (import_here(taking, *dma_buf)) return plan.imported;
        if (taking.piece.adopted()->registered) return make_error<errors::half_imported_dma_buf>();
    }
    if (!plan.registers) return plan.otherwise;
    AdoptedPart& part = *taking.piece.adopted();
    const Result<void> fine =
        taking.device.services.allow(rules::DriverUse::register_host, "registering the adopted memory");
    if (!fine) {
        if (plan.insists) return fine.error();
        return plan.otherwise;
    }
    std::uint64_t address = reinterpret_cast<std::uintptr_t>(part.pointer);
    const platform::Status status =
        taking.device.driver->memory().register_host(part.pointer, part.bytes, plan.read_only, address);
    if (status.ok()) {
        part.registered = true;
        taking.address = address;
        return plan.registered;
    }
    part.registered = address == 0 && !unregister_beside_services(taking.device, part.pointer);
    // Pages that cannot be pinned or are registered already. A lasting failure is reported again by the next call.
    Error why = taking.device.failure(status, "registering the adopted memory");
    if (plan.insists || taking.device.is_lost()) return why;
    return plan.otherwise;
}

// Allocates the device's copy of staged memory, and a pinned bounce buffer if the driver cannot use the host's memory.
Result<void> make_sides(NewBuffer& buffer) {
    AllocationRequest request;
    request.bytes = buffer.facts.bytes;
    Result<MemoryBlock> side = MemorySource(buffer.device(), buffer.facts.kind).allocate(request);
    if (!side) return std::move(side).error();
    buffer.take(*side);
    buffer.facts.device_address = side->device;
    if (buffer.facts.registered_here) return {};
    Result<MemoryBlock> relay = MemorySource(buffer.device(), MemoryKind::pinned).allocate(request);
    if (!relay) return std::move(relay).error();
    buffer.second_side().host_block = *relay;
    buffer.extras().relay = relay->host;
    return {};
}

struct Fence {
    std::shared_ptr<StreamState> stream;  // nullptr: nothing to wait for
    std::uint64_t position = 0;
};
// The wait runs on a separate stream; the buffer counts as used there.
Result<Fence> make_fence(const std::shared_ptr<DeviceState>& device, AdoptOptions& options, bool at_once) {
    if (!options.after_event && !options.after_function) return Fence{};
    if (at_once) {  // the CPU is the first to read the memory
        if (options.after_event) {
            if (Result<void> waited = options.after_event->synchronize(); !waited) return std::move(waited).error();
        }
        if (options.after_function) options.after_function();
        return Fence{};
    }
    Fence fence{StreamState::make(device, 0), 0};
    device->add_stream(fence.stream);
    Stream stream(fence.stream);
    if (options.after_event) {
        if (Result<void> waits = stream.wait(*options.after_event); !waits) return std::move(waits).error();
    }
    if (options.after_function) {
        Result<void> called = stream.call_on_host([ready = std::move(options.after_function)]() noexcept { ready(); });
        if (!called) return std::move(called).error();
    }
    const std::lock_guard lock(fence.stream->mutex);
    fence.position = fence.stream->issued;
    return fence.position == 0 ? Fence{} : std::move(fence);
}

Result<void> keep(Taking& taking, NewBuffer& buffer, const rules::ForeignMemory& memory) {
    MemoryBlock block;
    block.bytes = buffer.facts.bytes;
    block.device = taking.address;
    block.host = taking.piece.adopted()->pointer;
    block.kind = buffer.facts.kind;
    if (buffer.facts.staged()) {
        block.kind = buffer.facts.host_kind;
        if (memory.driver_mapping) block.kind = MemoryKind::unknown;  // the address alone guarantees nothing
    } else if (!rules::host_finds(buffer.facts.kind)) {
        block.host = nullptr;
    }
    Result<std::uint64_t> id =
        buffer.device()->books->ledger.enter_adopted(block, buffer.device()->index, taking.piece);
    if (!id) return std::move(id).error();
    block.id = *id;
    if (buffer.facts.staged()) {
        buffer.second_side().adopted_block = block;
    } else {
        buffer.take(block);
    }
    return {};
}

using SharedDmaBuf = std::shared_ptr<platform::os::DmaBuf>;

// What AdoptOptions do not say.
struct Terms {
    bool shared = false;    // StorageFacts::shared
    bool constant = false;  // rules::ForeignMemory::constant
};

// `dma_buf`: the memory is its mapping, made by the runtime, and judged by what the system says of it.
Untyped adopt_untold(const std::shared_ptr<DeviceState>& device, void* pointer, std::size_t bytes,
                     AdoptOptions& options, const OwnMapping* own, const Terms& terms, const SharedDmaBuf& dma_buf) {
    Taking taking(*device, pointer, bytes, options);
    if (own != nullptr) taking.piece.adopted()->own_mapping = own->keeper;
    if (dma_buf) taking.piece.adopted()->own_mapping = dma_buf;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    MemoryBlock range;
    range.host = pointer;
    range.bytes = bytes;
    return_unreturned(*device);
    if (Result<void> free = device->books->ledger.refuse_overlap(range); !free) return std::move(free).error();
    if (device->books->addresses.is_parked(address)) return make_error<errors::adoption_of_released_memory>();
    platform::PointerFacts known;
    rules::ForeignMemory ordinary;  // the runtime's own memory needs no query
    ordinary.writable = own == nullptr || own->writable;
    Result<rules::ForeignMemory> memory = own != nullptr ? ordinary : facts_of(*device, address, bytes, known);
    if (!memory) return std::move(memory).error();
    memory->dma_buf = dma_buf != nullptr;
    memory->constant = terms.constant;
    Result<rules::AdoptionPlan> plan = rules::plan_adoption(device->capabilities, *memory, options.use, bytes);
    if (!plan) return std::move(plan).error();
    taking.address = known.device != 0 ? known.device : address;
    Result<rules::AdoptedAs> as = settle(taking, *plan, dma_buf.get());
    if (!as) return std::move(as).error();

    NewBuffer buffer(device);
    buffer.asked_for(options.use);
    StorageFacts& facts = buffer.facts;
    facts.bytes = bytes;
    buffer.explain(as->reason);
    facts.adopted = true;
    if (dma_buf) buffer.extras().dma_buf = dma_buf.get();
    facts.registered_here = taking.piece.adopted()->registered;
    facts.read_only = !memory->writable || memory->constant;
    facts.io_memory = as->io_memory;
    buffer.be_of_kind(as->kind);
    facts.path = as->path;
    if (facts.staged()) {
        facts.host_kind = facts.registered_here ? MemoryKind::registered : MemoryKind::host;
        if (Result<void> made = make_sides(buffer); !made) return std::move(made).error();
    } else {
        facts.device_address = taking.address;
    }
    if (facts.staged() || rules::host_finds(as->kind)) facts.host = pointer;
    facts.shared = terms.shared;
    if (terms.shared) {
        buffer.explain(rules::host_method_reason(device->synchronous, facts.kind, facts.path, facts.host_kind));
    }
    Result<Fence> fence = make_fence(device, options, device->synchronous || buffer.has_relay());
    if (!fence) return std::move(fence).error();
    if (Result<void> kept = keep(taking, buffer, *memory); !kept) return std::move(kept).error();
    std::shared_ptr<BufferState> made = buffer.make();
    if (fence->stream) made->order_on(*fence->stream, fence->position);
    return made;
}

Untyped adopt_memory(const std::shared_ptr<DeviceState>& device, void* pointer, std::size_t bytes,
                     AdoptOptions& options, const OwnMapping* own, const Terms& terms = {},
                     const SharedDmaBuf& dma_buf = nullptr) {
    ObservedSpan span(device->observer(), Span::adopt, "memory of other code", [&] {
        ObservedFacts facts = device->observed();
        facts.bytes = bytes;
        facts.address = reinterpret_cast<std::uintptr_t>(pointer);
        return facts;
    });
    Untyped adopted = adopt_untold(device, pointer, bytes, options, own, terms, dma_buf);
    if (ObservedFacts* const facts = span.facts(); facts != nullptr && adopted) *facts = (*adopted)->observed();
    span.over(adopted);
    return adopted;
}

Result<void> may_adopt(const DeviceState& device) {
    if (device.bars(rules::PublicCall::adopt)) return device.refusal(rules::PublicCall::adopt);
    return {};
}

Untyped adopt_own(const std::shared_ptr<DeviceState>& device, void* pointer, std::size_t bytes, const SharedUse& use,
                  const OwnMapping& mapping, std::function<void()> ended, bool shared) {
    if (Result<void> now = may_adopt(*device); !now) return std::move(now).error();
    if (use.alignment_bytes > 1 && reinterpret_cast<std::uintptr_t>(pointer) % use.alignment_bytes != 0) {
        return make_error<errors::adoption_of_unaligned_pointer>(use.alignment_bytes);
    }
    AdoptOptions options;
    options.use = use;
    if (ended) options.release = [ended = std::move(ended)](void*, std::size_t) noexcept { ended(); };
    return adopt_memory(device, pointer, bytes, options, &mapping, {.shared = shared});
}

Untyped adopt_foreign(const std::shared_ptr<DeviceState>& device, void* pointer, const Amount& amount,
                      AdoptOptions& options, const Terms& terms) {
    if (Result<void> now = may_adopt(*device); !now) return std::move(now).error();
    Result<std::size_t> bytes = bytes_of(amount);
    if (!bytes) return std::move(bytes).error();
    const std::size_t alignment = std::max(amount.alignment, options.use.alignment_bytes);
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (Result<void> fine = check_pointer(address, *bytes, alignment); !fine) return std::move(fine).error();
    return adopt_memory(device, pointer, *bytes, options, nullptr, terms);
}

}  // namespace

Untyped adopt_constant(const std::shared_ptr<DeviceState>& device, void* pointer, std::size_t bytes,
                       AdoptOptions options) {
    return adopt_foreign(device, pointer, {bytes, 1, 1}, options, {.constant = true});
}

Untyped adopt_shared(const std::shared_ptr<DeviceState>& device, void* pointer, std::size_t bytes, const SharedUse& use,
                     const OwnMapping& mapping, std::function<void()> ended) {
    return adopt_own(device, pointer, bytes, use, mapping, std::move(ended), true);
}

Untyped adopt_mapping(const std::shared_ptr<DeviceState>& device, void* pointer, std::size_t bytes,
                      const SharedUse& use, const OwnMapping& mapping, std::function<void()> ended) {
    return adopt_own(device, pointer, bytes, use, mapping, std::move(ended), false);
}

Untyped adopt_dma_buf(const std::shared_ptr<DeviceState>& device, int descriptor, std::uint64_t offset_bytes,
                      const Amount& amount, AdoptOptions options, const platform::os::ProcessCalls& calls) {
    if (descriptor < 0) return make_error<errors::adoption_of_negative_descriptor>();
    if (amount.count == 0) return make_error<errors::adoption_of_no_elements>();
    const Result<std::size_t> bytes = bytes_of(amount);
    if (!bytes) return bytes.error();
    Result<SharedDmaBuf> mapped = platform::os::DmaBuf::map(descriptor, offset_bytes, *bytes, calls);
    if (!mapped) return std::move(mapped).error();
    void* const pointer = (*mapped)->data();
    const std::size_t alignment = std::max(amount.alignment, options.use.alignment_bytes);
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (Result<void> fine = check_pointer(address, *bytes, alignment); !fine) return std::move(fine).error();
    return adopt_memory(device, pointer, *bytes, options, nullptr, {}, *mapped);
}

}  // namespace detail

Device::Untyped Device::adopt_bytes(void* pointer, std::size_t count, std::size_t element_bytes, std::size_t alignment,
                                    AdoptOptions options) {
    return detail::adopt_foreign(state_, pointer, {count, element_bytes, alignment}, options, {});
}

Device::Untyped Device::adopt_descriptor(int descriptor, std::uint64_t offset_bytes, std::size_t count,
                                         std::size_t element_bytes, std::size_t alignment, AdoptOptions options) {
    if (state_->bars(rules::PublicCall::adopt_descriptor)) return state_->refusal(rules::PublicCall::adopt_descriptor);
    return detail::adopt_dma_buf(state_, descriptor, offset_bytes, {count, element_bytes, alignment},
                                 std::move(options), platform::os::ProcessCalls::real());
}

}  // namespace v0
}  // namespace isthmus
