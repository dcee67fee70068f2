// SPDX-License-Identifier: Apache-2.0
// Prefetches, discards and advice, and the driver's record of them.
#include "access.hpp"
#include "batches.hpp"
#include "call.hpp"
#include "copies.hpp"

#include <cstring>
#include <set>
#include <vector>

namespace isthmus::sim {
namespace {

constexpr int nowhere = 0, on_device = 1, on_host = 2, on_node = 3, on_callers_node = 4;
constexpr int cpu = -1, no_device = -2;  // CU_DEVICE_CPU, CU_DEVICE_INVALID

// The oldest forms of the calls name a device, or the CPU as -1.
Location location_of(DeviceOrdinal device) {
    return device == cpu ? Location{on_host, 0} : Location{on_device, device};
}

Result check_place(const Driver& d, Location where) {
    switch (where.type) {
        case on_device: return d.valid(where.id) ? result::ok : result::invalid_device;
        case on_host:
        case on_callers_node: return result::ok;
        case on_node:
            for (const NumaNode& node : d.machine.record().facts.numa_nodes) {
                if (node.id == where.id) return result::ok;
            }
            return result::invalid_device;
        default: return result::invalid_value;
    }
}

// Finds a range that accepts hints: managed memory, or the program's own memory where the device can access it.
// `managed` is null for the latter, whose hints are not recorded.
Result find_range(Driver& d, Address address, std::size_t bytes, int asked, Found& managed) {
    if (bytes == 0 || address == 0) return result::invalid_value;
    const Found found = d.regions.find(address);
    if (!found) return d.fact(asked, attribute::pageable) != 0 ? result::ok : result::invalid_value;
    if (found.region->kind != Kind::managed || bytes > found.region->bytes - found.offset_bytes) {
        return result::invalid_value;
    }
    managed = found;
    return d.machine.device(asked).prefetch_code;  // the answer of this machine's driver for managed memory
}

Result note_prefetch(Driver& d, Address address, std::size_t bytes, Location where, int stream_device) {
    if (const Result code = check_place(d, where)) return code;
    const std::lock_guard lock(d.mutex);
    Found managed;
    const int asked = where.type == on_device ? where.id : stream_device;
    if (const Result code = find_range(d, address, bytes, asked, managed)) return code;
    if (managed) {
        managed.region->hints.apply(managed.offset_bytes, bytes, [&](Hints& hints) { hints.last_prefetch = where; });
    }
    return result::ok;
}

engine::Operation prefetch_operation() {
    engine::Operation operation;
    operation.label = "cuMemPrefetchAsync";
    return operation;
}

Result prefetch(Driver& d, Address address, std::size_t bytes, Location where, Stream* handle) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (const Result code = check_not_capturing(d, stream)) return code;
    if (const Result code = note_prefetch(d, address, bytes, where, stream.device)) return code;
    return d.engine().submit(stream.id, prefetch_operation());
}

// Numbers of CUmem_advise.
void change(Hints& hints, int advice, Location where) {
    const int device = where.type == on_device ? where.id : cpu;
    switch (advice) {
        case 1: hints.read_mostly = true; break;
        case 2: hints.read_mostly = false; break;
        case 3: hints.preferred = where; break;
        case 4: hints.preferred = {nowhere, 0}; break;
        case 5: hints.accessed_by.insert(device); break;
        default: hints.accessed_by.erase(device); break;
    }
}

Result advise(Driver& d, Address address, std::size_t bytes, int advice, Location where, int current_device) {
    if (advice < 1 || advice > 6) return result::invalid_value;
    const bool place_matters = advice == 3 || advice >= 5;  // documented: the others ignore it
    if (place_matters) {
        if (const Result code = check_place(d, where)) return code;
        if (advice >= 5 && (where.type == on_node || where.type == on_callers_node)) return result::invalid_value;
    }
    const std::lock_guard lock(d.mutex);
    Found managed;
    const int asked = place_matters && where.type == on_device ? where.id : current_device;
    if (const Result code = find_range(d, address, bytes, asked, managed)) return code;
    if (managed) {
        managed.region->hints.apply(managed.offset_bytes, bytes, [&](Hints& hints) { change(hints, advice, where); });
    }
    return result::ok;
}

bool same(Location a, Location b) {
    return a.type == b.type && (a.id == b.id || (a.type != on_device && a.type != on_node));
}

// The common location of the whole range; type 0: there is none.
Location common_place(const Found& range, std::size_t bytes, Location Hints::*which) {
    Location common = {};
    bool first = true;
    range.region->hints.visit(range.offset_bytes, bytes, [&](const Hints& hints) {
        if (!first && !same(common, hints.*which)) {
            common = {nowhere, 0};
        } else if (first) {
            common = hints.*which;
        }
        first = false;
    });
    return common;
}

int device_of(Location where) {
    return where.type == on_device ? where.id : where.type == nowhere ? no_device : cpu;
}

void write_accessed_by(const Found& range, std::size_t bytes, int* out, std::size_t count) {
    std::set<int> common;
    bool first = true;
    range.region->hints.visit(range.offset_bytes, bytes, [&](const Hints& hints) {
        if (first) common = hints.accessed_by;
        std::erase_if(common, [&](int device) { return hints.accessed_by.count(device) == 0; });
        first = false;
    });
    // The CPU comes behind the devices (observed by suites of tests on real devices).
    std::vector<int> ordered(common.upper_bound(cpu), common.end());
    if (common.count(cpu) != 0) ordered.push_back(cpu);
    std::size_t next = 0;
    for (const int device : ordered) {
        if (next < count) out[next++] = device;
    }
    while (next < count) out[next++] = no_device;
}

// Numbers of CUmem_range_attribute.
Result range_attribute(const Found& range, std::size_t bytes, int id, void* data, std::size_t data_bytes) {
    if (!data || data_bytes == 0 || data_bytes % sizeof(int) != 0) return result::invalid_value;
    if (id != 3 && data_bytes != sizeof(int)) return result::invalid_value;
    const Location preferred = common_place(range, bytes, &Hints::preferred);
    const Location last = common_place(range, bytes, &Hints::last_prefetch);
    int value = 1;
    switch (id) {
        case 1:
            range.region->hints.visit(range.offset_bytes, bytes,
                                      [&](const Hints& hints) { value = value && hints.read_mostly; });
            break;
        case 2: value = device_of(preferred); break;
        case 3: write_accessed_by(range, bytes, static_cast<int*>(data), data_bytes / sizeof(int)); return result::ok;
        case 4: value = device_of(last); break;
        case 5: value = preferred.type; break;
        case 6: value = preferred.id; break;
        case 7: value = last.type; break;
        case 8: value = last.id; break;
        default: return result::invalid_value;
    }
    std::memcpy(data, &value, sizeof(value));
    return result::ok;
}

Result range_attributes(Driver& d, void** data, const std::size_t* data_bytes, const int* ids, std::size_t count,
                        Address address, std::size_t bytes) {
    if (!data || !data_bytes || !ids || count == 0 || bytes == 0) return result::invalid_value;
    const std::lock_guard lock(d.mutex);
    const Found range = d.regions.find(address);
    if (!range || range.region->kind != Kind::managed || bytes > range.region->bytes - range.offset_bytes) {
        return result::invalid_value;
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (const Result code = range_attribute(range, bytes, ids[i], data[i], data_bytes[i])) return code;
    }
    return result::ok;
}

// A batch of ranges. `locations` is null for a discard without a prefetch.
struct Batch {
    const Address* addresses;
    const std::size_t* sizes;
    std::size_t count;
    const Location* locations;
    const std::size_t* first_of;
    std::size_t location_count;
};

// Documented for all devices; the code is assumed.
Result check_devices(const Driver& d) {
    for (int device = 0; d.valid(device); ++device) {
        if (d.fact(device, attribute::concurrent_managed) == 0) return result::invalid_device;
    }
    return result::ok;
}

Result check_batch(Driver& d, const Batch& batch, bool placed, unsigned long long flags, const StreamTarget& stream) {
    if (!batch.addresses || !batch.sizes || batch.count == 0 || flags != 0 || stream.legacy) {
        return result::invalid_value;
    }
    const bool places =
        batch.locations && batch.first_of && ascend_from_zero(batch.first_of, batch.location_count, batch.count);
    if (placed && !places) return result::invalid_value;
    if (const Result code = check_not_capturing(d, stream)) return code;
    return check_devices(d);
}

Result note_prefetches(Driver& d, const Batch& batch, int stream_device) {
    std::size_t place = 0;
    for (std::size_t i = 0; i < batch.count; ++i) {
        if (place + 1 < batch.location_count && batch.first_of[place + 1] == i) ++place;
        const Result code = note_prefetch(d, batch.addresses[i], batch.sizes[i], batch.locations[place], stream_device);
        if (code != result::ok) return code;
    }
    return result::ok;
}

Result prefetch_batch(Driver& d, const Batch& batch, unsigned long long flags, Stream* handle) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (const Result code = check_batch(d, batch, true, flags, stream)) return code;
    if (const Result code = note_prefetches(d, batch, stream.device)) return code;
    return d.engine().submit(stream.id, prefetch_operation());
}

struct Discarded {
    void* pointer;
    std::size_t bytes;
    Reached reached;
};

// Documented: what is read from a discarded range before it is written is indeterminate. Here it is a pattern, so that
// a program that relies on the old content fails.
Result discard_batch(Driver& d, const Batch& batch, bool prefetches, unsigned long long flags, Stream* handle) {
    constexpr int pattern = 0xD1;
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (const Result code = check_batch(d, batch, prefetches, flags, stream)) return code;
    std::vector<Discarded> ranges;
    {
        const std::lock_guard lock(d.mutex);
        for (std::size_t i = 0; i < batch.count; ++i) {
            Found managed;
            const Address address = batch.addresses[i];
            const std::size_t bytes = batch.sizes[i];
            if (const Result code = find_range(d, address, bytes, stream.device, managed)) return code;
            void* const pointer = managed ? managed.pointer() : reinterpret_cast<void*>(address);
            ranges.push_back({pointer, bytes, {managed ? managed.region->id : 0, true, true, address, bytes}});
        }
    }
    if (prefetches) {
        if (const Result code = note_prefetches(d, batch, stream.device)) return code;
    }
    engine::Operation operation;
    operation.label = "cuMemDiscardBatchAsync";
    const GpuAgent agent = {stream.device, stream.context, stream.id};
    operation.body = [=, &d, ranges = std::move(ranges)]() -> int {
        for (const Discarded& range : ranges) {
            if (const Result lost = check_reached(d, agent, "a discard", {range.reached})) return lost;
            std::uintptr_t fault = 0;
            const auto write = [&] { std::memset(range.pointer, pattern, range.bytes); };
            if (!Protection::run_guarded(write, fault)) return result::illegal_address;
        }
        return result::ok;
    };
    const Result code = d.engine().submit(stream.id, std::move(operation));
    update_managed_access(d);
    return code;
}

}  // namespace

extern "C" {

Result cuMemPrefetchAsync(Address address, std::size_t bytes, DeviceOrdinal device, Stream* stream) {
    return call(CallId::cuMemPrefetchAsync,
                [&](Driver& d) { return prefetch(d, address, bytes, location_of(device), stream); });
}

Result cuMemPrefetchAsync_v2(Address address, std::size_t bytes, Location location, unsigned flags, Stream* stream) {
    return call(CallId::cuMemPrefetchAsync_v2, [&](Driver& d) -> Result {
        if (flags != 0) return result::invalid_value;
        return prefetch(d, address, bytes, location, stream);
    });
}

Result cuMemPrefetchBatchAsync(Address* addresses, std::size_t* sizes, std::size_t count, Location* locations,
                               std::size_t* first_of, std::size_t location_count, unsigned long long flags,
                               Stream* stream) {
    return call(CallId::cuMemPrefetchBatchAsync, [&](Driver& d) {
        return prefetch_batch(d, {addresses, sizes, count, locations, first_of, location_count}, flags, stream);
    });
}

Result cuMemDiscardBatchAsync(Address* addresses, std::size_t* sizes, std::size_t count, unsigned long long flags,
                              Stream* stream) {
    return call(CallId::cuMemDiscardBatchAsync, [&](Driver& d) {
        return discard_batch(d, {addresses, sizes, count, nullptr, nullptr, 0}, false, flags, stream);
    });
}

Result cuMemDiscardAndPrefetchBatchAsync(Address* addresses, std::size_t* sizes, std::size_t count, Location* locations,
                                         std::size_t* first_of, std::size_t location_count, unsigned long long flags,
                                         Stream* stream) {
    return call(CallId::cuMemDiscardAndPrefetchBatchAsync, [&](Driver& d) {
        return discard_batch(d, {addresses, sizes, count, locations, first_of, location_count}, true, flags, stream);
    });
}

Result cuMemAdvise(Address address, std::size_t bytes, int advice, DeviceOrdinal device) {
    return call_in_context(CallId::cuMemAdvise, [&](Driver& d, Context& context) {
        return advise(d, address, bytes, advice, location_of(device), context.device);
    });
}

Result cuMemAdvise_v2(Address address, std::size_t bytes, int advice, Location location) {
    return call_in_context(CallId::cuMemAdvise_v2, [&](Driver& d, Context& context) {
        return advise(d, address, bytes, advice, location, context.device);
    });
}

Result cuMemRangeGetAttribute(void* data, std::size_t data_bytes, int id, Address address, std::size_t bytes) {
    return call(CallId::cuMemRangeGetAttribute,
                [&](Driver& d) { return range_attributes(d, &data, &data_bytes, &id, 1, address, bytes); });
}

Result cuMemRangeGetAttributes(void** data, std::size_t* data_bytes, int* ids, std::size_t count, Address address,
                               std::size_t bytes) {
    return call(CallId::cuMemRangeGetAttributes,
                [&](Driver& d) { return range_attributes(d, data, data_bytes, ids, count, address, bytes); });
}
}

}  // namespace isthmus::sim
