// SPDX-License-Identifier: Apache-2.0
// What the replay's observer is told.
#include "tally.hpp"

#include <chrono>

namespace isthmus::tools::replay {
namespace {

// Longer than the host takes from giving work to waiting for it, also on a loaded machine.
constexpr std::chrono::seconds moment{5};

}  // namespace

std::uint64_t DeviceGate::give() {
    const std::lock_guard lock(mutex_);
    return ++given_;
}

void DeviceGate::pass(std::uint64_t number) noexcept {
    std::unique_lock lock(mutex_);
    (void)opened_.wait_for(lock, moment, [&] { return passing_ >= number; });
}

void DeviceGate::open() noexcept {
    const std::lock_guard lock(mutex_);
    passing_ = given_;
    opened_.notify_all();
}

Tally::Tally(DeviceGate& gate) : gate_(gate) {
    callbacks_.context = this;
    callbacks_.begin = [](void* self, Span span, std::string_view name, const ObservedFacts&) noexcept {
        static_cast<Tally*>(self)->begin(span, name);
    };
    callbacks_.mark = [](void* self, Mark mark, std::string_view name, const ObservedFacts& facts) noexcept {
        static_cast<Tally*>(self)->mark(mark, name, facts);
    };
}

void Tally::begin_call(std::string_view name) {
    const std::lock_guard lock(mutex_);
    call_ = name;
}

void Tally::stop() {
    const std::lock_guard lock(mutex_);
    counts_ = false;
}

// Memory that goes back may make the driver wait: nothing is told of that.
void Tally::begin(Span span, std::string_view name) {
    if (span != Span::wait && span != Span::release) return;
    gate_.open();
    const std::lock_guard lock(mutex_);
    if (counts_ && span == Span::wait) ++waits_[{call_, std::string(name)}];
}

void Tally::mark(Mark mark, std::string_view name, const ObservedFacts& facts) {
    const std::lock_guard lock(mutex_);
    if (!counts_) return;
    if (mark == Mark::upload || mark == Mark::download) {
        const bool up = mark == Mark::upload;
        const std::string memory(isthmus::name(facts.kind));
        Copied& of = copies_[{up, std::string(name), memory}];
        of.up = up;
        of.name = name;
        of.memory = memory;
        ++of.count;
        of.bytes += facts.bytes;
    }
    if (mark == Mark::attach) ++attaches_;
    if (mark == Mark::prefetch) ++prefetches_;
}

void Tally::add_to(Outcome& outcome) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, copies] : copies_) outcome.copies.push_back(copies);
    for (const auto& [key, count] : waits_) outcome.waits.push_back({key.first, key.second, count});
    outcome.attaches = attaches_;
    outcome.prefetches = prefetches_;
}

}  // namespace isthmus::tools::replay
