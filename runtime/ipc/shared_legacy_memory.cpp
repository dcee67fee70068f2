// SPDX-License-Identifier: Apache-2.0
// Device memory shared by cuIpcMemHandle. The handle names the whole block that an allocation was cut from, so only
// whole granules are shared. Opening it again yields the same memory at the same address.
#include "shared_legacy_memory.hpp"

#include "allocation.hpp"
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "dma_buf_export.hpp"
#include "ipc_errors.hpp"
#include "memory_source.hpp"
#include "piece_release.hpp"
#include "refused_handle.hpp"
#include "shared_memory_bytes.hpp"
#include "shared_piece.hpp"
#include "virtual_memory_state.hpp"

#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr const char* making = "making a buffer to be exported";
constexpr const char* exporting = "exporting memory by an older handle";
constexpr const char* importing = "importing memory";

Result<SharedMemoryDescriptor> describe_at(DeviceState& device, std::uint64_t address, const SharedMemoryFacts& facts) {
    if (device.bars(rules::PublicCall::export_legacy_memory))
        return device.refusal(rules::PublicCall::export_legacy_memory);
    rules::HandleBytes handle{};
    const platform::Status status = device.driver->memory().share(address, handle);
    if (!status.ok()) return device.failure(status, exporting);
    return SharedMemoryAccess::make(rules::encode_shared_memory(facts, handle), facts, FileDescriptor());
}

// Its ExportableBuffer keeps the memory alive.
class LegacyPiece final : public SharedPiece {
public:
    LegacyPiece(std::shared_ptr<DeviceState> owner, const SharedMemoryFacts& told, std::uint64_t address) noexcept
        : SharedPiece(told), device_(std::move(owner)), address_(address) {}
    Result<SharedMemoryDescriptor> describe() const override { return describe_at(*device_, address_, facts()); }
    Result<FileDescriptor> dma_buf() const override {
        return dma_buf_of(*device_, MemoryKind::device, address_, facts().mapped_bytes);
    }

private:
    const std::shared_ptr<DeviceState> device_;
    const std::uint64_t address_;
};

// An opened handle, closed again unless it is kept.
struct Opened {
    explicit Opened(DeviceState& owner) : device(owner) {}
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() {
        if (piece.allocation().bytes > 0) free_or_keep(device, std::move(piece), "whose import failed");
    }
    DeviceState& device;
    Piece piece;
};

// The driver reports the same facts about an opened address as about its own memory.
Result<void> check_against(DeviceState& device, std::uint64_t address, const SharedMemoryFacts& facts) {
    platform::PointerFacts told;
    const platform::Status status = device.driver->memory().pointer_facts(address, told);
    if (!status.ok()) return device.failure(status, "asking what was imported");
    if (told.base == address && told.bytes == facts.mapped_bytes && told.ordinal == device.driver->facts().ordinal) {
        return {};
    }
    return make_error<errors::imported_handle_for_other_memory>(told.bytes, told.ordinal, facts.mapped_bytes);
}

}  // namespace

Result<MadeExportable> make_shared_legacy(const std::shared_ptr<DeviceState>& owner, std::size_t bytes,
                                          std::uint32_t element_bytes) {
    Result<SharedMemoryFacts> facts = rules::make_shared_memory(
        ShareMethod::legacy_ipc, bytes, element_bytes, rules::legacy_granularity_bytes, owner->driver->facts().uuid);
    if (!facts) return std::move(facts).error();
    const Result<std::vector<CallInFlight>> calls = enter_all({owner}, making);
    if (!calls) return calls.error();
    Untyped made = allocate_from(owner, MemorySource(owner, MemoryKind::device).uncached(),
                                 {static_cast<std::size_t>(facts->mapped_bytes), 1, 1},
                                 "made to be exported: device memory by an older handle", nullptr, true);
    if (!made) return std::move(made).error();
    const std::shared_ptr<BufferState> state = std::move(made).value();
    // The driver may export the function without supporting it, so one handle is tried.
    if (Result<SharedMemoryDescriptor> tried = describe_at(*owner, state->memory->device_address, *facts); !tried) {
        if (tried.code() != Code::unsupported) return std::move(tried).error();
        return make_error<errors::no_older_handles>(tried.error().message())
            .from_call(tried.error().call(), tried.error().driver_code());
    }
    state->memory.change_size(bytes);
    return MadeExportable{state, std::make_shared<LegacyPiece>(owner, *facts, state->memory->device_address)};
}

Result<std::shared_ptr<BufferState>> import_shared_legacy(const std::shared_ptr<DeviceState>& owner,
                                                          const SharedMemoryDescriptor& descriptor) {
    const SharedMemoryFacts& facts = descriptor.facts();
    const Result<rules::DecodedMemory> decoded = rules::decode_shared_memory(descriptor.bytes());
    if (!decoded) return decoded.error();
    const Result<std::vector<CallInFlight>> calls = enter_all({owner}, importing);
    if (!calls) return calls.error();
    Opened opened(*owner);
    platform::Allocation& allocation = opened.piece.make_own().allocation;
    const platform::Status status = owner->driver->memory().open_shared(decoded->handle, allocation);
    if (!status.ok()) {
        return refused_handle<errors::imported_memory_of_this_process, errors::imported_memory_unknown>(
            owner->failure(status, importing));
    }
    allocation.bytes = static_cast<std::size_t>(facts.mapped_bytes);
    if (Result<void> fits = check_against(*owner, allocation.device, facts); !fits) return std::move(fits).error();
    MemoryBlock block;
    block.device = allocation.device;
    block.bytes = allocation.bytes;
    block.kind = MemoryKind::imported;
    Result<std::uint64_t> id = owner->books->ledger.enter_adopted(block, owner->index, opened.piece);
    if (!id) {
        if (id.code() != Code::in_use) return std::move(id).error();
        return make_error<errors::memory_imported_twice>();
    }
    opened.piece = {};
    block.id = *id;
    NewBuffer buffer(owner);
    buffer.be_of_kind(MemoryKind::imported);
    buffer.facts.bytes = static_cast<std::size_t>(facts.bytes);
    buffer.explain("imported: memory of a GPU that another process exported by an older handle");
    buffer.facts.device_address = block.device;
    buffer.facts.shared = true;
    buffer.take(block);
    return buffer.make();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
