// SPDX-License-Identifier: Apache-2.0
// Memory of this runtime as a dma-buf for other drivers.
#include "dma_buf_export.hpp"

#include "allocation.hpp"
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "export_rules.hpp"
#include "ipc_errors.hpp"
#include "memory_source.hpp"
#include "shared_piece.hpp"
#include "virtual_memory_state.hpp"

#include <platform/os.hpp>

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Its ExportableBuffer keeps the memory alive.
class PinnedPiece final : public SharedPiece {
public:
    PinnedPiece(std::shared_ptr<DeviceState> owner, const BufferState& state, std::size_t bytes) noexcept
        : SharedPiece({}), device_(std::move(owner)), address_(state.memory->device_address), bytes_(bytes) {}
    Result<SharedMemoryDescriptor> describe() const override { return make_error<errors::pinned_dma_buf_is_no_file>(); }
    Result<FileDescriptor> dma_buf() const override {
        return dma_buf_of(*device_, MemoryKind::pinned, address_, bytes_);
    }

private:
    const std::shared_ptr<DeviceState> device_;
    const std::uint64_t address_;
    const std::size_t bytes_;
};

}  // namespace

Result<void> may_export_dma_buf(const DeviceState& device, MemoryKind kind) {
    const AccessAnswer answer = rules::dma_buf_export(device.capabilities, kind);
    if (answer) return {};
    return make_error<errors::no_dma_buf_export>(answer.reason, answer.remedy);
}

Result<FileDescriptor> dma_buf_of(DeviceState& device, MemoryKind kind, std::uint64_t address, std::uint64_t bytes) {
    if (device.bars(rules::PublicCall::export_dma_buf)) return device.refusal(rules::PublicCall::export_dma_buf);
    if (Result<void> can = may_export_dma_buf(device, kind); !can) return std::move(can).error();
    int number = -1;
    const platform::Status status =
        device.driver->memory().export_dma_buf(address, static_cast<std::size_t>(bytes), number);
    if (!status.ok()) return device.failure(status, "exporting memory as a dma-buf");
    return FileDescriptor(number);  // close-on-exec (observed: driver 580)
}

Result<MadeExportable> make_pinned_dma_buf(const std::shared_ptr<DeviceState>& owner, std::size_t bytes) {
    if (bytes == 0) return make_error<errors::dma_buf_of_no_elements>();
    const std::size_t page = platform::os::page_size_bytes();
    const bool too_many = bytes > std::numeric_limits<std::size_t>::max() - page;
    const std::size_t whole = too_many ? bytes : (bytes + page - 1) / page * page;
    const Result<std::vector<CallInFlight>> calls = enter_all({owner}, "making a buffer to be exported");
    if (!calls) return calls.error();
    Untyped made = allocate_from(owner, MemorySource(owner, MemoryKind::pinned).uncached(), {whole, 1, 1},
                                 "made to be exported: pinned host memory as a dma-buf");
    if (!made) return std::move(made).error();
    std::shared_ptr<BufferState> state = std::move(made).value();
    std::memset(state->memory->host, 0, whole);
    auto piece = std::make_shared<PinnedPiece>(owner, *state, whole);
    state->memory.change_size(bytes);
    return MadeExportable{std::move(state), std::move(piece)};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
