// SPDX-License-Identifier: Apache-2.0
// A record of the address map that its owner parks and revives without a lock, while the map takes it down and hands
// its slot to another allocation: Slot::park(), revive() and take_down() (runtime/provenance/address_nodes.hpp) in the
// model's words, in every order of their steps. Each step is one access of one word; all but loads and stores of the
// slot's own owner are read-modify-writes of the version, so that orders of the steps are all there is.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <tuple>

namespace {

constexpr std::uint64_t filling = std::uint64_t{1} << 63;
constexpr std::uint64_t first_id = 1, revived_id = 2, others_id = 9;

struct Slot {
    std::uint64_t version = 2;  // alive
    std::uint64_t id = first_id;
    bool operator<(const Slot& other) const { return std::tie(version, id) < std::tie(other.version, other.id); }
};
struct Run {
    Slot slot;
    std::array<int, 2> at{};  // the next step of each thread; -1: it has ended
    std::uint64_t seen = 0;   // the map's
    bool parked = false, revived = false;
    bool operator<(const Run& other) const {
        return std::tie(slot, at, seen, parked, revived) <
               std::tie(other.slot, other.at, other.seen, other.parked, other.revived);
    }
};
struct Faults {
    bool revives_without_claim = false;  // looks at the version, and then fills and stores
    bool takes_down_what_is_filled = false;
};

bool exchange(std::uint64_t& word, std::uint64_t expected, std::uint64_t wanted) {
    if (word != expected) return false;
    word = wanted;
    return true;
}

// One step; false: the thread has to look again later.
bool owner(Run& run, const Faults& faults) {
    Slot& slot = run.slot;
    switch (run.at[0]++) {
        case 0:
            run.parked = exchange(slot.version, 2, 3);
            if (!run.parked) run.at[0] = -1;
            return true;
        case 1: {
            const bool mine = faults.revives_without_claim ? slot.version == 3 : exchange(slot.version, 3, 3 | filling);
            if (!mine) run.at[0] = -1;
            return true;
        }
        case 2: slot.id = revived_id; return true;
        default:
            slot.version = 4;
            run.revived = true;
            run.at[0] = -1;
            return true;
    }
}

bool map(Run& run, const Faults& faults) {
    Slot& slot = run.slot;
    switch (run.at[1]++) {
        case 0:
            if ((slot.version & filling) != 0 && !faults.takes_down_what_is_filled) {
                run.at[1] = 0;
                return false;
            }
            run.seen = slot.version & ~filling;
            return true;
        case 1: {
            const std::uint64_t expected = faults.takes_down_what_is_filled ? slot.version : run.seen;
            const std::uint64_t dead = run.seen + (run.seen % 2 == 0 ? 1 : 2);
            if (!exchange(slot.version, expected, dead)) run.at[1] = 0;
            run.seen = dead;
            return true;
        }
        case 2: slot.id = others_id; return true;
        default:
            ++slot.version;  // alive, as another allocation
            run.seen = slot.version;
            run.at[1] = -1;
            return true;
    }
}

struct Found {
    std::size_t runs = 0;
    bool mixed = false;   // readers find a record under a version that is another one's
    bool stolen = false;  // at the end the slot is not the other allocation's
    bool both = false;    // in some order it was revived first
};

Found explored(const Faults& faults) {
    Found found;
    std::set<Run> known;
    const std::function<void(const Run&)> from = [&](const Run& run) {
        if (!known.insert(run).second) return;
        ++found.runs;
        if (run.slot.version % 2 == 0) {
            const std::uint64_t id = run.slot.id;
            const bool of_others = run.at[1] == -1;
            found.mixed = found.mixed || (of_others ? id != others_id : id == others_id);
            found.mixed = found.mixed || (!of_others && run.slot.version == 2 && id != first_id);
        }
        if (run.at[0] == -1 && run.at[1] == -1) {
            found.stolen = found.stolen || run.slot.id != others_id || run.slot.version != run.seen;
            found.both = found.both || run.revived;
        }
        for (const int thread : {0, 1}) {
            if (run.at[static_cast<std::size_t>(thread)] == -1) continue;
            Run next = run;
            if (thread == 0 ? owner(next, faults) : map(next, faults)) from(next);
        }
    };
    from({});
    return found;
}

TEST(ParkedRecords, ASlotHasOneOwnerInEveryOrder) {  // keeps M4, K12
    const Found found = explored({});
    EXPECT_GT(found.runs, 10u);
    EXPECT_FALSE(found.mixed);
    EXPECT_FALSE(found.stolen);
    EXPECT_TRUE(found.both) << "revived, and taken down after that";
}

TEST(ParkedRecords, TheClaimAndItsWaitAreBothNeeded) {  // keeps M4, K12
    const Found unclaimed = explored({.revives_without_claim = true});
    EXPECT_TRUE(unclaimed.mixed || unclaimed.stolen);
    const Found hasty = explored({.takes_down_what_is_filled = true});
    EXPECT_TRUE(hasty.mixed || hasty.stolen);
}

}  // namespace
