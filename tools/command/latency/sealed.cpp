// SPDX-License-Identifier: Apache-2.0
#include "sealed.hpp"

#include <isthmus/seal.hpp>

#include <string_view>
#include <utility>

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

class LibrarySeal final : public SealedRun {
public:
    explicit LibrarySeal(Seal seal) : seal_(std::move(seal)) {}
    SealedCounts end() override {
        (void)seal_.end();  // of this thread, so that it is not refused
        SealedCounts counts{seal_.count(), {}};
        for (const SealedPlace& place : seal_.places()) {
            counts.places.push_back({std::string(place.call), std::string(words_of(place.act)), place.times});
        }
        return counts;
    }

private:
    Seal seal_;
};

}  // namespace

Result<std::unique_ptr<SealedRun>> begin_sealed(Runtime& runtime) {
    Result<Seal> seal = runtime.seal();
    if (!seal) return std::move(seal).error();
    return std::unique_ptr<SealedRun>(std::make_unique<LibrarySeal>(std::move(seal).value()));
}

}  // namespace isthmus::tools::latency
