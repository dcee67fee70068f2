// users of the greetings that a listener has open × the user of a new connection → which greeting is given up. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace isthmus::rules {

// Greetings that one listener has open at the same time: of all users, and of one.
constexpr std::size_t most_greetings = 64;
constexpr std::size_t most_greetings_of_a_user = 32;

// `uids`: of the open greetings, the oldest first. Nothing: there is room for one more. Otherwise the index of the
// oldest greeting of the newcomer, where this user has as many as a user may have; else of the oldest greeting of the
// user with the most of them. A peer that follows the protocol answers in far less time than it takes others to fill
// the quota, so the oldest greeting is the one that is least likely to come to its end.
std::optional<std::size_t> greeting_to_give_up(std::span<const std::uint32_t> uids, std::uint32_t newcomer) noexcept;

}  // namespace isthmus::rules
