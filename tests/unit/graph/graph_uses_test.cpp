// SPDX-License-Identifier: Apache-2.0
// GraphUses against a plain list of the same uses: which buffers are held, and their combined use.
#include "graph_uses.hpp"

#include "fake_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace isthmus::detail {
namespace {

using isthmus::testing::FakeRuntime;
using isthmus::testing::FakeWorld;

using Use = std::pair<std::size_t, ArgumentUse>;  // the number of the buffer

// As if by one operation. Concurrent only without any other use.
ArgumentUse combined(const std::vector<Use>& uses, std::size_t buffer) {
    bool reads = false, writes = false, concurrent = false;
    for (const auto& [of, use] : uses) {
        if (of != buffer) continue;
        concurrent |= use == ArgumentUse::concurrent;
        reads |= use == ArgumentUse::read || use == ArgumentUse::read_write;
        writes |= use == ArgumentUse::write || use == ArgumentUse::read_write;
    }
    if (concurrent) return reads || writes ? ArgumentUse::read_write : ArgumentUse::concurrent;
    if (!writes) return ArgumentUse::read;
    return reads ? ArgumentUse::read_write : ArgumentUse::write;
}

// keeps G9, S15
TEST(GraphUses, AreThoseThatWereAddedAndNotRemovedInAnyOrder) {
    FakeWorld world;
    FakeRuntime runtime;
    Device device{runtime.open(world)};
    std::vector<Buffer<int>> buffers;
    for (int at = 0; at < 4; ++at) buffers.push_back(device.allocate<int>(4).value());
    constexpr std::array kinds = {ArgumentUse::read, ArgumentUse::write, ArgumentUse::read_write,
                                  ArgumentUse::concurrent};
    std::mt19937 draw(7);
    GraphUses uses;
    std::vector<Use> expected;
    GraphUses::LetGo let_go;
    for (int step = 0; step < 4000; ++step) {
        // Grows and shrinks by turns, so that buffers come and go and some have many uses.
        const bool grows = expected.empty() || draw() % 16 < (step / 100 % 2 == 0 ? 10u : 6u);
        let_go.clear();
        std::size_t changed = 0;
        if (grows) {
            expected.emplace_back(draw() % buffers.size(), kinds[draw() % kinds.size()]);
            changed = expected.back().first;
            uses.add(buffers[changed].state(), expected.back().second);
            EXPECT_TRUE(let_go.empty());
        } else {
            const auto gone = expected.begin() + static_cast<std::ptrdiff_t>(draw() % expected.size());
            const Use removed = *gone;
            expected.erase(gone);
            changed = removed.first;
            uses.remove(*buffers[changed].state(), removed.second, let_go);
            const bool last = std::none_of(expected.begin(), expected.end(),
                                           [&](const Use& other) { return other.first == changed; });
            ASSERT_EQ(let_go.size(), last ? 1u : 0u) << step;
            if (last) {
                EXPECT_EQ(let_go.back().buffer, buffers[changed].state());
            }
        }
        std::size_t held = 0;
        for (std::size_t at = 0; at < buffers.size(); ++at) {
            const bool used =
                std::any_of(expected.begin(), expected.end(), [&](const Use& use) { return use.first == at; });
            held += used ? 1 : 0;
            const auto entry =
                std::find_if(uses.entries().begin(), uses.entries().end(),
                             [&](const GraphUses::Entry& one) { return one.held.buffer == buffers[at].state(); });
            ASSERT_EQ(entry != uses.entries().end(), used) << step;
            if (used) {
                ASSERT_EQ(entry->held.use, combined(expected, at)) << step;
            }
        }
        ASSERT_EQ(uses.entries().size(), held) << step;
    }
}

}  // namespace
}  // namespace isthmus::detail
