// SPDX-License-Identifier: Apache-2.0
// The two ways to grow in place: mapped device memory, and pages at reserved host addresses.
#include "growable_memory.hpp"

#include <isthmus/device.hpp>

#include <platform/os.hpp>
#include <platform/reserved_pages.hpp>

#include "composed.hpp"
#include "mapping_errors.hpp"
#include "memory_pressure.hpp"
#include "virtual_memory_state.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Minimum growth step of ordinary host memory: the usual size of the system's huge pages.
constexpr std::size_t host_granularity = std::size_t{2} << 20;

class MappedGrowable final : public GrowableMemory {
public:
    MappedGrowable(std::shared_ptr<ReservationState> where, const PhysicalOptions& what, DeviceStates owners,
                   DeviceStates let_in)
        : reservation_(std::move(where)), options_(what), owners_(std::move(owners)), devices_(std::move(let_in)) {
        kind = MemoryKind::vmm;
        users = devices_;
        devices = owners_.size();
        in_several = std::any_of(owners_.begin(), owners_.end(),
                                 [this](const auto& owner) { return owner != reservation_->device; });
        reserved_bytes = reservation_->bytes;
        granularity = reservation_->granularity;
    }
    ~MappedGrowable() override { end(); }

    // Creates and maps each handle; one call grants access to all. What a failed step has mapped is undone at once,
    // even while captures are open: its addresses are not in use, and the next attempt needs them.
    Result<void> extend(std::size_t bytes) override {
        Memories step;
        for (const std::size_t part : rules::handles_of_step(bytes, granularity, owners_.size())) {
            Result<std::shared_ptr<PhysicalState>> memory =
                PhysicalState::create(owner_of(handles.size() + step.size()), part, part, options_);
            if (!memory) {
                release_now(step);
                return std::move(memory).error();
            }
            step.push_back(std::move(memory).value());
        }
        // Entered only now: making room for the memory may run user code.
        Result<std::vector<CallInFlight>> calls = enter_all(devices_, "growing a buffer");
        if (!calls) {
            release_now(step);
            return std::move(calls).error();
        }
        Result<void> grown = put_behind(step);
        if (!grown) return grown;
        for (const std::shared_ptr<PhysicalState>& each : step) handles.push_back(each->bytes);
        return {};
    }

    Result<void> give_back_last() override {
        if (Result<void> undone = mappings_.back()->unmap(); !undone) return undone;
        mappings_.pop_back();
        handles.pop_back();
        return {};
    }

    MemoryPlace place(std::size_t handle) const noexcept override { return mappings_[handle]->memory->place; }

    // Each mapping ends itself: it retries a failed undo and defers it behind a running service.
    void end() override {
        while (!mappings_.empty()) mappings_.pop_back();
        handles.clear();
        reservation_.reset();
        ended = true;
    }

    MemoryBlock block() const override {
        MemoryBlock block;
        block.id = reservation_->id;
        block.device = reservation_->base;
        if (options_.where != MemoryPlace::Where::device) {
            block.host = reinterpret_cast<void*>(static_cast<std::uintptr_t>(reservation_->base));
        }
        block.bytes = reservation_->bytes;
        block.kind = kind;
        return block;
    }

private:
    using Memories = std::vector<std::shared_ptr<PhysicalState>>;

    const std::shared_ptr<DeviceState>& owner_of(std::size_t handle) const noexcept {
        return owners_[handle % owners_.size()];
    }
    static void release_now(const Memories& memories) noexcept {
        for (const std::shared_ptr<PhysicalState>& each : memories) each->release_now();
    }

    // Requires that the devices' calls were entered.
    Result<void> put_behind(const Memories& memories) {
        std::vector<std::shared_ptr<MappingState>> added;
        Result<void> open;
        std::size_t offset = mapped_bytes();
        for (const std::shared_ptr<PhysicalState>& memory : memories) {
            Result<std::shared_ptr<MappingState>> mapping = reservation_->map(offset, memory);
            if (!mapping) {
                open = std::move(mapping).error();
                break;
            }
            offset += memory->bytes;
            added.push_back(std::move(mapping).value());
        }
        if (open) open = MappingState::set_access_entered(added, devices_, RangeAccess::read_write);
        if (open) {
            mappings_.insert(mappings_.end(), added.begin(), added.end());
            return open;
        }
        Memories unmapped(memories.begin() + static_cast<std::ptrdiff_t>(added.size()), memories.end());
        for (const std::shared_ptr<MappingState>& mapping : added) {
            if (mapping->unmap_entered()) unmapped.push_back(mapping->memory);
        }
        release_now(unmapped);
        return open;
    }

    std::shared_ptr<ReservationState> reservation_;
    const PhysicalOptions options_;
    const DeviceStates owners_;                            // of the handles, round-robin
    const DeviceStates devices_;                           // with access
    std::vector<std::shared_ptr<MappingState>> mappings_;  // oldest first
};

class HostGrowable final : public GrowableMemory {
public:
    HostGrowable(std::shared_ptr<DeviceState> owner, platform::os::ReservedPages pages)
        : device_(std::move(owner)), pages_(std::move(pages)) {
        kind = MemoryKind::host;
        reserved_bytes = pages_.bytes();
        granularity = host_granularity;
    }
    ~HostGrowable() override { end(); }

    Result<void> extend(std::size_t bytes) override {
        Result<void> made = with_room(*device_, kind, bytes, [&]() -> Result<void> {
            if (Result<void> within = within_budget(*device_, kind, bytes); !within) return within;
            return pages_.commit(mapped_bytes(), bytes);
        });
        if (!made) return made;
        made = known_as(mapped_bytes() + bytes);
        if (made) {
            handles.push_back(bytes);
        } else {
            (void)pages_.decommit(mapped_bytes(), bytes);
        }
        return made;
    }

    // Shortens the known range before the pages are released.
    Result<void> give_back_last() override {
        const std::size_t bytes = handles.back();
        const std::size_t kept = mapped_bytes() - bytes;
        if (Result<void> told = known_as(kept); !told) return told;
        if (Result<void> undone = pages_.decommit(kept, bytes); !undone) {
            (void)known_as(kept + bytes);
            return undone;
        }
        handles.pop_back();
        return {};
    }

    MemoryPlace place(std::size_t) const noexcept override { return {MemoryPlace::Where::host, 0}; }

    void end() override {
        handles.clear();
        if (!std::exchange(ended, true) && !device_->config->forked()) (void)known_as(0);
        pages_ = {};
    }

    MemoryBlock block() const override {
        MemoryBlock block;
        block.host = pages_.data();
        block.device = reinterpret_cast<std::uintptr_t>(pages_.data());
        block.bytes = pages_.bytes();
        block.kind = kind;
        return block;
    }

private:
    // The ledger and address map cover only the memory present. On an error nothing has changed.
    Result<void> known_as(std::size_t bytes) {
        Ledger& ledger = device_->books->ledger;
        if (bytes == 0) {
            if (id_ != 0) ledger.leave(std::exchange(id_, 0));
            return {};
        }
        if (id_ != 0) return ledger.resize(id_, bytes);
        MemoryBlock known = block();
        known.bytes = bytes;
        Piece none;
        Result<std::uint64_t> id = ledger.enter(known, device_->index, none);
        if (!id) return std::move(id).error();
        id_ = *id;
        return {};
    }

    std::shared_ptr<DeviceState> device_;
    platform::os::ReservedPages pages_;
    std::uint64_t id_ = 0;
};

PhysicalOptions physical_options(const GrowableOptions& options) {
    PhysicalOptions physical;
    physical.where = options.where;
    physical.node = options.node;
    physical.compressible = options.compressible;
    return physical;
}

// Reserves addresses whose granularity suits every owner's memory.
Result<std::shared_ptr<ReservationState>> addresses_for(const std::shared_ptr<DeviceState>& device, std::size_t bytes,
                                                        const DeviceStates& owners, const PhysicalOptions& physical) {
    std::size_t unit = 1;
    for (const std::shared_ptr<DeviceState>& owner : owners) {
        Result<platform::Granularity> granularity = ask_granularity(*owner, physical);
        if (!granularity) return std::move(granularity).error();
        unit = std::lcm(unit, granularity->minimum_bytes);
    }
    return ReservationState::reserve(device, bytes, 0, unit);
}

Result<std::shared_ptr<GrowableMemory>> reserve_mapped(const std::shared_ptr<DeviceState>& device, std::size_t bytes,
                                                       const GrowableOptions& options) {
    const PhysicalOptions physical = physical_options(options);
    DeviceStates owners;
    for (const Device* owner : options.stripe) owners.push_back(owner->state());
    Result<DeviceStates> let_in = owners.empty()
                                      ? let_into(device, request_of(*device, 0, physical).place, options.also)
                                      : let_into_stripe(device, owners, options.also);
    if (!let_in) return std::move(let_in).error();
    if (owners.empty()) owners.push_back(device);
    Result<std::shared_ptr<ReservationState>> where = addresses_for(device, bytes, owners, physical);
    if (!where) return std::move(where).error();
    return std::shared_ptr<GrowableMemory>(std::make_shared<MappedGrowable>(
        std::move(where).value(), physical, std::move(owners), std::move(let_in).value()));
}

// The base of the buffer; mapped memory if devices are named for it.
Result<rules::GrowableAnswer> base_for(const DeviceState& device, const GrowableOptions& options) {
    const rules::CreationWish wish = creation_wish(physical_options(options));
    if (options.stripe.empty()) return rules::growable_base(device.capabilities, creation_facts(device), wish);
    const auto refused = [](const rules::MappingAnswer& answer, const DeviceState& by) {
        return refusal(answer, composed("laying a growable buffer over devices, with {},", named(by)));
    };
    for (const Device* each : options.stripe) {
        const DeviceState& owner = *each->state();
        const rules::MappingAnswer answer = rules::may_stripe(owner.capabilities, creation_facts(owner), wish);
        if (!answer) return refused(answer, owner);
    }
    const rules::MappingAnswer reserves = rules::may_reserve(device.capabilities, creation_facts(device));
    if (!reserves) return refused(reserves, device);
    return rules::GrowableAnswer{
        rules::GrowableBase::mapped,
        "addresses are reserved, and memory of the named devices is mapped there in turn as the buffer grows",
        {}};
}

Result<std::shared_ptr<GrowableMemory>> reserve_host(const std::shared_ptr<DeviceState>& device, std::size_t bytes,
                                                     const GrowableOptions& options) {
    if (Result<void> reached = check_host_reach(options.also); !reached) return std::move(reached).error();
    const std::optional<std::size_t> rounded = rules::round_up(bytes, host_granularity);
    Result<platform::os::ReservedPages> pages = platform::os::ReservedPages::reserve(rounded.value_or(0));
    if (!pages) return std::move(pages).error();
    return std::shared_ptr<GrowableMemory>(std::make_shared<HostGrowable>(device, std::move(pages).value()));
}

}  // namespace

std::size_t GrowableMemory::mapped_bytes() const noexcept {
    return std::accumulate(handles.begin(), handles.end(), std::size_t{0});
}

Result<DeviceStates> let_into(const std::shared_ptr<DeviceState>& device, const MemoryPlace& place,
                              const std::vector<const Device*>& also) {
    DeviceStates let_in{device};
    for (const Device* other : also) {
        if (other->state() == device || (other->is_cpu() && place.on_host())) continue;
        Result<void> fine = may_let_in(*other->state(), *device, place, RangeAccess::read_write);
        if (!fine) return std::move(fine).error();
        add_once(let_in, other->state());
    }
    if (!place.on_host()) return let_in;
    std::shared_ptr<DeviceState> cpu =
        device->books->launches.devices.first([](const DeviceState& each) { return each.synchronous; });
    if (cpu) let_in.push_back(std::move(cpu));
    return let_in;
}

Result<DeviceStates> let_into_stripe(const std::shared_ptr<DeviceState>& device, const DeviceStates& owners,
                                     const std::vector<const Device*>& also) {
    DeviceStates let_in{device};
    for (const std::shared_ptr<DeviceState>& owner : owners) add_once(let_in, owner);
    for (const Device* other : also) add_once(let_in, other->state());
    for (const std::shared_ptr<DeviceState>& owner : owners) {
        const MemoryPlace place = request_of(*owner, 0, {}).place;
        for (const std::shared_ptr<DeviceState>& who : let_in) {
            Result<void> fine = may_let_in(*who, *owner, place, RangeAccess::read_write);
            if (!fine) return std::move(fine).error();
        }
    }
    return let_in;
}

Result<void> check_also(const DeviceState& device, const std::vector<const Device*>& also, const char* what) {
    for (const Device* other : also) {
        if (other == nullptr) return make_error<errors::letting_null_device_in>(what);
        if (other->state()->books == device.books) continue;
        return make_error<errors::letting_device_of_another_runtime_in>(what);
    }
    return {};
}

Result<void> check_host_reach(const std::vector<const Device*>& also) {
    for (const Device* other : also) {
        if (other->is_cpu() || other->state()->reaches(MemoryKind::host)) continue;
        return make_error<errors::host_memory_out_of_reach>(other->name());
    }
    return {};
}

Result<std::shared_ptr<GrowableMemory>> reserve_growable(const std::shared_ptr<DeviceState>& device,
                                                         std::size_t max_bytes, const GrowableOptions& options) {
    Result<void> named_well = check_also(*device, options.also, "a growable buffer");
    if (named_well) named_well = check_also(*device, options.stripe, "a growable buffer");
    if (!named_well) return std::move(named_well).error();
    const Result<rules::GrowableAnswer> answered = base_for(*device, options);
    if (!answered) return answered.error();
    const rules::GrowableAnswer& base = *answered;
    if (base.base == rules::GrowableBase::refused) {
        return make_error<errors::growable_buffer_not_available>(base.reason, base.remedy);
    }
    const bool mapped = base.base == rules::GrowableBase::mapped;
    Result<std::shared_ptr<GrowableMemory>> made =
        mapped ? reserve_mapped(device, max_bytes, options) : reserve_host(device, max_bytes, options);
    if (!made) return made;
    (*made)->steps = options.growth == Growth::exact ? rules::GrowthSteps::exact : rules::GrowthSteps::doubling;
    (*made)->reason = base.reason;
    return made;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
