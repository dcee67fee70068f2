// SPDX-License-Identifier: Apache-2.0
// Keeps the buffers that were used last.
#include "real_clock.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace isthmus::tools::tune {
namespace {

constexpr std::size_t tried_bytes = 4096;

// Of a copied buffer, host's and device's side.
std::uint64_t taken_bytes(const Way& way, std::size_t bytes) {
    return way.kind == MemoryKind::device ? 2 * std::uint64_t{bytes} : bytes;
}

}  // namespace

std::vector<Way> ways_of(Device& device, const std::vector<Way>& candidates) {
    std::vector<Way> ways;
    for (const Way& way : candidates) {
        const Result<TurnBuffer> made = TurnBuffer::make(device, use_of(way), tried_bytes);
        if (!made || made->buffer().kind() != way.kind) continue;
        // Memory that must be attached is never chosen unasked (runtime/rules/allocation_policy.cpp).
        if (made->buffer().path() != LaunchPath::attach) ways.push_back(way);
    }
    const auto chosen = device.allocate_shared<Lane>(tried_bytes / sizeof(Lane), use_of(Role::reads, 1));
    if (!chosen) return ways;
    const auto first =
        std::find_if(ways.begin(), ways.end(), [&](const Way& way) { return way.kind == chosen->kind(); });
    if (first != ways.end()) std::rotate(ways.begin(), first, first + 1);
    return ways;
}

void RealClock::make_room(std::size_t bytes) {
    for (;;) {
        std::uint64_t taken = 0;
        auto oldest = held_.end();
        for (auto at = held_.begin(); at != held_.end(); ++at) {
            taken += taken_bytes(at->way, at->bytes);
            if (at->bytes == bytes) continue;
            if (oldest == held_.end() || at->used < oldest->used) oldest = at;
        }
        if (oldest == held_.end() || taken + 2 * std::uint64_t{bytes} <= kept_bytes_) return;
        if (oldest + 1 != held_.end()) std::swap(*oldest, held_.back());
        held_.pop_back();
    }
}

Result<TurnBuffer*> RealClock::find(const Way& way, std::size_t bytes) {
    for (Held& held : held_) {
        if (held.bytes != bytes || !(held.way == way)) continue;
        held.used = ++uses_;
        return &held.buffer;
    }
    make_room(bytes);
    Result<TurnBuffer> made = TurnBuffer::make(device_, use_of(way), bytes);
    if (!made) return std::move(made).error();
    held_.push_back({way, bytes, ++uses_, std::move(made).value()});
    return &held_.back().buffer;
}

Result<double> RealClock::turn(const Way& way, Role device, std::size_t bytes, int passes) {
    Result<TurnBuffer*> buffer = find(way, bytes);
    return buffer ? (*buffer)->turn(device, passes) : Result<double>(std::move(buffer).error());
}

Result<double> RealClock::host(const Way& way, Role host, std::size_t bytes) {
    Result<TurnBuffer*> buffer = find(way, bytes);
    return buffer ? (*buffer)->host(host) : Result<double>(std::move(buffer).error());
}

void RealClock::renew(std::size_t bytes) {
    constexpr std::size_t most_retired = 24;  // some allocations of each way
    for (std::size_t at = held_.size(); at-- > 0;) {
        if (held_[at].bytes != bytes) continue;
        retired_.push_back(std::move(held_[at].buffer));
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    while (retired_.size() > most_retired) retired_.pop_front();
}

double RealClock::now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace isthmus::tools::tune
