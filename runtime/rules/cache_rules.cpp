// SPDX-License-Identifier: Apache-2.0
// The rules of the memory cache.
#include "cache_rules.hpp"

#include <charconv>

namespace isthmus::rules {
namespace {

constexpr std::size_t step_bytes = size_steps::bytes;
constexpr int small_classes = size_steps::classes;
constexpr int small_bits = size_steps::bits;

}  // namespace

bool same_placement(const HostPlacement& one, const HostPlacement& other) noexcept {
    return one.locality == other.locality && one.node == other.node && one.strict == other.strict &&
           one.page_size == other.page_size && one.prefault == other.prefault && one.lock == other.lock;
}

std::size_t largest_of_class(int size_class) noexcept {
    if (size_class < small_classes) return step_bytes * static_cast<std::size_t>(size_class + 1);
    const int bits = small_bits + (size_class - small_classes) / 4;
    const int step = (size_class - small_classes) % 4;
    return static_cast<std::size_t>(5 + step) << (bits - 2);
}

std::uint64_t most_kept(const HandedOut& now, std::uint64_t limit_bytes) noexcept {
    const std::uint64_t most = now.peak() + now.peak() / peak_share;
    const std::uint64_t out = now.bytes + now.loose_bytes;
    return std::min(limit_bytes, std::max(small_program_bytes, most - std::min(most, out)));
}

std::uint64_t most_reserved(const HandedOut& now) noexcept {
    return now.peak() + now.peak() / peak_share;
}

bool may_leave_unused(const HandedOut& now, std::size_t piece_bytes, std::size_t requested_bytes) noexcept {
    const std::uint64_t unused = now.bytes - now.asked_bytes + (piece_bytes - requested_bytes);
    const std::uint64_t peak = std::max(now.peak(), now.asked_bytes + requested_bytes);
    return unused <= std::max(small_program_bytes, peak / peak_share);
}

bool ends_are_small(const HandedOut& now) noexcept {
    const std::uint64_t peak = std::max(now.peak(), now.asked_bytes);
    return now.bytes - now.asked_bytes <= std::max(small_program_bytes, peak / peak_share);
}

bool may_serve_alone(const HandedOut& now, std::uint64_t owners_bytes, bool crowded) noexcept {
    return !crowded && owners_bytes <= std::max(small_program_bytes, now.peak() / peak_share);
}

bool may_be_loose(const HandedOut& now, const AmongThreads& thread, std::size_t piece_bytes) noexcept {
    if (thread.has_loose || thread.crowded) return false;
    if (!among_threads(thread.largest_bytes, thread.others_bytes)) return false;
    if (piece_bytes > most_loose(thread)) return false;
    return thread.owners_bytes <=
           std::max({small_program_bytes, now.peak() / peak_share, thread.living_bytes + thread.others_bytes});
}

std::size_t headroom(const HandedOut& now, std::size_t requested_bytes) noexcept {
    const std::uint64_t peak = std::max(now.peak(), now.asked_bytes + requested_bytes);
    const std::uint64_t most = peak / peak_share;  // the piece has to be one that is kept
    const std::uint64_t unused = now.bytes - now.asked_bytes;
    const std::uint64_t left = most - std::min(most, unused);
    return static_cast<std::size_t>(std::min<std::uint64_t>(left, requested_bytes / 8)) / step_bytes * step_bytes;
}

std::string_view why_no_segments(const SegmentFacts& facts) noexcept {
    if (!facts.asked) return "not asked for";
    if (!facts.virtual_memory) return "the device has no virtual memory management";
    if (!facts.separate) return "the device's memory is not separate from the host's";
    if (facts.gpus != 1) return "the runtime has several GPUs, which may be peers";
    return {};
}

std::optional<bool> segments_asked(std::string_view environment) noexcept {
    if (environment.empty() || environment == "0") return false;
    if (environment == "1") return true;
    return std::nullopt;
}

bool goes_before(const Waiting& one, const Waiting& other) noexcept {
    const double costs = static_cast<double>(one.age) * static_cast<double>(one.bytes);
    const double others = static_cast<double>(other.age) * static_cast<double>(other.bytes);
    return costs == others ? one.age > other.age : costs > others;
}

Ending ending(const Dropped& buffer, const Outstanding& earlier, std::uint64_t limit_bytes) noexcept {
    if (!buffer.own_memory || !buffer.known_uses || buffer.attached || !buffer.device_usable) return Ending::now;
    if (buffer.bytes > limit_bytes) return Ending::now;
    if (earlier.since_asked >= dropped_for_a_question) return Ending::later_after_asking;
    const bool full = earlier.buffers >= most_outstanding || earlier.bytes > limit_bytes - buffer.bytes;
    return full ? Ending::later_after_oldest : Ending::later;
}

std::optional<std::uint64_t> cache_limit(std::optional<std::uint64_t> option, std::string_view environment,
                                         std::uint64_t host_total_bytes) noexcept {
    if (option) return option;
    if (environment.empty()) return std::min(std::uint64_t{256} << 20, host_total_bytes / 16);
    std::uint64_t bytes = 0;
    const char* const end = environment.data() + environment.size();
    const auto [rest, error] = std::from_chars(environment.data(), end, bytes);
    if (error != std::errc() || rest != end) return std::nullopt;
    return bytes;
}

}  // namespace isthmus::rules
