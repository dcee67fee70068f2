// SPDX-License-Identifier: Apache-2.0
// MirroredBuffer: one physical allocation mapped at two consecutive address ranges.
#include <isthmus/mapping/mirrored_buffer.hpp>

#include <isthmus/device.hpp>

#include <platform/os.hpp>
#include <platform/reserved_pages.hpp>

#include "buffer_memory.hpp"
#include "buffer_state.hpp"
#include "growable_memory.hpp"
#include "ledger.hpp"
#include "mapping_errors.hpp"
#include "virtual_memory_state.hpp"

#include <array>
#include <numeric>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr std::size_t max_ring_bytes = std::size_t{1} << 45;

class MappedTwice final : public BufferMemory {
public:
    MappedTwice(std::shared_ptr<ReservationState> where, bool on_host)
        : reservation_(std::move(where)), on_host_(on_host) {
        kind = MemoryKind::vmm;
    }
    ~MappedTwice() override { end(); }

    Result<void> map(const std::shared_ptr<PhysicalState>& memory,
                     const std::vector<std::shared_ptr<DeviceState>>& let_in) {
        for (std::size_t copy = 0; copy < 2; ++copy) {
            Result<std::shared_ptr<MappingState>> mapping = reservation_->map(copy * memory->bytes, memory);
            if (!mapping) return std::move(mapping).error();
            mappings_[copy] = std::move(mapping).value();
            if (Result<void> open = mappings_[copy]->set_access(let_in, RangeAccess::read_write); !open) return open;
        }
        return {};
    }

    // Each mapping ends itself: it retries a failed undo and defers it behind a running service.
    void end() override {
        for (std::shared_ptr<MappingState>& mapping : mappings_) mapping.reset();
        reservation_.reset();
        ended = true;
    }

    MemoryBlock block() const override {
        MemoryBlock block;
        block.id = reservation_->id;
        block.device = reservation_->base;
        if (on_host_) block.host = reinterpret_cast<void*>(static_cast<std::uintptr_t>(reservation_->base));
        block.bytes = reservation_->bytes;
        block.kind = kind;
        return block;
    }

private:
    std::shared_ptr<ReservationState> reservation_;
    bool on_host_;
    std::array<std::shared_ptr<MappingState>, 2> mappings_;
};

class MirroredHost final : public BufferMemory {
public:
    MirroredHost(std::shared_ptr<DeviceState> owner, platform::os::MirroredPages pages)
        : device_(std::move(owner)), pages_(std::move(pages)) {
        kind = MemoryKind::host;
    }
    ~MirroredHost() override { end(); }

    Result<void> enter() {
        Piece none;
        Result<std::uint64_t> id = device_->books->ledger.enter(block(), device_->index, none);
        if (!id) return std::move(id).error();
        id_ = *id;
        return {};
    }
    void end() override {
        if (id_ != 0 && !device_->config->forked()) device_->books->ledger.leave(std::exchange(id_, 0));
        pages_ = {};
        ended = true;
    }
    MemoryBlock block() const override {
        MemoryBlock block;
        block.host = pages_.data();
        block.device = reinterpret_cast<std::uintptr_t>(pages_.data());
        block.bytes = 2 * pages_.bytes();
        block.kind = kind;
        return block;
    }

private:
    std::shared_ptr<DeviceState> device_;
    platform::os::MirroredPages pages_;
    std::uint64_t id_ = 0;
};

// Rounded up to whole granules and whole elements.
Result<std::size_t> ring_bytes(std::size_t least, std::size_t element_bytes, std::size_t granularity) {
    const std::optional<std::size_t> rounded = rules::round_up(least, std::lcm(granularity, element_bytes));
    if (rounded && *rounded <= max_ring_bytes) return *rounded;
    return make_error<errors::mirrored_buffer_size>(least);
}

Result<std::shared_ptr<BufferMemory>> map_twice(const std::shared_ptr<DeviceState>& device, std::size_t least,
                                                std::size_t element_bytes, const PhysicalOptions& physical,
                                                const std::vector<const Device*>& also) {
    const MemoryPlace place = request_of(*device, 0, physical).place;
    Result<std::vector<std::shared_ptr<DeviceState>>> let_in = let_into(device, place, also);
    if (!let_in) return std::move(let_in).error();
    Result<platform::Granularity> granularity = ask_granularity(*device, physical);
    if (!granularity) return std::move(granularity).error();
    Result<std::size_t> bytes = ring_bytes(least, element_bytes, granularity->minimum_bytes);
    if (!bytes) return std::move(bytes).error();
    Result<std::shared_ptr<PhysicalState>> memory = PhysicalState::create(device, least, *bytes, physical);
    if (!memory) return std::move(memory).error();
    Result<std::shared_ptr<ReservationState>> where =
        ReservationState::reserve(device, 2 * *bytes, 0, granularity->minimum_bytes);
    if (!where) return std::move(where).error();
    auto twice = std::make_shared<MappedTwice>(std::move(where).value(), place.on_host());
    if (Result<void> mapped = twice->map(*memory, *let_in); !mapped) return std::move(mapped).error();
    return std::shared_ptr<BufferMemory>(std::move(twice));
}

Result<std::shared_ptr<BufferMemory>> mirror_host(const std::shared_ptr<DeviceState>& device, std::size_t least,
                                                  std::size_t element_bytes, const std::vector<const Device*>& also) {
    if (Result<void> reached = check_host_reach(also); !reached) return std::move(reached).error();
    Result<std::size_t> bytes = ring_bytes(least, element_bytes, platform::os::page_size_bytes());
    if (!bytes) return std::move(bytes).error();
    Result<platform::os::MirroredPages> pages = platform::os::MirroredPages::create(*bytes);
    if (!pages) return std::move(pages).error();
    auto mirrored = std::make_shared<MirroredHost>(device, std::move(pages).value());
    if (Result<void> entered = mirrored->enter(); !entered) return std::move(entered).error();
    return std::shared_ptr<BufferMemory>(std::move(mirrored));
}

}  // namespace

Result<std::shared_ptr<BufferState>> create_mirrored(const Device& device, std::size_t least_bytes,
                                                     std::size_t element_bytes, const MirroredOptions& options) {
    const std::shared_ptr<DeviceState>& owner = device.state();
    if (owner->bars(rules::PublicCall::create_mirrored)) return owner->refusal(rules::PublicCall::create_mirrored);
    if (least_bytes == 0 || least_bytes > max_ring_bytes) return make_error<errors::mirrored_buffer_size>(least_bytes);
    if (Result<void> named = check_also(*owner, options.also, "a mirrored buffer"); !named) {
        return std::move(named).error();
    }
    PhysicalOptions physical;
    physical.where = options.where;
    physical.node = options.node;
    const rules::GrowableAnswer base =
        rules::growable_base(owner->capabilities, creation_facts(*owner), creation_wish(physical));
    if (base.base == rules::GrowableBase::refused) {
        return make_error<errors::mirrored_buffer_not_available>(base.reason, base.remedy);
    }
    const bool mapped = base.base == rules::GrowableBase::mapped;
    Result<std::shared_ptr<BufferMemory>> made =
        mapped ? map_twice(owner, least_bytes, element_bytes, physical, options.also)
               : mirror_host(owner, least_bytes, element_bytes, options.also);
    if (!made) return std::move(made).error();
    (*made)->reason = mapped
                          ? "memory is mapped at two addresses in a row"
                          : "a memory file is mapped at two addresses in a row, which the device uses as host memory";
    NewBuffer buffer(owner);
    lay_over(buffer, *made);
    buffer.facts.bytes = buffer.block().bytes;
    buffer.facts.aliased = true;
    if (buffer.facts.kind == MemoryKind::vmm && buffer.facts.host != nullptr) {
        buffer.extras().seams.assign(1, buffer.facts.bytes / 2);
    }
    return buffer.make();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
