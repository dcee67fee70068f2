// SPDX-License-Identifier: Apache-2.0
// Provenance and access of buffers and ranges. The runtime's records answer for its own memory; the driver is asked
// about all other memory.
#include "launch_access.hpp"

#include "access_rules.hpp"
#include "buffer_state.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "memory_pool_state.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

bool is_host(MemoryKind kind) {
    return kind == MemoryKind::host || kind == MemoryKind::host_numa || kind == MemoryKind::pinned ||
           kind == MemoryKind::registered || kind == MemoryKind::write_combined;
}

// In a record: no device of this runtime.
constexpr std::uint32_t nobody = ~std::uint32_t{0};

Provenance from_record(const DeviceState& device, const provenance::Record& record) {
    Provenance known;
    known.kind = record.kind;
    known.base = record.base;
    known.bytes = record.bytes;
    known.id = record.id;
    known.foreign = known.remembered = (record.flags & provenance::record_flags::foreign) != 0;
    known.device_address = (record.flags & provenance::record_flags::device_address) != 0;
    if (record.device != nobody) known.owner = device.books->launches.devices.at(record.device);
    return known;
}

// The CPU device's driver knows no GPU memory; the driver of any GPU does.
std::shared_ptr<DeviceState> somebody_to_ask(const DeviceState& device) {
    return device.books->launches.devices.first([&](const DeviceState& other) {
        return !other.synchronous && other.usable() && (device.synchronous || &other == &device);
    });
}

Provenance of_the_system() {
    Provenance known;
    known.kind = MemoryKind::host;
    return known;
}

Provenance ask_driver(const DeviceState& device, std::uint64_t address) {
    if (!device.usable()) return {};
    const std::shared_ptr<DeviceState> asked = somebody_to_ask(device);
    if (!asked) return device.synchronous ? of_the_system() : Provenance{};
    // Released memory is nobody's, although the driver still knows it.
    if (device.books->addresses.is_parked(address)) return of_the_system();
    platform::PointerFacts facts;
    if (const platform::Status status = asked->driver->memory().pointer_facts(address, facts); !status.ok()) {
        (void)asked->failure(status, "asking about an address");  // latches a sticky error; the answer stays unknown
        return {};
    }
    if (facts.kind == MemoryKind::unknown) return of_the_system();
    Provenance known;
    known.kind = facts.kind;
    known.base = facts.base;
    known.bytes = facts.bytes;
    known.id = Books::next_id();
    known.owner = device.books->launches.devices.first(
        [&](const DeviceState& other) { return facts.ordinal >= 0 && other.driver->facts().ordinal == facts.ordinal; });
    if (facts.base == 0 || facts.bytes == 0) {
        known.bytes = 0;
        return known;  // without an extent, the answer cannot be kept
    }
    const std::uint32_t owner = known.owner ? static_cast<std::uint32_t>(known.owner->index) : nobody;
    const provenance::Record record{facts.base, facts.bytes, known.id,
                                    owner,      facts.kind,  provenance::record_flags::foreign};
    if (!device.books->addresses.insert(record)) {
        // A record of freed memory is in the way, or another thread has asked, too, and has inserted the same answer.
        forget_foreign(*device.books, facts.base, facts.bytes);
        (void)device.books->addresses.insert(record);
    }
    return known;
}

AccessAnswer not_known() {
    return {Verdict::not_verified, "the driver did not say what this address is",
            "allocate through the runtime, or ask again on a healthy device"};
}

// A pool grants access itself (A5). Memory that came from none of the runtime's pools follows the recorded peer access.
rules::PeerState peer_state(const DeviceState& device, const DeviceState& owner, const PoolState* pool) {
    rules::PeerState state = device.books->peers.state(device.index, owner.index);
    if (pool != nullptr) state.pool_access = pool->allows(device.index);
    return state;
}

AccessAnswer own_access(const DeviceState& device, const Provenance& memory) {
    if (!memory.owner) return rules::device_access(device.capabilities, memory.kind);
    if (memory.owner.get() == &device) return rules::device_access(device.capabilities, memory.kind);
    const bool pooled = memory.kind == MemoryKind::pool || memory.kind == MemoryKind::graph;
    const std::shared_ptr<PoolState> pool = pooled ? device.books->ledger.pool_of(memory.id) : nullptr;
    return rules::peer_access(device.capabilities, memory.owner->capabilities, memory.kind,
                              peer_state(device, *memory.owner, pool.get()));
}

AccessAnswer access_by_kind(const DeviceState& device, const Provenance& memory) {
    if (!memory.foreign) return own_access(device, memory);
    if (memory.owner) {
        return rules::foreign_access(device.capabilities, memory.owner->capabilities, memory.kind,
                                     memory.owner.get() == &device,
                                     device.books->peers.state(device.index, memory.owner->index));
    }
    return rules::foreign_access(device.capabilities, device.capabilities, memory.kind, false, {});
}

AccessAnswer judge_range(const DeviceState& device, const Provenance& memory, std::uint64_t address,
                         std::uint64_t bytes) {
    if (memory.kind == MemoryKind::unknown) return not_known();
    if (!memory.holds(address, bytes)) {
        return {Verdict::no, "the range reaches beyond the allocation that it begins in",
                "check the element count against the allocation's size"};
    }
    if (is_mapped(device, memory, address)) return mapped_access(device, address, bytes, false);
    const rules::AddressForm form{memory.device_address, memory.foreign && memory.id != 0};
    return rules::by_address(device.capabilities, memory.kind, form, access_by_kind(device, memory));
}

}  // namespace

void forget_foreign(Books& books, std::uint64_t base, std::uint64_t bytes) {
    std::vector<provenance::Record> there;
    books.addresses.for_each([&](const provenance::Record& record) {
        const bool foreign = (record.flags & provenance::record_flags::foreign) != 0;
        if (foreign && record.base < base + bytes && base < record.base + record.bytes) there.push_back(record);
    });
    for (const provenance::Record& record : there) (void)books.addresses.erase(record.base, record.id);
}

Provenance provenance_of(const DeviceState& device, std::uint64_t address) {
    if (const provenance::Record record = device.books->addresses.find(address)) return from_record(device, record);
    return ask_driver(device, address);
}

AccessAnswer range_access(const DeviceState& device, std::uint64_t address, std::uint64_t bytes, Provenance* out) {
    if (bytes == 0) return {Verdict::yes, "nothing is touched", {}};
    if (address == 0) return {Verdict::no, "the address is null", "pass the address of live memory"};
    if (bytes > ~address) {
        return {Verdict::no, "the range ends beyond the address space", "check the element count for an overflow"};
    }
    Provenance memory = provenance_of(device, address);
    AccessAnswer answer = judge_range(device, memory, address, bytes);
    if (answer.verdict == Verdict::no && memory.remembered) {
        // Before a remembered answer refuses anything: the memory may have been freed, and other memory may be there
        // now.
        forget_foreign(*device.books, memory.base, memory.bytes);
        memory = provenance_of(device, address);
        answer = judge_range(device, memory, address, bytes);
    }
    if (out != nullptr) *out = std::move(memory);
    return answer;
}

bool is_mapped(const DeviceState& device, const Provenance& memory, std::uint64_t address) {
    if (memory.foreign || !may_be_mapped(memory.kind)) return false;
    return memory.kind == MemoryKind::vmm || device.books->mapped.over(address, 1, device.index).mapped;
}
bool is_mapped(const BufferState& buffer) {
    if (!may_be_mapped(buffer.memory->kind)) return false;
    const DeviceState& owner = *buffer.device;
    return buffer.memory->kind == MemoryKind::vmm ||
           owner.books->mapped.over(buffer.memory->device_address, 1, owner.index).mapped;
}

AccessAnswer mapped_access(const DeviceState& device, std::uint64_t address, std::uint64_t bytes, bool writes) {
    return rules::mapped_access(device.books->mapped.over(address, bytes, device.index), writes);
}

AccessAnswer buffer_access(const DeviceState& device, const BufferState& buffer) {
    const DeviceState& owner = *buffer.device;
    if (owner.books == device.books && is_mapped(buffer)) {
        return mapped_access(device, buffer.memory->device_address, std::max<std::size_t>(buffer.memory->bytes, 1),
                             false);
    }
    if (buffer.memory->path == LaunchPath::stage) {
        // Two memories that the runtime keeps equal: each side has its own.
        if (&owner == &device) return {Verdict::yes, "the device has its own side of the staged buffer", {}};
        if (device.synchronous) return {Verdict::yes, "the host has its own side of the staged buffer", {}};
    }
    if (device.synchronous) return rules::host_access(owner.capabilities, buffer.memory->kind);
    if (&owner == &device || owner.synchronous) return rules::device_access(device.capabilities, buffer.memory->kind);
    // Another runtime records its own peer access: the table of this runtime does not cover its memory.
    if (owner.books != device.books && !is_host(buffer.memory->kind)) {
        return rules::foreign_access(device.capabilities, owner.capabilities, buffer.memory->kind, false, {});
    }
    return rules::peer_access(device.capabilities, owner.capabilities, buffer.memory->kind, buffer.peer_state(device));
}

std::uint64_t buffer_address(const DeviceState& device, const BufferState& buffer) {
    const auto host = reinterpret_cast<std::uintptr_t>(buffer.memory->host);
    if (device.synchronous) return host;
    if (buffer.device.get() == &device) return buffer.memory->device_address;
    // A staged buffer has one side for its owner and one for the host; attached memory belongs to one stream of its
    // owner.
    if (buffer.memory->path == LaunchPath::stage || buffer.memory->path == LaunchPath::attach) return 0;
    switch (buffer.memory->kind) {
        case MemoryKind::host:
        case MemoryKind::host_numa:
        case MemoryKind::pinned: return host;
        case MemoryKind::registered:
            return device.capabilities.has(Feature::registered_same_pointer) ? host : 0;  // attribute 91
        case MemoryKind::write_combined: return 0;      // its address is per device (cuMemHostGetDevicePointer)
        default: return buffer.memory->device_address;  // one address space for all GPUs
    }
}

namespace {

// A mapped range may have memory of several devices: it is halved until each part has one owner. `smallest` divides
// every granularity.
std::shared_ptr<const DeviceState> lost_in_range(const DeviceState& device, std::uint64_t address,
                                                 std::uint64_t bytes) {
    constexpr std::uint64_t smallest = 4096;
    const rules::RangeFacts facts = device.books->mapped.over(address, bytes, device.index);
    if (facts.lies >= 0) {
        std::shared_ptr<const DeviceState> owner =
            device.books->launches.devices.at(static_cast<std::size_t>(facts.lies));
        return owner && owner.get() != &device && owner->is_lost() ? owner : nullptr;
    }
    const std::uint64_t half = bytes / 2 / smallest * smallest;
    if (facts.lies != rules::RangeFacts::in_several || half == 0) return nullptr;
    std::shared_ptr<const DeviceState> found = lost_in_range(device, address, half);
    return found ? found : lost_in_range(device, address + half, bytes - half);
}

bool some_device_is_lost(const DeviceState& device) {
    return device.books->launches.devices.first([](const DeviceState& one) { return one.is_lost(); }) != nullptr;
}

}  // namespace

std::shared_ptr<const DeviceState> lost_owner(const DeviceState& device, const BufferState& buffer) {
    const bool elsewhere = buffer.device.get() != &device;
    if (device.synchronous || (!elsewhere && !buffer.memory->in_several)) return nullptr;
    if (elsewhere && buffer.device->is_lost()) return buffer.device;
    const bool mapped = buffer.memory->kind == MemoryKind::vmm && buffer.device->books == device.books;
    if (!mapped || !some_device_is_lost(device)) return nullptr;
    return lost_in_range(device, buffer.memory->device_address, std::max<std::size_t>(buffer.memory->bytes, 1));
}

std::shared_ptr<const DeviceState> lost_owner(const DeviceState& device, const Provenance& memory,
                                              std::uint64_t address, std::uint64_t bytes) {
    if (device.synchronous || bytes == 0) return nullptr;
    if (memory.kind == MemoryKind::vmm && !memory.foreign) {
        return some_device_is_lost(device) ? lost_in_range(device, address, bytes) : nullptr;
    }
    const bool lost = memory.owner && memory.owner.get() != &device && memory.owner->is_lost();
    return lost ? memory.owner : nullptr;
}

Words described(const BufferState& buffer) {
    return worded("{} memory of {}", name(buffer.memory->kind), named(*buffer.device));
}

Words described(const Provenance& memory) {
    if (memory.kind == MemoryKind::unknown) return Words().append("unknown memory");
    if (memory.id == 0) return Words().append("ordinary host memory");
    Words text = worded("{}{} memory", memory.foreign ? "foreign " : "", name(memory.kind));
    if (memory.owner) text.append(" of ").append(named(*memory.owner));
    return text;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
