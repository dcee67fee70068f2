// SPDX-License-Identifier: Apache-2.0
// The table of known memory: one entry per allocation, found by any address inside it.
#include "regions.hpp"

namespace isthmus::sim {

const char* name(Kind kind) noexcept {
    switch (kind) {
        case Kind::device: return "device memory";
        case Kind::pool: return "pool memory";
        case Kind::graph: return "memory of a graph";
        case Kind::managed: return "managed memory";
        case Kind::pinned: return "pinned memory";
        case Kind::registered: return "registered memory";
        case Kind::mapping: return "mapped memory";
        case Kind::array: return "memory of an array";
        case Kind::heap: return "heap of kernels";
    }
    return "memory";
}

Region* Regions::add(Region region) {
    region.id = next_id_++;
    auto owned = std::make_unique<Region>(region);
    Region* result = owned.get();
    regions_.emplace(region.id, std::move(owned));
    spans_[region.base] = {region.base + region.bytes, result, false};
    if (region.aliased()) {
        const Address host = reinterpret_cast<Address>(region.host);
        spans_[host] = {host + region.bytes, result, true};
    }
    return result;
}

void Regions::remove(Region* region) {
    spans_.erase(region->base);
    if (region->aliased()) spans_.erase(reinterpret_cast<Address>(region->host));
    regions_.erase(region->id);
}

Region* Regions::find_id(std::uint64_t id) const {
    const auto found = regions_.find(id);
    return found == regions_.end() ? nullptr : found->second.get();
}

Found Regions::find(Address address) const {
    auto after = spans_.upper_bound(address);
    if (after == spans_.begin()) return {};
    const auto& [begin, span] = *--after;
    const bool is_hidden = span.region->kind == Kind::array || span.region->kind == Kind::heap;
    if (address >= span.end || is_hidden) return {};
    return {span.region, static_cast<std::size_t>(address - begin), span.host_name};
}

bool Regions::overlaps(Address address, std::size_t bytes) const {
    const auto after = spans_.lower_bound(address);
    return (after != spans_.end() && after->first < address + bytes) || find(address);
}

std::vector<Region*> Regions::all() const {
    std::vector<Region*> result;
    for (const auto& [id, region] : regions_) result.push_back(region.get());
    return result;
}

std::size_t Regions::count(Kind kind) const {
    std::size_t result = 0;
    for (const auto& [id, region] : regions_) result += region->kind == kind;
    return result;
}

}  // namespace isthmus::sim
