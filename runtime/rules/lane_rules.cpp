// SPDX-License-Identifier: Apache-2.0
// A request as two words.
#include "lane_rules.hpp"

namespace isthmus::rules {

SharedRequest shared_request(std::uint64_t bytes, std::size_t element_bytes, std::size_t alignment, bool is_signed,
                             const SharedUse& use) noexcept {
    const HostPlacement& placement = use.placement;
    if (bytes == 0 || placement.strict || placement.locality == Locality::local) return {};
    packing::Word first;
    first.add(1, 1);  // never 0
    first.add(static_cast<std::uint64_t>(use.host), 3);
    first.add(static_cast<std::uint64_t>(use.device), 3);
    first.add(static_cast<std::uint64_t>(use.prefer), 1);
    first.add(use.kind ? static_cast<std::uint64_t>(*use.kind) + 1 : 0u, 8);
    first.add(static_cast<std::uint64_t>(placement.locality), 3);
    first.add(static_cast<std::uint64_t>(placement.page_size), 1);
    first.add(packing::flag(placement.prefault), 1);
    first.add(packing::flag(placement.lock), 1);
    first.add(packing::flag(is_signed), 1);
    first.add(packing::number(placement.node) + 1, 16);
    first.add(packing::number(use.device_passes), 16);
    packing::Word second;
    second.add(static_cast<std::uint64_t>(use.updates), 32);
    second.add(element_bytes, 16);
    second.add_power(alignment);
    second.add_power(use.alignment_bytes);
    if (!first.fits(SharedRequest::first_word_bits) || !second.fits()) return {};
    return {bytes, {first.word(), second.word()}};
}

BlockSort block_sort(MemoryKind kind, const HostPlacement& placement) noexcept {
    if (kept_kind(kind) < 0 || !may_be_kept(kind, placement)) return {};
    const BlockSort of_driver = block_sort_of_driver(kind);
    const bool of_pages = kind == MemoryKind::host || kind == MemoryKind::host_numa || kind == MemoryKind::registered;
    if (!of_pages) return of_driver;
    packing::Word packed;
    packed.add(of_driver.word, 12);  // neither a shared request nor one of a kind, and never 0
    packed.add(static_cast<std::uint64_t>(placement.locality), 3);
    packed.add(static_cast<std::uint64_t>(placement.page_size), 1);
    packed.add(packing::flag(placement.prefault), 1);
    packed.add(packing::flag(placement.lock), 1);
    packed.add(packing::number(placement.node) + 1, 16);
    return packed.fits() ? BlockSort{packed.word()} : BlockSort{};
}

}  // namespace isthmus::rules
