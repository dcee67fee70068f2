// SPDX-License-Identifier: Apache-2.0
// From measurements to the choices of a profile: the way with the shortest turn for each use, number of passes and
// size. Pure.
#pragma once

#include "cost_model.hpp"
#include "measurements.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace isthmus::tools::tune {

// A way that is within this factor of the fastest one counts as equal to it: then the choice has as few borders as
// possible, and prefers the ways in their order.
inline constexpr double equal_within = 1.02;
// Where no way's time is known so well, the factor is what they are known by, up to this one: borders that only noise
// draws are left out.
inline constexpr double equal_within_noise = 1.05;

// In the order of DeviceProfile::choices. A row, which is a use and its number of passes, holds up to the next one;
// rows follow each other as closely as equal_within needs, up to 256 passes. Uses that no measured way serves have no
// row.
std::vector<ProfileChoice> choices_of(const Measurements& measured);

// As the library reads them: of the rows of this use, the one with most passes up to `passes`, and in it the largest
// from_bytes up to `bytes`. Null: the use has no row.
const ProfileChoice* choice_for(std::span<const ProfileChoice> choices, const UseCase& use, int passes,
                                std::size_t bytes);
inline UseCase use_of(const ProfileChoice& choice) {
    return {choice.device, choice.host, choice.host_often, choice.prefer};
}
inline Way way_of(const ProfileChoice& choice) {
    return {choice.kind, choice.locality};
}

}  // namespace isthmus::tools::tune
