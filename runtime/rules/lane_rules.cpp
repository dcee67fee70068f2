// SPDX-License-Identifier: Apache-2.0
// A request as two words.
#include "lane_rules.hpp"

#include "cache_rules.hpp"

#include <bit>

namespace isthmus::rules {
namespace {

// Numbers in bits of one word, one behind the other.
class Packed {
public:
    void add(std::uint64_t number, int bits) noexcept {
        fits_ = fits_ && number < (std::uint64_t{1} << bits);
        word_ |= number << at_;
        at_ += bits;
    }
    // A power of two, or 0.
    void add_power(std::uint64_t power) noexcept {
        fits_ = fits_ && (power == 0 || std::has_single_bit(power));
        add(power == 0 ? 0u : static_cast<std::uint64_t>(std::bit_width(power)), 7);
    }
    bool fits(int bits = 64) const noexcept { return fits_ && at_ <= bits; }
    std::uint64_t word() const noexcept { return word_; }

private:
    std::uint64_t word_ = 0;
    int at_ = 0;
    bool fits_ = true;
};

constexpr std::uint64_t flag(bool set) noexcept {
    return set ? 1u : 0u;
}
// A number below 0 does not fit.
constexpr std::uint64_t number(int signed_number) noexcept {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(signed_number));
}

}  // namespace

SharedRequest shared_request(std::uint64_t bytes, std::size_t element_bytes, std::size_t alignment, bool is_signed,
                             const SharedUse& use) noexcept {
    const HostPlacement& placement = use.placement;
    if (bytes == 0 || placement.strict || placement.locality == Locality::local) return {};
    Packed first;
    first.add(1, 1);  // never 0
    first.add(static_cast<std::uint64_t>(use.host), 3);
    first.add(static_cast<std::uint64_t>(use.device), 3);
    first.add(static_cast<std::uint64_t>(use.prefer), 1);
    first.add(use.kind ? static_cast<std::uint64_t>(*use.kind) + 1 : 0u, 8);
    first.add(static_cast<std::uint64_t>(placement.locality), 3);
    first.add(static_cast<std::uint64_t>(placement.page_size), 1);
    first.add(flag(placement.prefault), 1);
    first.add(flag(placement.lock), 1);
    first.add(flag(is_signed), 1);
    first.add(number(placement.node) + 1, 16);
    first.add(number(use.device_passes), 16);
    Packed second;
    second.add(static_cast<std::uint64_t>(use.updates), 32);
    second.add(element_bytes, 16);
    second.add_power(alignment);
    second.add_power(use.alignment_bytes);
    if (!first.fits(SharedRequest::first_word_bits) || !second.fits()) return {};
    return {bytes, {first.word(), second.word()}};
}

SharedRequest kind_request(const KindRequest& asked) noexcept {
    const HostPlacement& placement = asked.placement;
    if (asked.bytes == 0 || kept_kind(asked.kind) < 0 || !may_be_kept(asked.kind, placement)) return {};
    Packed first;
    first.add(0, 1);  // no shared request
    first.add(1, 1);  // never 0
    first.add(flag(asked.in_order), 1);
    first.add(static_cast<std::uint64_t>(asked.kind), 8);
    first.add(asked.reason, 3);
    first.add(static_cast<std::uint64_t>(placement.locality), 3);
    first.add(static_cast<std::uint64_t>(placement.page_size), 1);
    first.add(flag(placement.prefault), 1);
    first.add(flag(placement.lock), 1);
    first.add(number(placement.node) + 1, 16);
    first.add_power(asked.alignment);
    if (!first.fits(SharedRequest::first_word_bits)) return {};
    return {asked.bytes, {first.word(), asked.stream_id}};
}

BlockSort block_sort(MemoryKind kind, const HostPlacement& placement) noexcept {
    if (kept_kind(kind) < 0 || !may_be_kept(kind, placement)) return {};
    const BlockSort of_driver = block_sort_of_driver(kind);
    const bool of_pages = kind == MemoryKind::host || kind == MemoryKind::host_numa || kind == MemoryKind::registered;
    if (!of_pages) return of_driver;
    Packed packed;
    packed.add(of_driver.word, 12);  // neither a shared request nor one of a kind, and never 0
    packed.add(static_cast<std::uint64_t>(placement.locality), 3);
    packed.add(static_cast<std::uint64_t>(placement.page_size), 1);
    packed.add(flag(placement.prefault), 1);
    packed.add(flag(placement.lock), 1);
    packed.add(number(placement.node) + 1, 16);
    return packed.fits() ? BlockSort{packed.word()} : BlockSort{};
}

}  // namespace isthmus::rules
