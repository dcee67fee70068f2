// SPDX-License-Identifier: Apache-2.0
// Creating, exporting and importing shared memory. If a step fails, the objects made before undo their steps in reverse
// order.
#include <isthmus/ipc/shared_memory.hpp>

#include <isthmus/device.hpp>
#include <isthmus/stream.hpp>

#include "buffer_memory.hpp"
#include "buffer_state.hpp"
#include "dma_buf_export.hpp"
#include "ipc_errors.hpp"
#include "memory_errors.hpp"
#include "refused_handle.hpp"
#include "share_method.hpp"
#include "shared_host_memory.hpp"
#include "shared_legacy_memory.hpp"
#include "shared_memory_bytes.hpp"
#include "shared_piece.hpp"
#include "virtual_memory_state.hpp"

#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

Result<SharedMemoryDescriptor> SharedMemoryDescriptor::received(std::span<const std::byte> bytes,
                                                                std::vector<FileDescriptor> fds) {
    const Result<rules::DecodedMemory> decoded = rules::decode_shared_memory(bytes);
    if (!decoded) return decoded.error();
    const std::size_t needed = rules::has_file(decoded->facts.method) ? 1 : 0;
    if (fds.size() != needed || (needed == 1 && !fds[0])) {
        return make_error<errors::memory_descriptor_without_its_files>(name(decoded->facts.method), needed, fds.size());
    }
    Bytes own{};
    std::copy(bytes.begin(), bytes.end(), own.begin());
    return SharedMemoryDescriptor(own, decoded->facts, needed == 1 ? std::move(fds[0]) : FileDescriptor());
}

namespace detail {

// One physical allocation, mapped for one device as one buffer.
class SharedMapping final : public BufferMemory, public SharedPiece {
public:
    SharedMapping(std::shared_ptr<MappingState> mapped, const SharedMemoryFacts& told, std::string_view why)
        : SharedPiece(told), mapping_(std::move(mapped)) {
        kind = mapping_->reservation->kind;
        reason = why;
    }
    ~SharedMapping() override { end(); }

    // Dropping the mapping unmaps it, releases the memory and frees the addresses; while a service runs, after the
    // service.
    void end() override {
        mapping_.reset();
        ended = true;
    }
    Result<SharedMemoryDescriptor> describe() const override;
    Result<FileDescriptor> dma_buf() const override {
        if (ended) return make_error<errors::nothing_to_export>();
        return dma_buf_of(*mapping_->memory->device, kind, mapping_->address(), facts().mapped_bytes);
    }

    MemoryBlock block() const override {
        MemoryBlock block;
        block.id = mapping_->reservation->id;
        block.device = mapping_->address();
        block.bytes = static_cast<std::size_t>(facts().bytes);
        block.kind = kind;
        return block;
    }

private:
    std::shared_ptr<MappingState> mapping_;
};

namespace {

constexpr std::string_view making = "making a buffer to be exported";
constexpr std::string_view importing = "importing memory";

// Reserves addresses, maps the memory and grants the device access: three driver calls.
Result<std::shared_ptr<MappingState>> map_for(const std::shared_ptr<DeviceState>& device,
                                              std::shared_ptr<PhysicalState> memory, std::size_t granularity,
                                              MemoryKind kind) {
    Result<std::shared_ptr<ReservationState>> where =
        ReservationState::reserve(device, memory->bytes, 0, granularity, kind);
    if (!where) return std::move(where).error();
    Result<std::shared_ptr<MappingState>> mapping = (*where)->map(0, std::move(memory));
    if (!mapping) return mapping;
    if (Result<void> open = (*mapping)->set_access({device}, RangeAccess::read_write); !open) {
        return std::move(open).error();
    }
    return mapping;
}

// For a fabric only the attribute is checked; fabric_handle() tries the export.
Result<ShareMethod> method_for(const DeviceState& device, const ExportableOptions& options) {
    rules::SharingEnd end = rules::sharing_end(device.capabilities);
    const bool mapped = device.driver->virtual_memory() != nullptr;
    end.posix_fd = end.posix_fd && mapped;
    end.fabric =
        mapped && device.capabilities.has(Feature::virtual_memory) && device.capabilities.has(Feature::export_fabric);
    const rules::ShareMethodAnswer answer =
        rules::choose_share_method(options.seen_by, end, end, !options.other_machines);
    if (answer.method != ShareMethod::none) return answer.method;
    if (options.other_machines) return make_error<errors::no_way_to_other_machines>(answer.reason, answer.remedy);
    return make_error<errors::no_way_to_other_gpus>(answer.reason);
}

// `and_back` imports the handle again: the attribute alone guarantees nothing.
Result<platform::FabricHandle> fabric_handle(PhysicalState& memory, bool and_back) {
    DeviceState& device = *memory.device;
    platform::VirtualMemory& driver = *device.driver->virtual_memory();
    platform::FabricHandle handle{};
    platform::Status status = driver.export_fabric(memory.handle, handle);
    if (!status.ok()) return device.failure(status, "exporting memory by a fabric handle");
    if (!and_back) return handle;
    platform::PhysicalHandle again = platform::PhysicalHandle::none;
    status = driver.import_fabric(handle, again);
    if (!status.ok()) return device.failure(status, "trying a fabric handle");
    // dropping the result releases the handle
    (void)PhysicalState::take_over(memory.device, memory.options, memory.bytes, again);
    return handle;
}

std::shared_ptr<BufferState> shared_buffer(const std::shared_ptr<DeviceState>& owner,
                                           std::shared_ptr<SharedMapping> memory) {
    NewBuffer buffer(owner);
    lay_over(buffer, std::move(memory));
    buffer.facts.bytes = buffer.block().bytes;
    buffer.facts.shared = true;
    return buffer.make();
}

// Everything that importers will see, up to the granularity.
Result<void> fill_with_zeros(Device& device, const std::shared_ptr<BufferState>& state, std::size_t all_bytes) {
    const std::size_t asked = state->memory->bytes;
    state->memory.change_size(all_bytes);
    Result<Stream> stream = device.create_stream();
    if (!stream) return std::move(stream).error();
    Buffer<std::uint8_t> whole(state);
    Result<void> done = stream->fill_bytes(whole, 0);
    if (done) done = stream->synchronize();
    state->memory.change_size(asked);
    return done;
}

Result<MadeExportable> make_zeroed_legacy(Device& device, std::size_t bytes, std::uint32_t element_bytes) {
    Result<MadeExportable> made = make_shared_legacy(device.state(), bytes, element_bytes);
    if (!made) return made;
    const auto all_bytes = static_cast<std::size_t>(made->memory->facts().mapped_bytes);
    if (Result<void> zero = fill_with_zeros(device, made->state, all_bytes); !zero) return std::move(zero).error();
    return made;
}

// Opens the descriptor's handle. The driver's answer to a wrong one is only "unknown" (999).
Result<platform::PhysicalHandle> take_in(DeviceState& device, const SharedMemoryDescriptor& descriptor) {
    platform::VirtualMemory& driver = *device.driver->virtual_memory();
    platform::PhysicalHandle handle = platform::PhysicalHandle::none;
    platform::Status status;
    if (descriptor.facts().method == ShareMethod::posix_fd) {
        status = driver.import_fd(descriptor.fds()[0], handle);
    } else {
        const Result<rules::DecodedMemory> decoded = rules::decode_shared_memory(descriptor.bytes());
        if (!decoded) return decoded.error();
        status = driver.import_fabric(decoded->handle, handle);
    }
    if (status.ok()) return handle;
    Error why = device.failure(status, importing);
    return descriptor.facts().method == ShareMethod::fabric
               ? refused_handle<errors::imported_fabric_handle_unknown, errors::imported_fabric_handle_unknown>(
                     std::move(why))
               : refused_handle<errors::imported_file_unknown, errors::imported_file_unknown>(std::move(why));
}

// The handle's own properties decide, whatever the descriptor claims.
Result<void> check_owner(PhysicalState& memory, ShareMethod method) {
    DeviceState& device = *memory.device;
    platform::PhysicalFacts told;
    const platform::Status status = device.driver->virtual_memory()->properties(memory.handle, told);
    if (!status.ok()) return device.failure(status, "asking what was imported");
    const bool fits = told.place.where == MemoryPlace::Where::device &&
                      (method == ShareMethod::fabric || told.place.id == device.driver->facts().ordinal);
    if (fits) return {};
    return make_error<errors::imported_handle_of_another_device>();
}

}  // namespace

Result<MadeExportable> create_exportable(Device& device, std::size_t bytes, std::uint32_t element_bytes,
                                         const ExportableOptions& options) {
    const std::shared_ptr<DeviceState>& owner = device.state();
    if (Result<void> now = may_change_memory(*owner, making); !now) return std::move(now).error();
    if (options.dma_buf) {
        const bool pinned = options.seen_by == SeenBy::cpus_and_gpus;
        if (Result<void> can = may_export_dma_buf(*owner, pinned ? MemoryKind::pinned : MemoryKind::device); !can) {
            return std::move(can).error();
        }
        if (pinned) return make_pinned_dma_buf(owner, bytes);
    }
    const Result<ShareMethod> method = method_for(*owner, options);
    if (!method) return method.error();
    if (*method == ShareMethod::host_memory) return make_shared_host(owner, bytes, element_bytes, options.use);
    if (*method == ShareMethod::legacy_ipc) return make_zeroed_legacy(device, bytes, element_bytes);
    PhysicalOptions physical;
    physical.exports = *method == ShareMethod::fabric ? ExportKinds::fabric : ExportKinds::posix_fd;
    Result<platform::Granularity> granularity = ask_granularity(*owner, physical);
    if (!granularity) return std::move(granularity).error();
    Result<SharedMemoryFacts> facts = rules::make_shared_memory(
        *method, bytes, element_bytes, granularity->minimum_bytes, owner->driver->facts().uuid);
    if (!facts) return std::move(facts).error();
    const auto all_bytes = static_cast<std::size_t>(facts->mapped_bytes);
    Result<std::shared_ptr<PhysicalState>> memory = PhysicalState::create(owner, bytes, all_bytes, physical);
    if (!memory) return std::move(memory).error();
    if (*method == ShareMethod::fabric) {
        if (Result<platform::FabricHandle> tried = fabric_handle(**memory, true); !tried) {
            const bool last_method = !options.other_machines && rules::sharing_end(owner->capabilities).legacy_ipc;
            if (!last_method || owner->is_lost()) return tried.error();
            *memory = nullptr;
            return make_zeroed_legacy(device, bytes, element_bytes);
        }
    }
    Result<std::shared_ptr<MappingState>> mapping =
        map_for(owner, std::move(memory).value(), granularity->minimum_bytes, MemoryKind::vmm);
    if (!mapping) return std::move(mapping).error();
    auto shared = std::make_shared<SharedMapping>(std::move(mapping).value(), *facts,
                                                  *method == ShareMethod::fabric
                                                      ? "made to be exported: device memory by a fabric handle"
                                                      : "made to be exported: device memory by a file descriptor");
    std::shared_ptr<BufferState> state = shared_buffer(owner, shared);
    if (Result<void> zero = fill_with_zeros(device, state, all_bytes); !zero) return std::move(zero).error();
    return MadeExportable{std::move(state), std::move(shared)};
}

ShareMethod share_method_of(const SharedPiece* memory) noexcept {
    return memory != nullptr ? memory->facts().method : ShareMethod::none;
}

Result<SharedMemoryDescriptor> SharedMapping::describe() const {
    if (ended) return make_error<errors::nothing_to_export>();
    PhysicalState& physical = *mapping_->memory;
    DeviceState& device = *physical.device;
    if (device.bars(rules::PublicCall::export_memory)) return device.refusal(rules::PublicCall::export_memory);
    if (facts().method == ShareMethod::fabric) {
        const Result<platform::FabricHandle> handle = fabric_handle(physical, false);
        if (!handle) return handle.error();
        return SharedMemoryAccess::make(rules::encode_shared_memory(facts(), *handle), facts(), FileDescriptor());
    }
    int number = -1;
    const platform::Status status = device.driver->virtual_memory()->export_fd(physical.handle, number);
    if (!status.ok()) return device.failure(status, "exporting memory by a file descriptor");
    return SharedMemoryAccess::make(rules::encode_shared_memory(facts(), {}), facts(), FileDescriptor(number));
}

Result<SharedMemoryDescriptor> export_shared(const BufferState* state, const SharedPiece* memory) {
    if (state == nullptr || memory == nullptr) return make_error<errors::nothing_to_export>();
    return memory->describe();
}

Result<FileDescriptor> export_as_dma_buf(const BufferState* state, const SharedPiece* memory) {
    if (state == nullptr || memory == nullptr) return make_error<errors::nothing_to_export>();
    return memory->dma_buf();
}

Result<std::shared_ptr<BufferState>> import_shared(const Device& device, SharedMemoryDescriptor descriptor,
                                                   std::uint32_t element_bytes, const ImportOptions& options) {
    const std::shared_ptr<DeviceState>& owner = device.state();
    if (Result<void> now = may_change_memory(*owner, importing); !now) return std::move(now).error();
    const SharedMemoryFacts& facts = descriptor.facts();
    const Feature feature = facts.method == ShareMethod::fabric ? Feature::export_fabric : Feature::export_posix_fd;
    rules::ImportingEnd end;
    end.is_cpu = owner->synchronous;
    const bool legacy = facts.method == ShareMethod::legacy_ipc;
    end.imports = legacy ? rules::sharing_end(owner->capabilities).legacy_ipc
                         : owner->driver->virtual_memory() != nullptr &&
                               owner->capabilities.has(Feature::virtual_memory) && owner->capabilities.has(feature);
    end.device = owner->driver->facts().uuid;
    end.element_bytes = element_bytes;
    end.max_host_bytes = options.max_bytes;
    PhysicalOptions physical;
    if (legacy) end.granularity_bytes = rules::legacy_granularity_bytes;
    if (end.imports && !legacy && facts.method != ShareMethod::host_memory) {
        Result<platform::Granularity> granularity = ask_granularity(*owner, physical);
        if (!granularity) return std::move(granularity).error();
        end.granularity_bytes = granularity->minimum_bytes;
    }
    if (Result<void> fine = rules::may_import(facts, end); !fine) return std::move(fine).error();
    if (facts.method == ShareMethod::host_memory) return import_shared_host(owner, std::move(descriptor), options.use);
    if (legacy) return import_shared_legacy(owner, descriptor);
    const Result<platform::PhysicalHandle> handle = take_in(*owner, descriptor);
    if (!handle) return handle.error();
    std::shared_ptr<PhysicalState> memory =
        PhysicalState::take_over(owner, physical, static_cast<std::size_t>(facts.mapped_bytes), *handle);
    if (Result<void> fits = check_owner(*memory, facts.method); !fits) return std::move(fits).error();
    Result<std::shared_ptr<MappingState>> mapping =
        map_for(owner, std::move(memory), static_cast<std::size_t>(end.granularity_bytes), MemoryKind::imported);
    if (!mapping) {
        if (mapping.error().code() != Code::unsupported) return std::move(mapping).error();
        // An imported handle's size cannot be queried; mapping another size fails with 801.
        return make_error<errors::imported_memory_of_another_size>(facts.mapped_bytes)
            .from_call(mapping.error().call(), mapping.error().driver_code());
    }
    return shared_buffer(owner,
                         std::make_shared<SharedMapping>(std::move(mapping).value(), facts,
                                                         "imported: memory of a GPU that another process exported"));
}

namespace {

Result<void> refuse_private(const BufferState* state, const char* what) {
    if (state == nullptr) return make_error<errors::call_on_empty_buffer>(what);
    if (state->memory->shared) return {};
    return make_error<errors::buffer_of_this_process_alone>(what);
}

}  // namespace
}  // namespace detail

Result<void> flush_shared(const BufferBase& buffer, Wait wait) {
    const std::shared_ptr<detail::BufferState>& state = buffer.state();
    if (Result<void> fine = detail::refuse_private(state.get(), "flushing shared memory"); !fine) return fine;
    if (state->memory->host == nullptr) return state->wait_for_uses(ArgumentUse::read, wait);
    // Waits for device writes, and copies a staged buffer's device contents to the shared memory.
    Result<detail::ViewScope> settled = detail::open_scope(*state, ArgumentUse::read, wait);
    return settled ? Result<void>() : std::move(settled).error();
}

Result<void> invalidate_shared(BufferBase& buffer, Wait wait) {
    const std::shared_ptr<detail::BufferState>& state = buffer.state();
    if (Result<void> fine = detail::refuse_private(state.get(), "invalidating shared memory"); !fine) return fine;
    if (state->memory->host == nullptr) return state->wait_for_uses(ArgumentUse::write, wait);
    {
        const std::lock_guard lock(state->views);
        if (const detail::BufferSides* const sides = state->sides(); sides != nullptr && sides->device_newer()) {
            return make_error<errors::shared_memory_not_flushed>();
        }
    }
    // Waits for what reads it on a device; what the device has of it is then of no use.
    Result<detail::ViewScope> settled = detail::open_scope(*state, ArgumentUse::write, wait);
    return settled ? Result<void>() : std::move(settled).error();
}

Result<SharedMemoryDescriptor> export_memory(const BufferBase& buffer) {
    if (!buffer) return make_error<errors::nothing_to_export>();
    return make_error<errors::buffer_not_exportable>(buffer.can_export().reason);
}

Result<FileDescriptor> export_dma_buf(const BufferBase& buffer) {
    if (!buffer) return make_error<errors::nothing_to_export>();
    return make_error<errors::dma_buf_of_ordinary_buffer>();
}

}  // namespace v0
}  // namespace isthmus
