// SPDX-License-Identifier: Apache-2.0
// A record that its owner releases and hands out again, while others look it up: what parked records and records of
// slabs' places have in common.
#pragma once

#include "explorer.hpp"

#include <cstdint>
#include <set>

namespace protocols {

// A look-up that finds nothing notes this; otherwise ten times the identity and the data, which are 0 at the beginning.
constexpr std::uint64_t none = 99;
inline const std::set<Outcome> first_second_or_none = {{{}, {0}}, {{}, {11}}, {{}, {none}}};
inline const std::set<Outcome> second_or_none = {{{}, {11}}, {{}, {none}}};

// The owner releases the memory, tells of it, and hands it out again. `told`: the cell that it tells by.
template <class Release, class Wake, class Look>
Exploration handed_out_again(std::uint32_t cells, std::uint32_t told, bool reader_was_told, Release release, Wake wake,
                             Look look) {
    const auto owner = [=](Memory& memory) {
        release(memory);
        memory.store(told, 1, Order::ordered);
        wake(memory);
    };
    const auto reader = [=](Memory& memory) {
        if (reader_was_told && memory.load(told, Order::ordered) != 1) memory.give_up();
        look(memory);
    };
    return explore(cells, {{Side::host, owner}, {Side::host, reader}});
}

}  // namespace protocols
