// SPDX-License-Identifier: Apache-2.0
// The members of a buffer, each with its own rule: first use, sides, open views, storage, what is out of line.
#include "buffer_sides.hpp"
#include "buffer_storage.hpp"
#include "kept_blocks.hpp"
#include "open_views.hpp"
#include "out_of_line.hpp"
#include "piece.hpp"
#include "static_texts.hpp"
#include "stream_uses.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::detail;
using U = ArgumentUse;

// Stream pointers serve as names only: nothing dereferences them.
struct Names {
    std::array<std::uint64_t, 2> words{};
    const StreamState& one() const { return reinterpret_cast<const StreamState&>(words[0]); }
    const StreamState& other() const { return reinterpret_cast<const StreamState&>(words[1]); }
};

TEST(FirstUses, ThePlaceStaysThatOfTheFirstStream) {
    Names names;
    auto& one = const_cast<StreamState&>(names.one());
    auto& other = const_cast<StreamState&>(names.other());
    FirstUse use;
    EXPECT_EQ(use.stream(), nullptr);
    EXPECT_FALSE(use.is(one));
    use.begin(one, 3);
    use.begin(other, 9);
    EXPECT_TRUE(use.is(one));
    EXPECT_FALSE(use.is(other));
    EXPECT_EQ(use.position(), 3u);
    use.raise(4);
    EXPECT_EQ(use.position(), 4u);
}

TEST(Sides, AStagedBufferBeginsWithWhatTheHostSees) {  // keeps L4
    const BufferSides staged(true, true);
    EXPECT_TRUE(staged.host_newer());
    EXPECT_FALSE(staged.device_newer());
    const BufferSides plain(false, false);
    EXPECT_FALSE(plain.host_newer());
    EXPECT_FALSE(plain.device_newer());
}

TEST(Sides, AClaimUploadsWhatTheHostWroteOnceAndOnlyForReaders) {  // keeps L4
    for (const U use : {U::read, U::write, U::read_write}) {
        BufferSides sides(true, false);
        EXPECT_EQ(sides.claim(use).uploads, rules::reads(use));
        EXPECT_FALSE(sides.host_newer());
        EXPECT_EQ(sides.device_newer(), rules::writes(use));
        EXPECT_FALSE(sides.claim(use).uploads);
    }
}

TEST(Sides, TheHostsWritesMakeTheDevicesStaleAndTheRelayOnlyWhereThereIsOne) {  // keeps L4
    for (const bool relayed : {false, true}) {
        BufferSides sides(true, relayed);
        (void)sides.claim(U::read_write);
        EXPECT_EQ(sides.relay_stale(), relayed);
        sides.relay_filled();
        EXPECT_FALSE(sides.relay_stale());
        sides.host_writes();
        EXPECT_TRUE(sides.host_newer());
        EXPECT_FALSE(sides.device_newer());
        EXPECT_EQ(sides.relay_stale(), relayed);
    }
}

TEST(Sides, AnOperationThatDidNotHappenChangedNeither) {  // keeps L4
    BufferSides sides(true, false);
    const BufferSides::Claim before = sides.claim(U::read_write).before;
    sides.restore(before);
    EXPECT_TRUE(sides.host_newer());
    EXPECT_FALSE(sides.device_newer());
}

TEST(Sides, AnOperationThatDidNotHappenLeavesWhatAnotherHasBuiltOn) {  // keeps L4
    BufferSides sides(true, false);
    const BufferSides::Claim refused = sides.claim(U::read).before;
    (void)sides.claim(U::write);
    sides.restore(refused);
    EXPECT_FALSE(sides.host_newer());
    EXPECT_TRUE(sides.device_newer());
    sides.copied_to_host();
    EXPECT_FALSE(sides.device_newer());
}

TEST(Sides, KnowWhichStreamBroughtThemAndWhichHasThem) {  // keeps K6
    const Names names;
    BufferSides sides(false, false);
    EXPECT_FALSE(sides.brought_elsewhere(names.one()));
    sides.brought(names.one(), 5);
    EXPECT_FALSE(sides.brought_elsewhere(names.one()));
    EXPECT_TRUE(sides.brought_elsewhere(names.other()));
    EXPECT_EQ(sides.brought_at(), 5u);
    sides.attach(names.other());
    EXPECT_EQ(sides.attached_to(), &names.other());
    sides.detach();
    EXPECT_EQ(sides.attached_to(), nullptr);
}

TEST(FirstUses, ViewableMemoryIsUsedAgainByTheSameSortOfUseOnly) {  // keeps G8
    Names names;
    auto& one = const_cast<StreamState&>(names.one());
    auto& other = const_cast<StreamState&>(names.other());
    for (const bool writes : {false, true}) {
        FirstUse use;
        EXPECT_FALSE(use.is_again(one, writes));
        use.begin_viewable(one, 3, writes);
        EXPECT_TRUE(use.viewable());
        EXPECT_TRUE(use.is_again(one, writes));
        EXPECT_FALSE(use.is_again(one, !writes));
        EXPECT_FALSE(use.is_again(other, writes));
        EXPECT_FALSE(use.is(one)) << "the way of memory that the host can never view";
        EXPECT_EQ(use.use(), writes ? U::write : U::read);
        use.begin_viewable(other, 9, writes);
        EXPECT_EQ(use.stream(), &one);
        EXPECT_EQ(use.position(), 3u);
        use.hold_back(true);
        EXPECT_FALSE(use.is_again(one, writes));
        EXPECT_EQ(use.use(), writes ? U::write : U::read);
        use.begin_viewable(one, 4, !writes);
        EXPECT_FALSE(use.is_again(one, !writes)) << "still held back";
        use.hold_back(false);
        EXPECT_TRUE(use.is_again(one, !writes));
        use.end();
        EXPECT_EQ(use.stream(), nullptr);
        use.begin_viewable(other, 9, writes);
        EXPECT_TRUE(use.is_again(other, writes));
    }
    FirstUse never;
    never.begin(one, 1);
    EXPECT_FALSE(never.viewable());
    EXPECT_EQ(never.use(), U::write);
    EXPECT_FALSE(never.is_again(one, true));
}

// keeps W3: the short way of launches compares the stream, and takes the long way while a native scope is open
TEST(FirstUses, NoStreamIsTheFirstWhileThePlaceIsHeldBack) {
    Names names;
    auto& one = const_cast<StreamState&>(names.one());
    FirstUse use;
    use.hold_back(true);
    EXPECT_EQ(use.stream(), nullptr);
    use.begin(one, 3);
    EXPECT_FALSE(use.is(one));
    EXPECT_EQ(use.stream(), &one);
    EXPECT_EQ(use.position(), 3u);
    use.hold_back(false);
    EXPECT_TRUE(use.is(one));
    use.hold_back(true);
    EXPECT_FALSE(use.is(one));
    EXPECT_EQ(use.stream(), &one);
}

// keeps W3
TEST(OpenViews, MarksOfANativeScopeRefuseWhatAViewWouldAndNotTheirOwnScope) {
    const int mine = 0;
    const int theirs = 0;
    for (const U marked : {U::read, U::read_write}) {
        for (const U use : {U::read, U::write, U::read_write, U::concurrent}) {
            for (const rules::ByteSpan span : {rules::ByteSpan{}, rules::ByteSpan{0, 10}, rules::ByteSpan{50, 60}}) {
                OpenViews views(false, OpenViews::Prefetched::nothing);
                {
                    const std::lock_guard lock(views);
                    views.mark(&mine, {marked, {0, 40}, "inference"});
                    const OpenUse found = views.open_against(use, span);
                    const bool refused = !(marked == U::read && use == U::read) && span.begin < 40;
                    EXPECT_EQ(static_cast<bool>(found), refused);
                    if (refused) {
                        EXPECT_STREQ(found.native, "inference");
                    }
                    EXPECT_FALSE(views.open_against(use, span, &mine));
                    EXPECT_EQ(static_cast<bool>(views.open_against(use, span, &theirs)), refused);
                    EXPECT_FALSE(views.begin_release());
                }
                EXPECT_FALSE(views.open_at_once(false));
                EXPECT_TRUE(views.seen().any_open());
                views.unmark(&theirs);
                EXPECT_TRUE(views.seen().any_open());
                views.unmark(&mine);
                EXPECT_FALSE(views.seen().any_open());
                const std::lock_guard lock(views);
                EXPECT_FALSE(views.marked());
                EXPECT_FALSE(views.open_against(use, span));
            }
        }
    }
}

TEST(OpenViews, RefuseExactlyWhatMayNotGoTogether) {  // keeps G9, G14
    for (const U open : {U::read, U::read_write, U::concurrent}) {
        OpenViews views(false, OpenViews::Prefetched::nothing);
        {
            const std::lock_guard lock(views);
            views.open({open, {}});
            for (const U use : {U::read, U::write, U::read_write, U::concurrent}) {
                EXPECT_EQ(static_cast<bool>(views.open_against(use)), !rules::together(open, use))
                    << rules::purpose(use) << " beside " << rules::purpose(open);
            }
        }
        EXPECT_FALSE(views.close(open, {}));
        const std::lock_guard lock(views);
        EXPECT_FALSE(views.open_against(U::read_write));
    }
}

TEST(OpenViews, AReleaseBeginsOnlyWhereNoneIsOpenAndCanFail) {
    OpenViews views(false, OpenViews::Prefetched::nothing);
    {
        const std::lock_guard lock(views);
        views.open({U::concurrent, {}});
        EXPECT_FALSE(views.begin_release());
        EXPECT_FALSE(views.released());
    }
    EXPECT_FALSE(views.close(U::concurrent, {}));
    {
        const std::lock_guard lock(views);
        EXPECT_TRUE(views.begin_release());
    }
    EXPECT_TRUE(views.released());
    EXPECT_FALSE(views.plain());
    views.release_failed();
    EXPECT_FALSE(views.released());
}

TEST(OpenViews, TheLastOneEndsAnAbandonedBufferWhateverItsUse) {
    for (const U use : {U::read, U::concurrent}) {
        OpenViews views(false, OpenViews::Prefetched::nothing);
        {
            const std::lock_guard lock(views);
            views.open({use, {}});
            views.open({use, {}});
        }
        EXPECT_FALSE(views.abandon());
        EXPECT_FALSE(views.close(use, {}));
        EXPECT_TRUE(views.close(use, {}));
    }
    OpenViews idle(false, OpenViews::Prefetched::nothing);
    EXPECT_TRUE(idle.abandon());
}

struct Used : LastUse {
    std::shared_ptr<int> stream;
};

TEST(OpenViews, PartsKnowWhatWasUsedBeforeThereWereAny) {  // keeps G8
    OpenViews views(true, OpenViews::Prefetched::host_touched);
    Used before;
    before.stream = std::make_shared<int>(0);
    before.raise(7, U::write);
    const void* const stream = before.stream.get();
    const std::lock_guard lock(views);
    EXPECT_TRUE(views.plain());
    EXPECT_EQ(views.at_host(), nullptr);
    EXPECT_EQ(views.last_use(stream, before, {0, 8}).last, 7u);
    views.make_parted(std::vector<Used>{before});
    EXPECT_TRUE(views.parted());
    EXPECT_FALSE(views.plain());
    views.touch(stream, 9, U::read, {0, 8}, [](const void*, std::uint64_t) { return false; });
    EXPECT_EQ(views.last_use(stream, {}, {0, 8}).last, 9u);
    EXPECT_EQ(views.last_use(stream, {}, {8, 16}).last, 7u);
    views.forget(stream);
    EXPECT_EQ(views.last_use(stream, {}, {0, 8}).last, 0u);
}

TEST(OpenViews, PagesAreAtTheHostFromItsTouchToTheMove) {  // keeps K21
    OpenViews views(false, OpenViews::Prefetched::host_touched);
    const std::lock_guard lock(views);
    EXPECT_FALSE(views.pages_at_host({}));
    views.note_host_touched();
    EXPECT_TRUE(views.pages_at_host({}));
    views.moved_to_device({});
    EXPECT_FALSE(views.pages_at_host({}));
    views.make_parted(std::vector<Used>{});
    views.open({U::read, {0, 8}});
    EXPECT_FALSE(views.pages_at_host({0, 8}));  // an open view uses them there
    EXPECT_FALSE(views.pages_at_host({8, 16}));
}

TEST(OpenViews, PagesThatArePrefetchedOnceAreNotPrefetchedAgain) {
    OpenViews views(false, OpenViews::Prefetched::once);
    const std::lock_guard lock(views);
    EXPECT_TRUE(views.pages_at_host({})) << "before the first use, though the host did not touch it";
    views.moved_to_device({});
    EXPECT_FALSE(views.pages_at_host({}));
    views.open({U::write, {}});
    views.note_host_touched();
    EXPECT_FALSE(views.pages_at_host({})) << "the host's use moves nothing here";
    EXPECT_TRUE(views.plain()) << "opening views has nothing to note";
    views.make_parted(std::vector<Used>{});
    EXPECT_FALSE(views.pages_at_host({0, 8}));
}

TEST(OpenViews, PartsThatArePrefetchedOnceAreNotPrefetchedAgain) {
    OpenViews views(false, OpenViews::Prefetched::once);
    const std::lock_guard lock(views);
    views.make_parted(std::vector<Used>{});
    EXPECT_TRUE(views.pages_at_host({0, 8}));
    views.moved_to_device({0, 8});
    EXPECT_FALSE(views.pages_at_host({0, 8}));
    EXPECT_TRUE(views.pages_at_host({8, 16})) << "each part once";
    views.open({U::write, {0, 8}});
    EXPECT_FALSE(views.pages_at_host({0, 8}));
}

// A piece of memory for its address alone.
struct Pieces {
    isthmus::detail::Piece one, other;
};

TEST(OutOfLine, HasThePieceBeforeAndBehindTheFirstUse) {
    Pieces pieces;
    isthmus::detail::OwnedBlocks kept(new isthmus::detail::KeptBlocks);
    {
        OutOfLine all;
        EXPECT_EQ(all.piece(), nullptr);
        all.set_piece(&pieces.one);
        EXPECT_EQ(all.piece(), &pieces.one);
        EXPECT_EQ(all.book(), nullptr);
        EXPECT_EQ(all.extras(), nullptr);
        const BufferBook& book = all.make_book(kept.get());
        EXPECT_EQ(all.book(), &book);
        EXPECT_EQ(&all.make_book(kept.get()), &book) << "one is enough";
        EXPECT_EQ(all.piece(), &pieces.one);
        EXPECT_EQ(all.extras(), nullptr);
        const BufferExtras& extras = all.make_extras(kept.get());
        EXPECT_EQ(all.extras(), &extras);
        EXPECT_EQ(&all.make_extras(kept.get()), &extras);
        all.set_piece(&pieces.other);
        EXPECT_EQ(all.piece(), &pieces.other);
        EXPECT_FALSE(kept->any_idle());
    }
    EXPECT_TRUE(kept->any_idle()) << "the book came back";
}

TEST(OutOfLine, OfThreadsThatMakeABookTheFirstWins) {
    for (int round = 0; round < 200; ++round) {
        OutOfLine all;
        std::array<BufferExtras*, 2> made{};
        {
            std::thread other([&] { made[1] = &all.make_extras(); });
            made[0] = &all.make_extras();
            other.join();
        }
        ASSERT_EQ(made[0], made[1]);
        ASSERT_EQ(all.extras(), made[0]);
    }
}

// A sealed scope has one block for each buffer: threads that come at the same time borrow no further one.
TEST(OutOfLine, ThreadsThatMakeABookTogetherBorrowOneBlock) {  // keeps R9
    isthmus::detail::OwnedBlocks books(new isthmus::detail::KeptBlocks(8));
    books->give_back(books->take(sizeof(BufferBook)));
    for (int round = 0; round < 500; ++round) {
        OutOfLine all;
        std::atomic<int> waiting{0};
        const auto make = [&] {
            ++waiting;
            while (waiting.load() < 2) std::this_thread::yield();
            (void)all.make_book(books.get());
        };
        std::thread other(make);
        make();
        other.join();
        ASSERT_FALSE(books->any_idle()) << "a second block was borrowed, in round " << round;
    }
}

TEST(KeptBlocks, LendNoneForAnObjectThatIsThere) {  // keeps R9
    isthmus::detail::OwnedBlocks kept(new isthmus::detail::KeptBlocks(8));
    kept->give_back(kept->take(sizeof(std::uint64_t)));
    std::uint64_t there = 5;
    std::uint64_t* found = &there;
    int calls = 0;
    const auto make = [&](void* memory) {
        ++calls;
        return ::new (memory) std::uint64_t(7);
    };
    EXPECT_EQ(kept->make_once(
                  sizeof(std::uint64_t), [&] { return found; }, make),
              &there);
    EXPECT_EQ(calls, 0);
    EXPECT_TRUE(kept->any_idle());
    found = nullptr;
    std::uint64_t* const made = kept->make_once(
        sizeof(std::uint64_t), [&] { return found; }, make);
    EXPECT_EQ(*made, 7u);
    EXPECT_FALSE(kept->any_idle());
    // Another thread published one from elsewhere: the block stays.
    kept->give_back(made);
    const auto beaten = [&](void*) {
        found = &there;
        return static_cast<std::uint64_t*>(nullptr);
    };
    EXPECT_EQ(kept->make_once(
                  sizeof(std::uint64_t), [&] { return found; }, beaten),
              &there);
    EXPECT_TRUE(kept->any_idle());
}

TEST(KeptBlocks, KeepOneForEachBlockOfAnotherSort) {  // keeps R9
    constexpr std::size_t bytes = 64;
    isthmus::detail::OwnedBlocks states(new isthmus::detail::KeptBlocks(1));
    isthmus::detail::OwnedBlocks books(new isthmus::detail::KeptBlocks(1));
    std::array<void*, 5> lent{};
    for (void*& one : lent) one = states->take(bytes);
    std::vector<void*> taken{books->take(bytes)};  // of one of the five
    books->keep_for_each_of(*states, bytes);
    for (int at = 0; at < 4; ++at) {
        EXPECT_TRUE(books->any_idle()) << at;
        taken.push_back(books->take(bytes));
    }
    EXPECT_FALSE(books->any_idle());
    for (void* const one : taken) books->give_back(one);
    for (void* const one : lent) states->give_back(one);
}

TEST(StaticTexts, AreKnownByTheSameNumberAgain) {
    isthmus::detail::StaticTexts texts;
    EXPECT_EQ(texts.number(""), 0u);
    EXPECT_EQ(texts.text(0), "");
    EXPECT_EQ(texts.text(1), "");
    std::vector<std::string> some;
    for (int at = 0; at < 200; ++at) some.push_back("reason " + std::to_string(at));
    for (int times = 0; times < 2; ++times) {
        for (std::size_t at = 0; at < some.size(); ++at) ASSERT_EQ(texts.number(some[at]), at + 1);
    }
    for (std::size_t at = 0; at < some.size(); ++at)
        ASSERT_EQ(texts.text(static_cast<std::uint16_t>(at + 1)), some[at]);
}

TEST(Extras, SeamsBehindTheEndOfShrunkMemoryGo) {  // keeps V11
    BufferExtras extras(nullptr);
    extras.seams = {4, 8, 16};
    extras.drop_seams_from(8);
    EXPECT_EQ(extras.seams, (Seams{4}));
    extras.drop_seams_from(0);
    extras.drop_seams_from(0);
    EXPECT_TRUE(extras.seams.empty());
}

TEST(Storage, ChangesItsSizeAndNothingElse) {  // keeps V11
    StorageFacts facts;
    facts.bytes = 16;
    facts.device_address = 0x1000;
    const BufferStorage made(facts);
    BufferStorage storage(facts);
    static_assert(std::is_const_v<std::remove_pointer_t<decltype(storage.operator->())>>);
    storage.change_size(32);
    EXPECT_EQ(storage->bytes, 32u);
    EXPECT_EQ(made->bytes, 16u);
    EXPECT_EQ(storage->device_address, 0x1000u);
}

TEST(Storage, AsksOnceWhetherItIsOfAFile) {
    for (const bool answer : {false, true}) {
        BufferStorage storage{StorageFacts{}};
        int asked = 0;
        const auto ask = [&] { return ++asked, answer; };
        EXPECT_EQ(storage.of_file(ask), answer);
        EXPECT_EQ(storage.of_file(ask), answer);
        EXPECT_EQ(asked, 1);
    }
}

}  // namespace
