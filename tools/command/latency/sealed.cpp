// SPDX-License-Identifier: Apache-2.0
#include "sealed.hpp"

#include <string_view>

namespace isthmus::tools::latency {
namespace {

std::string_view words_of(SealedAct act) noexcept {
    switch (act) {
        case SealedAct::use_heap: return "use the heap";
        case SealedAct::allocate_memory: return "allocate memory";
        case SealedAct::register_memory: return "register memory";
        case SealedAct::map_memory: return "map memory";
        case SealedAct::load_code: return "load code";
        case SealedAct::make_object: return "make an object of the driver";
        case SealedAct::enter_system: return "enter the system";
    }
    return "unknown";
}

}  // namespace

SealedCounts end_and_count(Seal& seal) {
    (void)seal.end();  // of this thread, so that it is not refused
    SealedCounts counts{seal.count(), {}};
    for (const SealedPlace& place : seal.places()) {
        counts.places.push_back({std::string(place.call), std::string(words_of(place.act)), place.times});
    }
    return counts;
}

}  // namespace isthmus::tools::latency
