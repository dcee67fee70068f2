// SPDX-License-Identifier: Apache-2.0
// The members of a buffer, each with its own rule: first use, sides, open views, storage.
#include "buffer_sides.hpp"
#include "buffer_storage.hpp"
#include "open_views.hpp"
#include "stream_uses.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
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

TEST(Storage, ChangesItsSizeAndItsSeamsAndNothingElse) {  // keeps V11
    StorageFacts facts;
    facts.bytes = 16;
    facts.device_address = 0x1000;
    facts.seams = std::make_unique<Seams>(Seams{4, 8});
    BufferStorage storage(std::move(facts));
    static_assert(std::is_const_v<std::remove_pointer_t<decltype(storage.operator->())>>);
    storage.change_size(32);
    storage.add_seam(16);
    EXPECT_EQ(storage->bytes, 32u);
    EXPECT_EQ(*storage->seams, (Seams{4, 8, 16}));
    storage.drop_seams_from(8);
    EXPECT_EQ(*storage->seams, (Seams{4}));
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
