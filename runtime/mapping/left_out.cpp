// SPDX-License-Identifier: Apache-2.0
// Public calls of this room in a build without it: each refuses before any other check.
#include <isthmus/mapping/growable_buffer.hpp>
#include <isthmus/mapping/mirrored_buffer.hpp>
#include <isthmus/mapping/multicast.hpp>
#include <isthmus/mapping/paged_pool.hpp>
#include <isthmus/mapping/virtual_memory.hpp>

#include "left_out.hpp"

namespace isthmus {
inline namespace v0 {
namespace {

Error refused() {
    return detail::left_out("mapping");
}
AccessAnswer not_here() {
    return {Verdict::no, "this libisthmus was built without its component 'mapping'",
            "build it with the Meson option -Dcomponents=mapping (the default has every component)"};
}

}  // namespace

namespace detail {

Result<MadeGrowable> create_growable(const Device& /*device*/, std::size_t /*max_bytes*/,
                                     const GrowableOptions& /*options*/) {
    return refused();
}
Result<void> resize_growable(const std::shared_ptr<BufferState>& /*state*/, GrowableMemory* /*memory*/,
                             std::size_t /*bytes*/, std::size_t /*capacity_bytes*/) {
    return refused();
}
Result<void> trim_growable(const std::shared_ptr<BufferState>& /*state*/, GrowableMemory* /*memory*/, Wait /*wait*/) {
    return refused();
}
GrowableFigures figures_of(const GrowableMemory* /*memory*/) noexcept {
    return {};
}
std::optional<MemoryPlace> place_in(const GrowableMemory* /*memory*/, std::size_t /*byte*/) noexcept {
    return std::nullopt;
}
Result<std::shared_ptr<BufferState>> create_mirrored(const Device& /*device*/, std::size_t /*least_bytes*/,
                                                     std::size_t /*element_bytes*/,
                                                     const MirroredOptions& /*options*/) {
    return refused();
}

Result<MadePagedRange> create_paged_range(const PagedPool& /*pool*/, std::size_t /*slots*/,
                                          std::size_t /*element_bytes*/) {
    return refused();
}
Result<void> map_pages(const std::shared_ptr<BufferState>& /*state*/, PagedMemory* /*memory*/, std::size_t /*first*/,
                       std::span<const Page> /*pages*/) {
    return refused();
}
Result<void> unmap_pages(const std::shared_ptr<BufferState>& /*state*/, PagedMemory* /*memory*/, std::size_t /*first*/,
                         std::size_t /*count*/, Wait /*wait*/) {
    return refused();
}
std::size_t slots_of(const PagedMemory* /*memory*/) noexcept {
    return 0;
}
Page page_in(const PagedMemory* /*memory*/, std::size_t /*slot*/) noexcept {
    return {};
}

}  // namespace detail

std::size_t Page::references() const noexcept {
    return 0;
}
Result<PagedPool> PagedPool::create(const Device& /*device*/, std::size_t /*pages*/,
                                    const PagedPoolOptions& /*options*/) {
    return refused();
}
std::size_t PagedPool::page_bytes() const noexcept {
    return 0;
}
std::size_t PagedPool::pages() const noexcept {
    return 0;
}
std::size_t PagedPool::free_pages() const noexcept {
    return 0;
}
Result<void> PagedPool::grow(std::size_t /*pages*/) {
    return refused();
}
std::size_t PagedPool::trim() {
    return 0;
}
Result<std::vector<Page>> PagedPool::take(std::size_t /*count*/) {
    return refused();
}

Result<MemoryGranularity> memory_granularity(const Device& /*device*/, const PhysicalOptions& /*options*/) {
    return refused();
}

Result<PhysicalMemory> PhysicalMemory::create(const Device& /*device*/, std::size_t /*bytes*/,
                                              const PhysicalOptions& /*options*/) {
    return refused();
}
std::size_t PhysicalMemory::asked_bytes() const noexcept {
    return 0;
}
std::size_t PhysicalMemory::size_bytes() const noexcept {
    return 0;
}
PhysicalOptions PhysicalMemory::options() const noexcept {
    return {};
}
Result<PhysicalProperties> PhysicalMemory::properties() const {
    return refused();
}
AccessAnswer PhysicalMemory::can_export(ExportKinds /*kind*/) const noexcept {
    return not_here();
}
Result<FileDescriptor> PhysicalMemory::export_posix_fd() const {
    return refused();
}
Result<FabricHandle> PhysicalMemory::export_fabric() const {
    return refused();
}
Result<PhysicalMemory> PhysicalMemory::import_posix_fd(const Device& /*device*/, const FileDescriptor& /*fd*/,
                                                       std::size_t /*bytes*/) {
    return refused();
}
Result<PhysicalMemory> PhysicalMemory::import_fabric(const Device& /*device*/, const FabricHandle& /*handle*/,
                                                     std::size_t /*bytes*/) {
    return refused();
}
Result<PhysicalMemory> PhysicalMemory::mapped_at(const Device& /*device*/, std::uint64_t /*address*/) {
    return refused();
}
std::uint64_t PhysicalMemory::native_handle() const noexcept {
    return 0;
}

std::uint64_t Mapping::address() const noexcept {
    return 0;
}
std::size_t Mapping::offset_bytes() const noexcept {
    return 0;
}
std::size_t Mapping::size_bytes() const noexcept {
    return 0;
}
Result<void> Mapping::set_access(std::span<const Device* const> /*devices*/, RangeAccess /*access*/) {
    return refused();
}
RangeAccess Mapping::access(const Device& /*device*/) const noexcept {
    return RangeAccess::none;
}
Result<RangeAccess> Mapping::query_access(const Device& /*device*/) const {
    return refused();
}
Result<void> Mapping::unmap() {
    return refused();
}

Result<AddressReservation> AddressReservation::reserve(const Device& /*device*/, std::size_t /*bytes*/,
                                                       std::size_t /*alignment_bytes*/) {
    return refused();
}
std::uint64_t AddressReservation::base() const noexcept {
    return 0;
}
std::size_t AddressReservation::asked_bytes() const noexcept {
    return 0;
}
std::size_t AddressReservation::size_bytes() const noexcept {
    return 0;
}
std::size_t AddressReservation::mapped_bytes() const noexcept {
    return 0;
}
Result<Mapping> AddressReservation::map(std::size_t /*offset_bytes*/, const PhysicalMemory& /*memory*/) {
    return refused();
}
Result<Mapping> AddressReservation::map(std::size_t /*offset_bytes*/, const MulticastObject& /*object*/) {
    return refused();
}
Result<Mapping> AddressReservation::map_state(std::size_t /*offset_bytes*/,
                                              const std::shared_ptr<detail::PhysicalState>& /*memory*/) {
    return refused();
}
Result<void> AddressReservation::release() {
    return refused();
}

AccessAnswer can_multicast(const Device& /*device*/) {
    return not_here();
}
AccessAnswer can_multimem(const Device& /*device*/) {
    return not_here();
}
Result<MemoryGranularity> multicast_granularity(const Device& /*device*/, std::size_t /*devices*/,
                                                const MulticastOptions& /*options*/) {
    return refused();
}

std::size_t MulticastObject::asked_bytes() const noexcept {
    return 0;
}
std::size_t MulticastObject::size_bytes() const noexcept {
    return 0;
}
std::size_t MulticastObject::devices() const noexcept {
    return 0;
}
Result<void> MulticastObject::bind(std::size_t /*offset*/, const PhysicalMemory& /*memory*/,
                                   std::size_t /*memory_offset*/, std::size_t /*bytes*/) {
    return refused();
}
Result<void> MulticastObject::bind_address(std::size_t /*offset*/, const Device& /*device*/, std::uint64_t /*address*/,
                                           std::size_t /*bytes*/) {
    return refused();
}
Result<void> MulticastObject::unbind(const Device& /*device*/, std::size_t /*offset*/) {
    return refused();
}
std::size_t MulticastObject::bound_bytes(const Device& /*device*/) const noexcept {
    return 0;
}

Result<MulticastGroup> MulticastGroup::create(const Device& /*device*/, std::size_t /*devices*/, std::size_t /*bytes*/,
                                              const MulticastOptions& /*options*/) {
    return refused();
}
Result<MulticastGroup> MulticastGroup::import_posix_fd(const Device& /*device*/, const FileDescriptor& /*fd*/,
                                                       std::size_t /*devices*/, std::size_t /*bytes*/) {
    return refused();
}
std::size_t MulticastGroup::asked_bytes() const noexcept {
    return 0;
}
std::size_t MulticastGroup::size_bytes() const noexcept {
    return 0;
}
std::size_t MulticastGroup::devices() const noexcept {
    return 0;
}
std::size_t MulticastGroup::added() const noexcept {
    return 0;
}
Result<void> MulticastGroup::add(const Device& /*device*/) {
    return refused();
}
Result<FileDescriptor> MulticastGroup::export_posix_fd() const {
    return refused();
}
Result<MulticastObject> MulticastGroup::complete(std::size_t /*added_elsewhere*/) && {
    return refused();
}

}  // namespace v0
}  // namespace isthmus
