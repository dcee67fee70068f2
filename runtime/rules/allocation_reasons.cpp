// SPDX-License-Identifier: Apache-2.0
// Each reason is one sentence, which ends with the origin of what decided.
#include "allocation_reasons.hpp"

#include "allocation_policy.hpp"
#include "composed.hpp"

namespace isthmus::rules {
namespace {

using Text = std::string_view;
using platform::CopyBorder;
using platform::Traits;

using AllReasons = std::array<Reasons, platform::traits_count>;

BorderReasons reasons_for(const Traits& traits, Copied copied, const CopyBorder& border) {
    const Text what = copied == Copied::reads ? "reads" : copied == Copied::writes ? "writes" : "reads and writes";
    const std::string often = border.passes == 1
                                  ? composed("the device {} each byte once", what)
                                  : composed("the device {} the data {} times or more", what, border.passes);
    const std::string size = size_text(border.from_bytes);
    const std::string origin = origin_text(border.origin, border.source);
    const Text place = traits.shared_in_place.value == MemoryKind::pinned ? "pinned memory is used in place"
                       : traits.migrates_from_passes.value > 0
                           ? "ordinary memory is used in place, bound to no node, so that it may migrate"
                           : "ordinary memory is used in place";
    return {composed("{}, and from {} on a copy at each hand-over is cheaper than {} ({})", often, size, traits.across,
                     origin),
            composed("{}, and below {} a copy costs more than {}: {} ({})", often, size, traits.across, place, origin)};
}

std::string in_place_reason(const Traits& traits, MemoryKind kind) {
    const Text what = kind == MemoryKind::host
                          ? "ordinary memory near the device is the best that both sides use in place"
                          : "pinned memory is the best that both sides use in place";
    return composed("{} ({})", what, origin_text(traits.shared_in_place.origin, traits.shared_in_place.source));
}

std::string latency_reason(const Traits& traits, MemoryKind kind, Text place) {
    const Text what = kind == MemoryKind::registered
                          ? "host memory near the device, registered, so that neither side meets a page fault"
                      : kind == MemoryKind::pinned ? "pinned memory is used in place, without a copy to wait for"
                                                   : place;
    return composed("latency matters: {} ({})", what,
                    origin_text(traits.shared_for_latency.origin, traits.shared_for_latency.source));
}

AllReasons* make_reasons() {
    auto* const made = new AllReasons;
    for (std::size_t index = 0; index < platform::traits_count; ++index) {
        const Traits& traits = platform::traits_at(index);
        Reasons& reasons = (*made)[index];
        for (std::size_t copied = 0; copied < copied_count; ++copied) {
            for (std::size_t i = 0; i < platform::most_borders; ++i) {
                const auto fill = [&](const CopyBorder& border, std::size_t at) {
                    if (border.passes != 0) {
                        reasons.borders[copied][at] = reasons_for(traits, static_cast<Copied>(copied), border);
                    }
                };
                fill(traits.reads_copied[i], i);
                fill(traits.writes_copied[i], platform::most_borders + i);
            }
        }
        reasons.in_place = in_place_reason(traits, traits.shared_in_place.value);
        const MemoryKind quick = traits.shared_for_latency.value;
        reasons.for_latency = latency_reason(traits, quick, "ordinary memory near the device is used in place");
        reasons.for_latency_migrating =
            latency_reason(traits, quick, "ordinary memory is used in place, bound to no node, so that it may migrate");
    }
    return made;
}

}  // namespace

std::string size_text(std::size_t bytes) {
    constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
    if (bytes < KiB) return composed("{} bytes", bytes);
    const bool large = bytes % MiB == 0 || (bytes > MiB && bytes % KiB != 0);
    const std::size_t unit = large ? MiB : KiB;
    const Text name = large ? "MiB" : "KiB";
    const std::size_t tenths = bytes / unit * 10 + (bytes % unit * 10 + unit / 2) / unit;
    return tenths % 10 == 0 ? composed("{} {}", tenths / 10, name)
                            : composed("{}.{} {}", tenths / 10, tenths % 10, name);
}

std::string origin_text(platform::ValueOrigin origin, std::string_view source) {
    if (origin != platform::ValueOrigin::measured) return std::string(name(origin));
    return composed("{}: {}", name(origin),
                    source.substr(0, source.find(',')));  // a measurement names its machine first
}

// Never freed: plans refer to these texts until the process ends.
const Reasons& reasons_of(const Traits& traits) {
    static const AllReasons* const made = make_reasons();
    return (*made)[platform::index_of(traits)];
}

const BorderReasons& reasons_of(const Traits& traits, Copied copied, const CopyBorder& border) {
    const auto* const reads = traits.reads_copied.data();
    const bool of_reads = &border >= reads && &border < reads + platform::most_borders;
    const std::size_t at =
        of_reads ? static_cast<std::size_t>(&border - reads)
                 : platform::most_borders + static_cast<std::size_t>(&border - traits.writes_copied.data());
    return reasons_of(traits).borders[static_cast<std::size_t>(copied)][at];
}

}  // namespace isthmus::rules
