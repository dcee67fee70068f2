// SPDX-License-Identifier: Apache-2.0
// Frames that are overwritten while readers read them, in every execution: no torn frame is accepted, no reader sleeps
// although a frame is there, and removing any one memory order makes a check fail.
#include "model_atomics.hpp"

#include <isthmus/ipc/protocol/frame_stamps.hpp>

#include <gtest/gtest.h>

namespace {

using namespace protocols;
using namespace isthmus::protocol;
using Kind = Weakening::Kind;

constexpr std::uint32_t published = 0, cursor = 1, asleep = 2, stamps = 3;
constexpr std::uint32_t words = 2;  // of a frame; those of frame n hold n + 1

struct Case {
    std::uint32_t slots = 1;
    std::uint32_t frames = 2;
    std::uint32_t tries = 1;  // of the reader
    bool waits = false;       // the producer waits for the cursor, and the reader does not check the stamp again
    Weakening weakening{};
    bool leaves_out = false;  // all frames are begun before the first is abandoned and the others are published
};
std::uint32_t bytes_of(const Case& ring, std::uint64_t frame) {
    return stamps + ring.slots + static_cast<std::uint32_t>(frame % ring.slots) * words;
}
std::uint32_t stamp_of(const Case& ring, std::uint64_t frame) {
    return stamps + static_cast<std::uint32_t>(frame % ring.slots);
}

void produce(const Case& ring, Memory& memory) {
    const ModelAtomics atomics(memory, ring.weakening);
    const FrameStamper<ModelAtomics> stamper(atomics, published);
    if (ring.leaves_out) {
        for (std::uint64_t frame = 0; frame < ring.frames; ++frame) stamper.begin(stamp_of(ring, frame), frame);
    }
    for (std::uint64_t frame = 0; frame < ring.frames; ++frame) {
        if (ring.leaves_out && frame == 0) {
            atomics.store_stamped_relaxed(bytes_of(ring, frame), frame + 1);  // not whole
            stamper.leave_out(stamp_of(ring, frame), frame, ring.slots);
            continue;
        }
        if (ring.waits && frame >= ring.slots && !has_room(frame, stamper.cursor(cursor), ring.slots)) {
            memory.give_up();
        }
        if (!ring.leaves_out) stamper.begin(stamp_of(ring, frame), frame);
        for (std::uint32_t word = 0; word < words; ++word) {
            atomics.store_stamped_relaxed(bytes_of(ring, frame) + word, frame + 1);
        }
        stamper.publish(stamp_of(ring, frame), frame);
    }
}

// Notes 1 for an accepted whole frame, 77 for an accepted torn frame, 88 for a frame that it takes for a false stamp.
void read(const Case& ring, Memory& memory) {
    const ModelAtomics atomics(memory, ring.weakening);
    const FrameFollower<ModelAtomics> follower(atomics, published, cursor);
    std::uint64_t next = 0, seen = 0;
    for (std::uint32_t attempt = 0; attempt < ring.tries; ++attempt) {
        const std::uint64_t word = follower.published();
        const PublishedLook look = judge_published(word, seen, next, ring.slots);
        if (look.verdict == PublishedVerdict::goes_back) return memory.note(88);
        if (look.verdict != PublishedVerdict::frame) memory.give_up();
        seen = word;
        const StampVerdict before = judge_stamp(follower.stamp(stamp_of(ring, look.frame)), look.frame, ring.slots);
        if (before == StampVerdict::lie) return memory.note(88);
        next = look.frame + 1;
        if (before == StampVerdict::overtaken) continue;
        bool whole = true;
        for (std::uint32_t part = 0; part < words; ++part) {
            whole = (atomics.load_stamped_relaxed(bytes_of(ring, look.frame) + part) == look.frame + 1) && whole;
        }
        if (ring.waits) {
            follower.let_go(next);
        } else {
            const StampVerdict after =
                judge_stamp(follower.stamp_again(stamp_of(ring, look.frame)), look.frame, ring.slots);
            if (after == StampVerdict::lie) return memory.note(88);
            if (after == StampVerdict::overtaken) continue;
        }
        memory.note(whole ? 1 : 77);
    }
}

// Whether every accepted frame is whole, and at least one is accepted.
bool right(const Case& ring) {
    const Exploration all =
        explore(stamps + ring.slots * (1 + words),
                {{Side::host, [&](Memory& m) { produce(ring, m); }}, {Side::host, [&](Memory& m) { read(ring, m); }}});
    bool accepted = false;
    for (const Outcome& outcome : all.outcomes) {
        for (const std::uint64_t note : outcome[1]) {
            if (note != 1) return false;
            accepted = true;
        }
    }
    return accepted && !all.wild && all.whole;
}

// keeps I1
TEST(FrameStamps, NoExecutionAcceptsATornFrame) {
    EXPECT_TRUE(right({.slots = 1, .frames = 2}));
    EXPECT_TRUE(right({.slots = 1, .frames = 3}));
    EXPECT_TRUE(right({.slots = 2, .frames = 3, .tries = 2}));
}

// keeps I1
TEST(FrameStamps, AFrameThatIsLeftOutIsNeitherAcceptedNorALie) {
    EXPECT_TRUE(right({.slots = 2, .frames = 2, .tries = 2, .leaves_out = true}));
    Case relaxed{.slots = 2, .frames = 2, .tries = 2, .leaves_out = true};
    relaxed.weakening = {Kind::relaxed_store, published};
    EXPECT_FALSE(right(relaxed));
}

// keeps I1
TEST(FrameStamps, EveryOrderThatIsTakenAwayIsATornFrameInSomeExecution) {
    const auto weakened = [](Kind kind, std::uint32_t cell) {
        Case ring{.slots = 1, .frames = 2};
        ring.weakening = {kind, cell};
        return ring;
    };
    EXPECT_FALSE(right(weakened(Kind::no_store_fence, stamps)));
    EXPECT_FALSE(right(weakened(Kind::no_load_fence, stamps)));
    // Without its order, the count would also make the reader report a correct producer's stamps as false.
    EXPECT_FALSE(right(weakened(Kind::relaxed_store, published)));
    EXPECT_FALSE(right(weakened(Kind::relaxed_load, published)));
}

// keeps I1
TEST(FrameStamps, AProducerThatWaitsForTheCursorOverwritesNothingThatIsRead) {
    for (const std::uint32_t slots : {1u, 2u}) {
        Case ring{.slots = slots, .frames = slots + 1, .tries = slots, .waits = true};
        EXPECT_TRUE(right(ring));
        ring.weakening = {Kind::relaxed_store, cursor};
        EXPECT_FALSE(right(ring));
    }
}

// Records the places of fences for streaming stores. The model has no streaming stores, so the test checks the places
// instead.
struct NotingAtomics {
    using Cell = std::uint32_t;
    void store_stamped_relaxed(Cell, std::uint64_t value) const { note("stamp " + std::to_string(value)); }
    void store_stamped_release(Cell, std::uint64_t value) const { note("count " + std::to_string(value)); }
    void fence_release(Cell) const {}
    void fence_streaming(Cell) const { note("fence"); }
    void note(const std::string& what) const { noted->push_back(what); }
    std::vector<std::string>* noted;
};
// keeps I1
TEST(FrameStamps, StreamingStoresStayBetweenTheStampAndTheCount) {
    std::vector<std::string> noted;
    const FrameStamper<NotingAtomics> stamper(NotingAtomics{&noted}, published);
    stamper.begin(stamps, 0);
    noted.push_back("bytes");
    stamper.publish(stamps, 0);
    EXPECT_EQ(noted, (std::vector<std::string>{"stamp 1", "fence", "bytes", "fence", "stamp 2", "count 1"}));
}

// keeps I1
TEST(FrameStamps, NobodySleepsBesideAFrameThatIsThere) {
    const auto explored = [](Weakening weakening) {
        return explore(stamps, {{Side::host,
                                 [=](Memory& memory) {
                                     const ModelAtomics atomics(memory, weakening);
                                     atomics.store_stamped_release(published, 1);
                                     memory.note(sleeper_to_wake(atomics, asleep) ? 1 : 0);
                                 }},
                                {Side::host, [=](Memory& memory) {
                                     const ModelAtomics atomics(memory, weakening);
                                     announce_sleep(atomics, asleep);
                                     memory.note(atomics.load_stamped_acquire(published) == 0 ? 1 : 0);
                                 }}});
    };
    const Outcome lost{{0}, {1}};
    EXPECT_EQ(explored({}).outcomes.count(lost), 0u);
    EXPECT_EQ(explored({Kind::no_sequential_fence, asleep}).outcomes.count(lost), 1u);
}

// keeps I1
TEST(FrameStamps, AStampIsJudgedByWhatTheReaderKnows) {
    EXPECT_EQ(judge_stamp(stamp_whole(5), 5, 4), StampVerdict::whole);
    EXPECT_EQ(judge_stamp(stamp_writing(9), 5, 4), StampVerdict::overtaken);
    EXPECT_EQ(judge_stamp(stamp_whole(9), 5, 4), StampVerdict::overtaken);
    EXPECT_EQ(judge_stamp(0, 0, 4), StampVerdict::lie) << "never written, though published";
    EXPECT_EQ(judge_stamp(stamp_writing(5), 5, 4), StampVerdict::lie) << "still written, though published";
    EXPECT_EQ(judge_stamp(stamp_whole(1), 5, 4), StampVerdict::lie) << "goes back";
    EXPECT_EQ(judge_stamp(stamp_whole(8), 5, 4), StampVerdict::lie) << "a frame of another slot";
    EXPECT_EQ(judge_stamp(~std::uint64_t{0}, 5, 4), StampVerdict::lie) << "all bits";
}

// keeps I1
TEST(FrameStamps, ACountIsJudgedByWhatItWas) {
    const auto at = [](std::uint64_t word, std::uint64_t seen, std::uint64_t next, std::uint64_t kept) {
        return judge_published(word, seen, next, kept);
    };
    EXPECT_EQ(at(0, 0, 0, 3).verdict, PublishedVerdict::nothing);
    EXPECT_EQ(at(ring_closed, 0, 0, 3).verdict, PublishedVerdict::closed);
    EXPECT_EQ(at(2 | ring_closed, 2, 1, 3).verdict, PublishedVerdict::frame) << "what is left comes before the end";
    EXPECT_EQ(at(1, 2, 1, 3).verdict, PublishedVerdict::goes_back);
    EXPECT_EQ(at(2, 2 | ring_closed, 2, 3).verdict, PublishedVerdict::goes_back) << "open again";
    EXPECT_EQ(at(max_frames + 1, 2, 2, 3).verdict, PublishedVerdict::too_great);
    EXPECT_EQ(at(~std::uint64_t{0}, 2, 2, 3).verdict, PublishedVerdict::too_great);
    const PublishedLook look = at(10, 2, 2, 3);
    EXPECT_EQ(look.verdict, PublishedVerdict::frame);
    EXPECT_EQ(look.frame, 7u);
    EXPECT_EQ(look.missed, 5u);
}

// keeps I1
TEST(FrameStamps, ACursorIsJudgedByWhatItWasAndWhatWasPublished) {
    EXPECT_EQ(judge_cursor(3, 2, 4), CursorVerdict::fine);
    EXPECT_EQ(judge_cursor(1, 2, 4), CursorVerdict::goes_back);
    EXPECT_EQ(judge_cursor(5, 2, 4), CursorVerdict::too_great);
    EXPECT_EQ(judge_cursor(~std::uint64_t{0}, 2, 4), CursorVerdict::too_great);
    EXPECT_TRUE(has_room(3, 0, 4));
    EXPECT_FALSE(has_room(4, 0, 4));
}

}  // namespace
