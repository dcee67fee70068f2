// SPDX-License-Identifier: Apache-2.0
// Host memory shared between processes. SealedMemory seals and checks its file; adoption decides how the device uses
// the mapping, as for all foreign memory.
#include "shared_host_memory.hpp"

#include <isthmus/detail/own_mapping.hpp>

#include "allocation.hpp"
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "ipc_errors.hpp"
#include "sealed_memory.hpp"
#include "share_method.hpp"
#include "shared_memory_bytes.hpp"
#include "shared_piece.hpp"

#include <platform/os.hpp>

#include <fcntl.h>

#include <cerrno>
#include <functional>
#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using platform::os::ProcessCalls;

// The exporter's piece: keeps the file open for further importers until the memory is no longer used here.
class SharedHostPiece final : public SharedPiece {
public:
    SharedHostPiece(std::shared_ptr<DeviceState> owner, const SharedMemoryFacts& told, FileDescriptor file) noexcept
        : SharedPiece(told), device_(std::move(owner)), file_(std::move(file)) {}

    // Another thread may be in describe().
    void end() noexcept {
        const std::lock_guard lock(mutex_);
        file_.close();
    }
    Result<SharedMemoryDescriptor> describe() const override {
        if (device_->bars(rules::PublicCall::export_host_memory))
            return device_->refusal(rules::PublicCall::export_host_memory);
        const std::lock_guard lock(mutex_);
        if (!file_) return make_error<errors::nothing_to_export>();
        FileDescriptor fd(ProcessCalls::real().fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
        if (!fd) return system_failure("fcntl(F_DUPFD_CLOEXEC)", errno, "shared memory could not be exported");
        return SharedMemoryAccess::make(rules::encode_shared_memory(facts(), {}), facts(), std::move(fd));
    }
    // The memory is a file of this process, which the driver has registered at most.
    Result<FileDescriptor> dma_buf() const override { return make_error<errors::dma_buf_of_shared_file>(); }

private:
    const std::shared_ptr<DeviceState> device_;
    mutable std::mutex mutex_;
    FileDescriptor file_;
};

Result<std::shared_ptr<BufferState>> buffer_of(const std::shared_ptr<DeviceState>& owner, SealedMemory memory,
                                               std::size_t bytes, const SharedUse& use, std::function<void()> ended) {
    const auto mapping = std::make_shared<SealedMemory>(std::move(memory));
    return adopt_shared(owner, mapping->data(), bytes, use, {mapping}, std::move(ended));
}

}  // namespace

Result<MadeExportable> make_shared_host(const std::shared_ptr<DeviceState>& owner, std::size_t bytes,
                                        std::uint32_t element_bytes, const SharedUse& use) {
    Result<SharedMemoryFacts> facts = rules::make_shared_memory(
        ShareMethod::host_memory, bytes, element_bytes, platform::os::page_size_bytes(), owner->driver->facts().uuid);
    if (!facts) return std::move(facts).error();
    Result<SealedMemory> memory = SealedMemory::create(static_cast<std::size_t>(facts->mapped_bytes), "isthmus-shared");
    if (!memory) return std::move(memory).error();
    auto piece = std::make_shared<SharedHostPiece>(owner, *facts, memory->take_fd());
    Result<std::shared_ptr<BufferState>> buffer =
        buffer_of(owner, std::move(memory).value(), bytes, use, [piece] { piece->end(); });
    if (!buffer) return std::move(buffer).error();
    return MadeExportable{std::move(buffer).value(), std::move(piece)};
}

Result<std::shared_ptr<BufferState>> import_shared_host(const std::shared_ptr<DeviceState>& owner,
                                                        SharedMemoryDescriptor descriptor, const SharedUse& use) {
    const SharedMemoryFacts facts = descriptor.facts();
    Result<SealedMemory> accepted =
        SealedMemory::accept(SharedMemoryAccess::take_fd(descriptor), static_cast<std::size_t>(facts.mapped_bytes));
    if (!accepted) return std::move(accepted).error();
    accepted->take_fd().close();
    return buffer_of(owner, std::move(accepted).value(), static_cast<std::size_t>(facts.bytes), use, {});
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
