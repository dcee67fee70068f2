// SPDX-License-Identifier: Apache-2.0
// Public calls of this room in a build without it: each refuses before any other check.
#include <isthmus/ipc/export_probe.hpp>
#include <isthmus/ipc/shared_event.hpp>
#include <isthmus/ipc/shared_frame_ring.hpp>
#include <isthmus/ipc/shared_memory.hpp>

#include "left_out.hpp"

namespace isthmus {
inline namespace v0 {
namespace {

Error refused() {
    return detail::left_out("ipc", "mapping,ipc");
}

}  // namespace

namespace detail {

class RingFiles {};

Result<MadeExportable> create_exportable(Device& /*device*/, std::size_t /*bytes*/, std::uint32_t /*element_bytes*/,
                                         const ExportableOptions& /*options*/) {
    return refused();
}
ShareMethod share_method_of(const SharedPiece* /*memory*/) noexcept {
    return ShareMethod::none;
}
Result<SharedMemoryDescriptor> export_shared(const BufferState* /*state*/, const SharedPiece* /*memory*/) {
    return refused();
}
Result<FileDescriptor> export_as_dma_buf(const BufferState* /*state*/, const SharedPiece* /*memory*/) {
    return refused();
}
Result<std::shared_ptr<BufferState>> import_shared(const Device& /*device*/, SharedMemoryDescriptor /*descriptor*/,
                                                   std::uint32_t /*element_bytes*/, const ImportOptions& /*options*/) {
    return refused();
}

// create() and open() always refuse, so the other members are never called.
struct RingProducerCore::Parts {
    const std::shared_ptr<RingFiles> files;
};
RingProducerCore::RingProducerCore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
RingProducerCore::~RingProducerCore() = default;
Error RingProducerCore::published_before() {
    return refused();
}
Result<std::shared_ptr<RingProducerCore>> RingProducerCore::create(const Device& /*device*/, std::size_t /*elements*/,
                                                                   std::size_t /*element_bytes*/,
                                                                   const SharedRingOptions& /*options*/) {
    return refused();
}
void* RingProducerCore::slot(std::size_t /*slot*/) const noexcept {
    return nullptr;
}
const std::shared_ptr<RingFiles>& RingProducerCore::files() const noexcept {
    return parts_->files;
}
OwnMapping RingProducerCore::mapping() const noexcept {
    return {};
}
Result<SharedRingDescriptor> RingProducerCore::admit() {
    return refused();
}
Result<std::uint64_t> RingProducerCore::begin(Wait /*wait*/) {
    return refused();
}
Result<void> RingProducerCore::publish(std::uint64_t /*frame*/, BufferState& /*buffer*/, Wait /*wait*/) {
    return refused();
}
void RingProducerCore::abandon(std::uint64_t /*frame*/) noexcept {}
void RingProducerCore::close() noexcept {}
std::uint64_t RingProducerCore::published() const noexcept {
    return 0;
}
std::vector<SharedReaderInfo> RingProducerCore::readers() {
    return {};
}

struct RingReaderCore::Parts {
    const std::shared_ptr<RingFiles> files;
};
RingReaderCore::RingReaderCore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
RingReaderCore::~RingReaderCore() = default;
Error RingReaderCore::finished_before() {
    return refused();
}
Result<std::shared_ptr<RingReaderCore>> RingReaderCore::open(const Device& /*device*/,
                                                             SharedRingDescriptor /*descriptor*/,
                                                             std::size_t /*element_bytes*/,
                                                             const SharedReaderOptions& /*options*/) {
    return refused();
}
std::size_t RingReaderCore::slots() const noexcept {
    return 0;
}
std::size_t RingReaderCore::elements() const noexcept {
    return 0;
}
SlowReaderPolicy RingReaderCore::policy() const noexcept {
    return SlowReaderPolicy::overwrite;
}
void* RingReaderCore::slot(std::size_t /*slot*/) const noexcept {
    return nullptr;
}
const std::shared_ptr<RingFiles>& RingReaderCore::files() const noexcept {
    return parts_->files;
}
OwnMapping RingReaderCore::mapping() const noexcept {
    return {};
}
Result<RingReaderCore::Taken> RingReaderCore::take(Wait /*wait*/) {
    return refused();
}
void RingReaderCore::arrived(BufferState& /*buffer*/) noexcept {}
Result<void> RingReaderCore::finish(std::uint64_t /*frame*/, BufferState& /*buffer*/, Wait /*wait*/) {
    return refused();
}
void RingReaderCore::give_back(std::uint64_t /*frame*/, const std::shared_ptr<BufferState>& /*buffer*/) noexcept {}

}  // namespace detail

Result<ExportFinding> probe_export(const Device& /*device*/, ExportKinds /*kind*/) {
    return refused();
}

Result<SharedEventDescriptor> SharedEventDescriptor::received(std::span<const std::byte> /*bytes*/) {
    return refused();
}
Result<SharedEventDescriptor> export_event(const Event& /*event*/) {
    return refused();
}
Result<Event> import_event(const Device& /*device*/, const SharedEventDescriptor& /*descriptor*/) {
    return refused();
}

Result<SharedMemoryDescriptor> SharedMemoryDescriptor::received(
    std::span<const std::byte> /*bytes*/, std::vector<FileDescriptor> /*fds*/) {  // NOLINT: owned by the callee
    return refused();
}
Result<SharedMemoryDescriptor> export_memory(const BufferBase& /*buffer*/) {
    return refused();
}
Result<FileDescriptor> export_dma_buf(const BufferBase& /*buffer*/) {
    return refused();
}
Result<void> flush_shared(const BufferBase& /*buffer*/, Wait /*wait*/) {
    return refused();
}
Result<void> invalidate_shared(BufferBase& /*buffer*/, Wait /*wait*/) {
    return refused();
}

Result<SharedRingDescriptor> SharedRingDescriptor::received(
    std::span<const std::byte> /*bytes*/, std::vector<FileDescriptor> /*fds*/) {  // NOLINT: owned by the callee
    return refused();
}
std::string_view name(ReaderState /*state*/) noexcept {
    return "unknown";
}

}  // namespace v0
}  // namespace isthmus
