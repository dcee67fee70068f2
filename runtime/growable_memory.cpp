// The two ways to grow in place: memory that the driver maps, and pages at reserved host addresses.
#include "growable_memory.hpp"

#include <isthmus/device.hpp>

#include <platform/os.hpp>
#include <platform/reserved_pages.hpp>

#include "memory_pressure.hpp"
#include "memory_source.hpp"
#include "virtual_memory_state.hpp"

#include <numeric>
#include <string>
#include <utility>

namespace isthmus::inline v0::detail {
namespace {

// Ordinary host memory grows by pieces of this size at least: the system's huge pages mostly have it.
constexpr std::size_t host_granularity = std::size_t{2} << 20;

class MappedGrowable final : public GrowableMemory {
public:
    MappedGrowable(std::shared_ptr<ReservationState> where, const PhysicalOptions& what, DeviceStates let_in)
        : reservation_(std::move(where)), options_(what), devices_(std::move(let_in)) {
        kind = MemoryKind::vmm;
        users = devices_;
        reserved_bytes = reservation_->bytes;
        granularity = reservation_->granularity;
    }
    ~MappedGrowable() override { (void)end(); }

    // Three driver calls. What a step that fails has mapped goes back at once, also beside captures: nobody knows the
    // address, and the next attempt needs it.
    Result<void> extend(std::size_t bytes) override {
        Result<std::shared_ptr<PhysicalState>> memory =
            PhysicalState::create(reservation_->device, bytes, bytes, options_);
        if (!memory) return std::move(memory).error();
        // Not before: making room for the memory may run users' code.
        Result<std::vector<CallInFlight>> calls = enter_all(devices_, "growing a buffer");
        if (!calls) return std::move(calls).error();
        Result<void> grown = put_behind(*memory);
        if (grown) handles.push_back(bytes);
        return grown;
    }

    Result<void> give_back_last() override {
        if (Result<void> undone = mappings_.back()->unmap(); !undone) return undone;
        mappings_.pop_back();
        handles.pop_back();
        return {};
    }

    Result<void> end() override {
        Result<void> first;
        while (!mappings_.empty()) {
            Result<void> undone = mappings_.back()->unmap();
            // Beside a service it is put off behind that by its own end, which also tries again what failed.
            if (!undone && undone.code() != Code::in_use && first) first = std::move(undone);
            mappings_.pop_back();
        }
        handles.clear();
        reservation_.reset();
        ended = true;
        return first;
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
    // Expects that the devices' calls were entered.
    Result<void> put_behind(const std::shared_ptr<PhysicalState>& memory) {
        Result<std::shared_ptr<MappingState>> mapping = reservation_->map(mapped_bytes(), memory);
        if (!mapping) {
            memory->release_now();
            return std::move(mapping).error();
        }
        Result<void> open = (*mapping)->set_access_entered(devices_, RangeAccess::read_write);
        if (open) {
            mappings_.push_back(std::move(mapping).value());
        } else if ((*mapping)->unmap_entered()) {
            memory->release_now();
        }
        return open;
    }

    std::shared_ptr<ReservationState> reservation_;
    const PhysicalOptions options_;
    const DeviceStates devices_;
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
    ~HostGrowable() override { (void)end(); }

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

    // It is unknown before it is gone.
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

    Result<void> end() override {
        handles.clear();
        if (!std::exchange(ended, true) && !device_->config->forked()) (void)known_as(0);
        pages_ = {};
        return {};
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
    // Addresses lead to what is there, not to what may come. On an error nothing has changed.
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

Result<std::shared_ptr<GrowableMemory>> reserve_mapped(const std::shared_ptr<DeviceState>& device, std::size_t bytes,
                                                       const GrowableOptions& options) {
    const PhysicalOptions physical = physical_options(options);
    const MemoryPlace place = request_of(*device, 0, physical).place;
    Result<DeviceStates> let_in = let_into(device, place, options.also);
    if (!let_in) return std::move(let_in).error();
    Result<platform::Granularity> granularity = ask_granularity(*device, physical);
    if (!granularity) return std::move(granularity).error();
    Result<std::shared_ptr<ReservationState>> where =
        ReservationState::reserve(device, bytes, 0, granularity->minimum_bytes);
    if (!where) return std::move(where).error();
    return std::shared_ptr<GrowableMemory>(
        std::make_shared<MappedGrowable>(std::move(where).value(), physical, std::move(let_in).value()));
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

Result<void> check_also(const DeviceState& device, const std::vector<const Device*>& also, const char* what) {
    for (const Device* other : also) {
        if (other == nullptr) {
            return Error(Code::invalid_argument, "a null Device was to be let into " + std::string(what),
                         "name devices");
        }
        if (other->state()->books == device.books) continue;
        return Error(Code::wrong_device, "a device of another runtime was to be let into " + std::string(what),
                     "name devices of the runtime that it is made in");
    }
    return {};
}

Result<void> check_host_reach(const std::vector<const Device*>& also) {
    for (const Device* other : also) {
        if (other->is_cpu() || other->state()->reaches(MemoryKind::host)) continue;
        return Error(Code::unsupported,
                     std::string(other->name()) + " does not reach the host memory that the buffer would lie in",
                     "copy into memory of that device");
    }
    return {};
}

Result<std::shared_ptr<GrowableMemory>> reserve_growable(const std::shared_ptr<DeviceState>& device,
                                                         std::size_t most_bytes, const GrowableOptions& options) {
    Result<void> named = check_also(*device, options.also, "a growable buffer");
    if (!named) return std::move(named).error();
    const rules::GrowableAnswer base =
        rules::growable_base(device->capabilities, creation_facts(*device), creation_wish(physical_options(options)));
    if (base.base == rules::GrowableBase::refused) {
        return Error(Code::unsupported, "a growable buffer cannot be had on this device: " + std::string(base.reason),
                     std::string(base.remedy));
    }
    const bool mapped = base.base == rules::GrowableBase::mapped;
    Result<std::shared_ptr<GrowableMemory>> made =
        mapped ? reserve_mapped(device, most_bytes, options) : reserve_host(device, most_bytes, options);
    if (!made) return made;
    (*made)->steps = options.growth == Growth::exact ? rules::GrowthSteps::exact : rules::GrowthSteps::doubling;
    (*made)->reason = base.reason;
    return made;
}

}  // namespace isthmus::inline v0::detail
