// SPDX-License-Identifier: Apache-2.0
// Chooses the open greeting that a listener drops.
#include "greeting_rules.hpp"

#include <algorithm>

namespace isthmus::rules {
namespace {

std::size_t count_of(std::span<const std::uint32_t> uids, std::uint32_t user) noexcept {
    return static_cast<std::size_t>(std::count(uids.begin(), uids.end(), user));
}

std::size_t oldest_of(std::span<const std::uint32_t> uids, std::uint32_t user) noexcept {
    return static_cast<std::size_t>(std::find(uids.begin(), uids.end(), user) - uids.begin());
}

}  // namespace

std::optional<std::size_t> greeting_to_give_up(std::span<const std::uint32_t> uids, std::uint32_t newcomer) noexcept {
    if (count_of(uids, newcomer) >= max_greetings_of_a_user) return oldest_of(uids, newcomer);
    if (uids.size() < max_greetings) return std::nullopt;
    const auto most = std::max_element(uids.begin(), uids.end(), [&](std::uint32_t left, std::uint32_t right) {
        return count_of(uids, left) < count_of(uids, right);
    });
    return oldest_of(uids, *most);
}

}  // namespace isthmus::rules
