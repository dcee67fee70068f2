// SPDX-License-Identifier: Apache-2.0
// users of a listener's open greetings × the user of a new connection → which greeting is dropped. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace isthmus::rules {

// Limits on the open greetings of one listener: in total, and per user.
constexpr std::size_t max_greetings = 64;
constexpr std::size_t max_greetings_of_a_user = 32;

// `uids`: the users of the open greetings, oldest first. nullopt: there is room for one more. Otherwise the index of
// the oldest greeting of the newcomer's user, where that user has reached the limit per user; else of the oldest
// greeting of the user with the most of them. A peer that follows the protocol answers in far less time than others
// need to fill the quota, so the oldest greeting is the least likely to complete.
std::optional<std::size_t> greeting_to_give_up(std::span<const std::uint32_t> uids, std::uint32_t newcomer) noexcept;

}  // namespace isthmus::rules
