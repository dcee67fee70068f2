// SPDX-License-Identifier: Apache-2.0
// SealBook: counts places without locks.
#include "seal_book.hpp"

#include <algorithm>

namespace isthmus {
inline namespace v0 {
namespace detail {

constinit thread_local SealBook* sealed_here = nullptr;

void SealBook::begin(bool refuses) noexcept {
    refuses_.store(refuses, std::memory_order_relaxed);
    count_.store(0, std::memory_order_relaxed);
    taken_.store(0, std::memory_order_relaxed);
    for (Place& place : places_) {
        place.call.store(nullptr, std::memory_order_relaxed);
        place.times.store(0, std::memory_order_relaxed);
    }
}

void SealBook::note(SealedAct act, std::string_view call) noexcept {
    count_.fetch_add(1, std::memory_order_relaxed);
    const std::size_t known = std::min(taken_.load(std::memory_order_acquire), most_places);
    for (std::size_t at = 0; at < known; ++at) {
        Place& place = places_[at];
        if (place.call.load(std::memory_order_acquire) != call.data()) continue;  // pairs with the store below
        if (place.act.load(std::memory_order_relaxed) != act) continue;
        place.times.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    // Two threads that come to a new place at once enter it twice; places() adds both.
    const std::size_t at = taken_.fetch_add(1, std::memory_order_acq_rel);
    Place& place = places_[std::min(at, most_places - 1)];
    place.times.fetch_add(1, std::memory_order_relaxed);
    if (at >= most_places) {
        taken_.store(most_places, std::memory_order_release);
        return;
    }
    const std::string_view name = at + 1 < most_places ? call : std::string_view("others");
    place.length.store(name.size(), std::memory_order_relaxed);
    place.act.store(act, std::memory_order_relaxed);
    place.call.store(name.data(), std::memory_order_release);
}

std::vector<SealedPlace> SealBook::places() const {
    std::vector<SealedPlace> found;
    for (const Place& place : places_) {
        const char* const call = place.call.load(std::memory_order_acquire);
        if (call == nullptr) continue;
        SealedPlace one{{call, place.length.load(std::memory_order_relaxed)},
                        place.act.load(std::memory_order_relaxed),
                        place.times.load(std::memory_order_relaxed)};
        const auto same = std::find_if(found.begin(), found.end(), [&](const SealedPlace& known) {
            return known.call == one.call && known.act == one.act;
        });
        if (same != found.end()) {
            same->times += one.times;
        } else {
            found.push_back(one);
        }
    }
    return found;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
