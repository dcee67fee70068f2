// SPDX-License-Identifier: Apache-2.0
// The functions for tests that the driver does not have: counts of live objects, and the size of memory.
#include "access.hpp"
#include "allocate.hpp"
#include "driver.hpp"
#include "faults.hpp"
#include "graph_objects.hpp"
#include "user_objects.hpp"

#include <driver_abi/sim_control.h>

#include <algorithm>
#include <string_view>

namespace isthmus::sim {
namespace {

std::size_t count_regions(const Driver& d, bool (*counts)(const Region&)) {
    const std::vector<Region*> all = d.regions.all();
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const Region* region) { return counts(*region); }));
}

struct Countable {
    std::string_view word;
    std::size_t (*count)(const Driver& d);
};

constexpr Countable countables[] = {
    {"contexts", [](const Driver& d) { return count_contexts(d); }},
    {"streams",
     [](const Driver& d) {  // without the default streams of threads, which nobody destroys
         const std::vector<Stream*> all = d.streams.all();
         return static_cast<std::size_t>(
             std::count_if(all.begin(), all.end(), [](const Stream* stream) { return stream->thread == 0; }));
     }},
    {"events", [](const Driver& d) { return d.events.count(); }},
    {"modules", [](const Driver& d) { return d.modules.count(); }},
    {"pools", [](const Driver& d) { return d.pools.count(); }},
    {"graphs",
     [](const Driver& d) {  // without graphs embedded in nodes, which end with the outer graph
         const std::vector<GraphObject*> all = d.graphs.all();
         return static_cast<std::size_t>(
             std::count_if(all.begin(), all.end(), [](const GraphObject* graph) { return graph->parent == nullptr; }));
     }},
    {"graph_nodes", [](const Driver& d) { return d.nodes.count(); }},
    {"user_objects", [](const Driver& d) { return d.user_objects.count(); }},
    {"graph_instances", [](const Driver& d) { return d.instances.count(); }},
    {"allocations", [](const Driver& d) { return d.regions.count(); }},
    {"device", [](const Driver& d) { return d.regions.count(Kind::device); }},
    {"pool", [](const Driver& d) { return d.regions.count(Kind::pool) + d.regions.count(Kind::graph); }},
    {"graph", [](const Driver& d) { return count_regions(d, [](const Region& r) { return r.of_graph; }); }},
    {"managed", [](const Driver& d) { return d.regions.count(Kind::managed); }},
    {"managed_pool",
     [](const Driver& d) {
         return count_regions(d, [](const Region& r) { return r.kind == Kind::managed && r.pool; });
     }},
    {"pinned", [](const Driver& d) { return d.regions.count(Kind::pinned); }},
    {"arrays", [](const Driver& d) { return d.arrays.count() + d.mipmapped_arrays.count(); }},
    {"textures", [](const Driver& d) { return d.textures.count() + d.surfaces.count(); }},
    {"semaphores", [](const Driver& d) { return d.semaphores.count(); }},
    {"registered", [](const Driver& d) { return d.regions.count(Kind::registered); }},
    {"reservations", [](const Driver& d) { return d.virtual_memory.reservations.size(); }},
    {"physical", [](const Driver& d) { return d.virtual_memory.objects.count(); }},
    {"multicast",
     [](const Driver& d) {
         const std::vector<Physical*> all = d.virtual_memory.objects.all();
         return static_cast<std::size_t>(
             std::count_if(all.begin(), all.end(), [](const Physical* each) { return each->team != nullptr; }));
     }},
    {"mappings", [](const Driver& d) { return d.virtual_memory.mappings.size(); }},
    {"standing_calls", [](const Driver&) { return standing_calls(); }},
    {"gpu_work", [](const Driver& d) { return static_cast<std::size_t>(d.gpu_work.load(std::memory_order_acquire)); }},
};

// In the order of the lendings: a later one may overtake an earlier one that still waits in a stream. Expects the lock.
void lend(Driver& d, Region& region, std::uint64_t lending, std::size_t bytes) {
    if (lending < region.lending) return;
    region.lending = lending;
    const bool was_released = region.lent_bytes == 0;
    region.lent_bytes = bytes;
    const bool own_pages = region.mapped_bytes > 0 && region.file < 0 &&
                           (region.kind == Kind::pinned || region.kind == Kind::managed ||
                            region.kind == Kind::device || region.kind == Kind::pool);
    if (own_pages && bytes == 0 && !was_released) {
        d.protection.withdraw(region.host, region.mapped_bytes, std::max(region.device, 0));
        region.closed = true;
    } else if (own_pages && bytes != 0 && was_released) {
        d.protection.open(region.host, region.mapped_bytes);
        region.closed = false;
        if (region.kind == Kind::device || region.kind == Kind::pool) close_to_host(d, &region);
    }
}

}  // namespace
}  // namespace isthmus::sim

using namespace isthmus::sim;

extern "C" {

__attribute__((visibility("default"))) std::int64_t isthmus_sim_live(const char* what) {
    const std::string_view word = what ? what : "";
    for (const Countable& known : countables) {
        if (known.word != word) continue;
        Driver* const d = driver();
        if (!d) return 0;
        d->engine().await_destruction();  // of graphs' memory, for instance
        const std::lock_guard lock(d->mutex);
        return static_cast<std::int64_t>(known.count(*d));
    }
    return -1;
}

__attribute__((visibility("default"))) int isthmus_sim_set_memory_bytes(int device, std::uint64_t bytes) {
    Driver* const d = driver();
    if (!d || !d->valid(device)) return 1;
    const std::lock_guard lock(d->mutex);
    const std::uint64_t recorded = d->machine.device(device).facts.total_memory_bytes;
    d->devices[static_cast<std::size_t>(device)].total_bytes = bytes == 0 ? recorded : std::min(bytes, recorded);
    return 0;
}

__attribute__((visibility("default"))) void isthmus_sim_lend_part(std::uint64_t device_address, std::size_t bytes,
                                                                  std::size_t usable_bytes) {
    Driver* const d = driver();
    if (!d || bytes == 0) return;
    const std::lock_guard lock(d->mutex);
    const Found found = d->regions.find(device_address);
    if (!found) return;
    found.region->parts[found.offset_bytes] = {bytes, std::min(bytes, usable_bytes)};
}

__attribute__((visibility("default"))) void isthmus_sim_lend(std::uint64_t device_address, std::size_t bytes,
                                                             void* stream) {
    Driver* const d = driver();
    if (!d) return;
    StreamTarget order;
    if (stream != nullptr && resolve_for_work(*d, static_cast<Stream*>(stream), order) != result::ok) return;
    // Not as a node of a graph: what is in use is no work of the program.
    if (stream != nullptr && d->engine().capture_info(order.id).state != engine::CaptureState::none) stream = nullptr;
    std::uint64_t id = 0;
    std::uint64_t lending = 0;
    {
        const std::lock_guard lock(d->mutex);
        const Found found = d->regions.find(device_address);
        if (!found) return;
        if (found.region->kind == Kind::mapping) return lend_block(*d, device_address, bytes);
        id = found.region->id;
        lending = ++found.region->lendings;
        found.region->lent_bytes_next = bytes;
        // Another stream may use the memory from now on, which waits only for the work of this one. Less than was in
        // use is in use when the stream gets there.
        const std::size_t now = bytes == 0 || stream == nullptr ? bytes : std::max(bytes, found.region->lent_bytes);
        if (stream == nullptr || bytes != 0) lend(*d, *found.region, lending, now);
    }
    if (stream == nullptr) return update_managed_access(*d);
    engine::Operation operation;
    operation.kind = engine::Kind::free;
    operation.label = "a change of what is in use of an allocation";
    operation.body = [d, id, lending, bytes] {
        const std::lock_guard lock(d->mutex);
        if (Region* const region = d->regions.find_id(id)) lend(*d, *region, lending, bytes);
        return 0;
    };
    (void)d->engine().submit(order.id, std::move(operation));
}

__attribute__((visibility("default"))) int isthmus_sim_set_seed(std::uint64_t seed) {
    return driver() && driver()->engine().set_seed(seed) ? 0 : 1;
}

__attribute__((visibility("default"))) const char* isthmus_sim_protection() {
    return driver() ? driver()->protection.means() : "off";
}
}
