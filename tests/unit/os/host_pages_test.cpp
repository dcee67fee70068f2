// SPDX-License-Identifier: Apache-2.0
// Host memory against a system whose answers the test chooses: every failure of every call, strict and preferred.
#include "made_up_system.hpp"

#include <gtest/gtest.h>

#include <linux/mempolicy.h>
#include <cerrno>
#include <cstring>
#include <limits>

namespace isthmus::platform::os {
namespace {

using namespace made_up;

class HostMemoryOnAMadeUpSystem : public testing::Test {
protected:
    HostMemoryOnAMadeUpSystem() {
        start_again();
        machine.numa_nodes = {{0, 8, megabyte}, {1, 8, megabyte}, {2, 0, megabyte}};
        machine.huge_page_bytes = 2 * megabyte;
        machine.memlock_limit_bytes = 8192;
    }
    ~HostMemoryOnAMadeUpSystem() override { EXPECT_EQ(script.mapped_bytes, 0) << "a mapping was left behind"; }

    Result<HostPages> get(const HostPlacement& placement, std::size_t bytes = megabyte) {
        return HostPages::allocate(bytes, placement, 1, machine, calls);
    }
    void only_cpu_nodes() { machine.numa_nodes.pop_back(); }
    static HostPlacement on_node_1(bool strict) {
        HostPlacement placement;
        placement.locality = Locality::node;
        placement.node = 1;
        placement.strict = strict;
        return placement;
    }

    MachineFacts machine;
    SystemCalls calls = made_up::system();
};

TEST_F(HostMemoryOnAMadeUpSystem, PreferredAndStrictPlacementIsBoundOnceTouchedAndVerified) {  // keeps H1, H2, H6
    for (const bool strict : {false, true}) {
        start_again();
        const auto pages = get(on_node_1(strict));
        ASSERT_TRUE(pages.ok()) << pages.error().text();
        EXPECT_EQ(script.mbind_calls, 1);
        EXPECT_EQ(script.mode, strict ? MPOL_BIND : MPOL_PREFERRED);
        EXPECT_EQ(script.mask, 2u);
        EXPECT_TRUE(script.populated);
        EXPECT_FALSE(script.touched_before_bound);
        EXPECT_EQ(script.pages_asked, megabyte / page_size_bytes());
        EXPECT_EQ(pages->report().placed, Placed::verified);
        EXPECT_EQ(pages->report().node, 1);
        EXPECT_EQ(pages->report().page_bytes, page_size_bytes());
        EXPECT_EQ(pages->report().reason, "");
    }
}

TEST_F(HostMemoryOnAMadeUpSystem, AnywhereAsksTheSystemForNothingButPages) {
    only_cpu_nodes();
    const auto pages = get({});
    ASSERT_TRUE(pages.ok());
    EXPECT_EQ(script.mbind_calls, 0);
    EXPECT_EQ(script.pages_asked, 0u);
    EXPECT_FALSE(script.populated);
    EXPECT_EQ(pages->report().placed, Placed::unasked);
}

// keeps P8: the driver does not migrate bound pages
TEST_F(HostMemoryOnAMadeUpSystem, UnboundMemoryBesideGpuNodesAsksTheSystemForNothingButPages) {
    HostPlacement unbound;
    unbound.locality = Locality::unbound;
    for (const bool strict : {false, true}) {
        unbound.strict = strict;
        const auto pages = get(unbound);
        ASSERT_TRUE(pages.ok());
        EXPECT_EQ(script.mbind_calls, 0);
        EXPECT_EQ(script.pages_asked, 0u);
        EXPECT_EQ(pages->report().placed, Placed::unasked);
    }
}

TEST_F(HostMemoryOnAMadeUpSystem, AnywhereBesideGpuNodesIsBoundToTheCpuNodesAndNotTouched) {  // keeps H4
    auto pages = get({});
    ASSERT_TRUE(pages.ok());
    EXPECT_EQ(script.mbind_calls, 1);
    EXPECT_EQ(script.mode, MPOL_BIND);
    EXPECT_EQ(script.mask, 3u) << "nodes 0 and 1; node 2 is the memory of a GPU";
    EXPECT_FALSE(script.populated);
    EXPECT_EQ(pages->report().placed, Placed::unasked);
    EXPECT_EQ(pages->report().reason, "");

    // Where binding is forbidden, a request without a node is not refused; the report mentions it.
    HostPlacement strict;
    strict.strict = true;
    script.mbind_errno = EPERM;
    pages = get(strict);
    ASSERT_TRUE(pages.ok());
    EXPECT_EQ(pages->report().placed, Placed::unasked);
    EXPECT_NE(pages->report().reason.find("forbidden"), std::string::npos);
}

TEST_F(HostMemoryOnAMadeUpSystem, InterleavedPagesMayLieOnAnyCpuNode) {  // keeps H1, H4
    HostPlacement placement;
    placement.locality = Locality::interleaved;
    script.first_lies_on = 0;
    const auto pages = get(placement);
    ASSERT_TRUE(pages.ok());
    EXPECT_EQ(script.mode, MPOL_INTERLEAVE);
    EXPECT_EQ(script.mask, 3u) << "nodes 0 and 1; node 2 has no CPUs";
    EXPECT_EQ(pages->report().placed, Placed::verified);
    EXPECT_EQ(pages->report().node, -1) << "several nodes";
}

TEST_F(HostMemoryOnAMadeUpSystem, LocalWithoutATouchPromisesTheFirstToucher) {  // keeps H1
    HostPlacement placement;
    placement.locality = Locality::local;
    auto pages = get(placement);
    ASSERT_TRUE(pages.ok());
    EXPECT_EQ(script.mode, MPOL_LOCAL);
    EXPECT_EQ(pages->report().placed, Placed::unasked);
    EXPECT_NE(pages->report().reason.find("touches it first"), std::string::npos);

    placement.prefault = true;
    pages = get(placement);
    EXPECT_EQ(pages->report().placed, Placed::verified);
    script.runs_on = 0;
    pages = get(placement);
    EXPECT_EQ(pages->report().placed, Placed::fallback);
    script.runs_on = -1;
    pages = get(placement);
    EXPECT_EQ(pages->report().placed, Placed::unverifiable);
}

struct BindFailure {
    int error;
    Code code;
};
TEST_F(HostMemoryOnAMadeUpSystem, EveryFailureOfMbindIsTypedWhenStrictAndAFallbackOtherwise) {  // keeps H2, H3
    const BindFailure failures[] = {{EPERM, Code::not_permitted},
                                    {ENOSYS, Code::unsupported},
                                    {EINVAL, Code::invalid_argument},
                                    {ENOMEM, Code::out_of_memory},
                                    {EIO, Code::system_error}};
    for (const BindFailure& failure : failures) {
        start_again();
        script.mbind_errno = failure.error;
        const auto strict = get(on_node_1(true));
        ASSERT_EQ(strict.code(), failure.code) << std::strerror(failure.error);
        EXPECT_EQ(strict.error().call(), "mbind");
        EXPECT_EQ(strict.error().driver_code(), failure.error);
        EXPECT_FALSE(strict.error().remedy().empty());

        const auto preferred = get(on_node_1(false));
        ASSERT_TRUE(preferred.ok());
        EXPECT_EQ(preferred->report().placed, Placed::fallback);
        EXPECT_EQ(preferred->report().reason, strict.error().message());
    }
}

TEST_F(HostMemoryOnAMadeUpSystem, WhereAskingIsForbiddenThePlaceIsUnverifiable) {  // keeps H2, H3
    for (const int error : {EPERM, ENOSYS, EACCES}) {
        start_again();
        script.move_pages_errno = error;
        const auto preferred = get(on_node_1(false));
        ASSERT_TRUE(preferred.ok());
        EXPECT_EQ(preferred->report().placed, Placed::unverifiable);
        EXPECT_EQ(preferred->report().node, -1);
        const auto strict = get(on_node_1(true));
        ASSERT_EQ(strict.code(), Code::unverified);
        EXPECT_EQ(strict.error().call(), "move_pages");
        EXPECT_EQ(strict.error().driver_code(), error);
    }
}

TEST_F(HostMemoryOnAMadeUpSystem, APageThatTheSystemDoesNotPlaceMakesAllUnverifiable) {  // keeps H2
    script.first_lies_on = -ENOENT;
    EXPECT_EQ(get(on_node_1(false))->report().placed, Placed::unverifiable);
    start_again();
    script.first_lies_on = -ENOENT;
    EXPECT_EQ(get(on_node_1(true)).code(), Code::unverified);
}

TEST_F(HostMemoryOnAMadeUpSystem, OnePageElsewhereIsAFallbackAndRefusedWhenStrict) {  // keeps H2
    script.first_lies_on = 0;
    const auto preferred = get(on_node_1(false));
    EXPECT_EQ(preferred->report().placed, Placed::fallback);
    EXPECT_NE(preferred->report().reason.find("1 of 256 pages"), std::string::npos) << preferred->report().reason;
    script.pages_asked = 0;
    EXPECT_EQ(get(on_node_1(true)).code(), Code::system_error);
}

TEST_F(HostMemoryOnAMadeUpSystem, ACpusetThatForbidsTheNodeIsNamed) {  // keeps H2
    script.allowed_mask = 1;
    const auto strict = get(on_node_1(true));
    ASSERT_EQ(strict.code(), Code::not_permitted);
    EXPECT_NE(strict.error().message().find("cpuset"), std::string_view::npos);
    EXPECT_EQ(script.mbind_calls, 0);
    EXPECT_EQ(get(on_node_1(false))->report().placed, Placed::fallback);

    start_again();
    script.allowed_errno = EPERM;  // if the system does not report allowed nodes, mbind decides
    script.allowed_mask = 1;
    EXPECT_EQ(get(on_node_1(true))->report().placed, Placed::verified);
}

// keeps K18: also where huge pages were asked for and are not to be had
TEST_F(HostMemoryOnAMadeUpSystem, AMappingBeginsWhereItsAlignmentSays) {
    for (const std::size_t huge_page : {std::size_t{0}, 2 * megabyte}) {
        for (const std::size_t alignment : {std::size_t{1}, std::size_t{4096}, std::size_t{65536}, 2 * megabyte}) {
            machine.huge_page_bytes = huge_page;
            HostPlacement placement;
            placement.page_size = huge_page != 0 ? PageSize::huge : PageSize::ordinary;
            const auto pages = HostPages::allocate(3 * 4096, placement, 1, machine, calls, {}, alignment);
            ASSERT_TRUE(pages.ok());
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages->data()) % alignment, 0u);
        }
    }
}

TEST_F(HostMemoryOnAMadeUpSystem, FailuresOfTheMappingAreTyped) {
    script.mmap_errno = ENOMEM;
    const auto full = get({});
    ASSERT_EQ(full.code(), Code::out_of_memory);
    EXPECT_EQ(full.error().call(), "mmap");
    EXPECT_EQ(full.error().driver_code(), ENOMEM);
    script.mmap_errno = EPERM;
    EXPECT_EQ(get({}).code(), Code::not_permitted);
    EXPECT_EQ(get({}, 0).code(), Code::invalid_argument);
    EXPECT_EQ(get({}, std::numeric_limits<std::size_t>::max()).code(), Code::invalid_argument);
    HostPlacement huge;
    huge.page_size = PageSize::huge;
    EXPECT_EQ(get(huge, std::numeric_limits<std::size_t>::max() - 5).code(), Code::invalid_argument);
}

TEST_F(HostMemoryOnAMadeUpSystem, FailuresOfTheTouchAreTyped) {
    script.populate_errno = ENOMEM;
    EXPECT_EQ(get(on_node_1(false)).code(), Code::out_of_memory);
    script.populate_errno = EFAULT;  // where a touch would be a SIGBUS
    EXPECT_EQ(get(on_node_1(false)).code(), Code::system_error);
    script.populate_errno = EINVAL;  // kernels before 5.14: touched by the library
    EXPECT_EQ(get(on_node_1(false))->report().placed, Placed::verified);
}

TEST_F(HostMemoryOnAMadeUpSystem, ALockLimitThatIsTooSmallIsNamed) {  // keeps H8
    HostPlacement placement;
    placement.lock = true;
    EXPECT_TRUE(get(placement)->report().locked);
    for (const int error : {ENOMEM, EPERM, EAGAIN}) {
        start_again();
        script.mlock_errno = error;
        placement.strict = false;
        const auto preferred = get(placement);
        ASSERT_TRUE(preferred.ok());
        EXPECT_FALSE(preferred->report().locked);
        EXPECT_NE(preferred->report().reason.find("RLIMIT_MEMLOCK is 8192 bytes"), std::string::npos);
        placement.strict = true;
        const auto strict = get(placement);
        ASSERT_EQ(strict.code(), Code::system_limit);
        EXPECT_NE(strict.error().message().find("RLIMIT_MEMLOCK is 8192 bytes"), std::string_view::npos);
    }
    machine.memlock_limit_bytes = std::numeric_limits<std::uint64_t>::max();
    EXPECT_NE(get(placement).error().message().find("(RLIMIT_MEMLOCK is unlimited)"), std::string_view::npos);
    script.mlock_errno = EINVAL;
    EXPECT_EQ(get(placement).code(), Code::system_error);
}

TEST_F(HostMemoryOnAMadeUpSystem, HugePagesComeFromThePoolOrFallBackHonestly) {  // keeps H5
    only_cpu_nodes();
    HostPlacement placement;
    placement.page_size = PageSize::huge;
    script.hugetlb_errno = 0;
    auto pages = get(placement);
    EXPECT_EQ(pages->report().page_bytes, 2 * megabyte);
    EXPECT_EQ(pages->report().reason, "");

    script.hugetlb_errno = ENOMEM;  // not touched: a shortage is not visible yet
    pages = get(placement);
    EXPECT_EQ(pages->report().page_bytes, page_size_bytes());
    EXPECT_NE(pages->report().reason.find("touched"), std::string::npos);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages->data()) % (2 * megabyte), 0u);

    placement.prefault = true;  // the system of this test gives no transparent huge pages
    pages = get(placement);
    EXPECT_EQ(pages->report().page_bytes, page_size_bytes());
    EXPECT_NE(pages->report().reason.find("ordinary ones"), std::string::npos);

    script.huge_advice_errno = EINVAL;
    pages = get(placement);
    EXPECT_NE(pages->report().reason.find("refused"), std::string::npos);
    machine.huge_page_bytes = 0;
    pages = get(placement);
    EXPECT_NE(pages->report().reason.find("this system has none"), std::string::npos);
}

TEST_F(HostMemoryOnAMadeUpSystem, StrictHugePagesAreRefusedWhereTheyCannotBeHad) {  // keeps H5
    only_cpu_nodes();
    HostPlacement placement;
    placement.page_size = PageSize::huge;
    placement.strict = true;
    placement.prefault = true;
    EXPECT_EQ(get(placement).code(), Code::unsupported);
    machine.huge_page_bytes = 0;
    EXPECT_EQ(get(placement).code(), Code::unsupported);
    machine.huge_page_bytes = 2 * megabyte;
    script.hugetlb_errno = 0;
    EXPECT_TRUE(get(placement).ok());
}

TEST_F(HostMemoryOnAMadeUpSystem, BoundMemoryNeverUsesThePoolWhoseEmptinessKills) {
    HostPlacement placement = on_node_1(false);
    placement.page_size = PageSize::huge;
    script.hugetlb_errno = 0;
    const auto pages = get(placement);
    ASSERT_TRUE(pages.ok());
    EXPECT_EQ(pages->report().page_bytes, page_size_bytes());
    EXPECT_EQ(script.pages_asked, 2 * megabyte / page_size_bytes());
}

TEST_F(HostMemoryOnAMadeUpSystem, PagesOf64KiBAreCountedAndRoundedAsSuch) {  // keeps H5
    script.page_bytes = 65536;
    const auto pages = get(on_node_1(true), megabyte + 1);
    ASSERT_TRUE(pages.ok()) << pages.error().text();
    EXPECT_EQ(pages->report().page_bytes, 65536u);
    EXPECT_EQ(script.pages_asked, 17u);
    EXPECT_EQ(script.mapped_bytes, 17 * 65536);
}

TEST_F(HostMemoryOnAMadeUpSystem, RegisteredMemoryIsBoundTouchedLockedAndLookedForAgain) {  // keeps H2, H7
    HostPlacement placement = on_node_1(false);
    placement.prefault = placement.lock = true;
    auto pages = get(placement);
    ASSERT_TRUE(pages.ok());
    EXPECT_TRUE(pages->report().locked);
    EXPECT_EQ(pages->report().placed, Placed::verified);

    script.lies_on = script.first_lies_on = 0;  // registering moved them
    ASSERT_TRUE(pages->verify_again().ok());
    EXPECT_EQ(pages->report().placed, Placed::fallback);
    EXPECT_EQ(pages->report().node, 0);
    EXPECT_NE(pages->report().reason.find("256 of 256 pages lie elsewhere"), std::string::npos);
    EXPECT_TRUE(pages->report().locked) << "what looking does not show stays as it was";

    script.lies_on = script.first_lies_on = 1;  // and a later report replaces the earlier one
    ASSERT_TRUE(pages->verify_again().ok());
    EXPECT_EQ(pages->report().placed, Placed::verified);
    EXPECT_EQ(pages->report().node, 1);
    EXPECT_EQ(pages->report().reason, "");
}

TEST_F(HostMemoryOnAMadeUpSystem, LookingAgainIsStrictWhereTheWishWas) {  // keeps H2, H7
    auto pages = get(on_node_1(true));
    ASSERT_TRUE(pages.ok());
    void* const data = pages->data();
    script.lies_on = 0;
    const auto moved = pages->verify_again();
    ASSERT_EQ(moved.code(), Code::system_error);
    EXPECT_EQ(pages->report().placed, Placed::fallback);
    EXPECT_EQ(pages->data(), data) << "the pages are still there";
    script.move_pages_errno = EPERM;
    EXPECT_EQ(pages->verify_again().code(), Code::unverified);
    EXPECT_EQ(pages->report().placed, Placed::unverifiable);
}

TEST_F(HostMemoryOnAMadeUpSystem, LookingAgainAsksNothingWhereNoNodeWasWanted) {  // keeps H7
    auto pages = get({});
    ASSERT_TRUE(pages->verify_again().ok());
    EXPECT_EQ(script.pages_asked, 0u);
    EXPECT_EQ(pages->report().placed, Placed::unasked);
    EXPECT_TRUE(HostPages().verify_again().ok());
}

TEST_F(HostMemoryOnAMadeUpSystem, PrefaultedMemoryIsTouchedWithoutAPlaceToo) {  // keeps H8
    HostPlacement placement;
    placement.prefault = true;
    ASSERT_TRUE(get(placement).ok());
    EXPECT_EQ(script.populated_bytes, megabyte);
}

TEST_F(HostMemoryOnAMadeUpSystem, WithoutAnyNumaCallEveryPreferredPlaceIsOrdinaryMemory) {  // keeps H1, H2, H3
    // ENOSYS: emulation, or a kernel without NUMA. EPERM: a container's filter. On one node and on several.
    for (const int error : {ENOSYS, EPERM}) {
        for (const bool one_node : {false, true}) {
            if (one_node) machine.numa_nodes = {{0, 8, megabyte}};
            for (const Locality locality :
                 {Locality::anywhere, Locality::local, Locality::near_device, Locality::node, Locality::interleaved}) {
                SCOPED_TRACE(std::string(name(locality)) + " " + std::strerror(error));
                start_again();
                script.mbind_errno = script.move_pages_errno = script.allowed_errno = error;
                HostPlacement placement;
                placement.locality = locality;
                placement.node = 0;
                const auto pages = HostPages::allocate(megabyte, placement, 0, machine, calls);
                ASSERT_TRUE(pages.ok()) << pages.error().text();
                static_cast<char*>(pages->data())[megabyte - 1] = 1;
                EXPECT_NE(pages->report().placed, Placed::verified);
                if (locality == Locality::anywhere) continue;
                EXPECT_EQ(pages->report().placed, Placed::fallback);
                EXPECT_FALSE(pages->report().reason.empty());
                placement.strict = true;
                EXPECT_EQ(HostPages::allocate(megabyte, placement, 0, machine, calls).code(),
                          error == EPERM ? Code::not_permitted : Code::unsupported);
            }
        }
    }
}

// Runs the tasks on the calling thread: only the requests matter.
Workers lent(unsigned count, int& runs) {
    return {count, [&runs](unsigned tasks, const std::function<void(unsigned)>& task) {
                ++runs;
                for (unsigned index = tasks; index-- > 0;) task(index);
            }};
}

TEST_F(HostMemoryOnAMadeUpSystem, LargeBoundMemoryIsTouchedByLentThreadsTogether) {  // keeps H6, R10
    int runs = 0;
    const auto touched = [&](std::size_t bytes, unsigned workers, const HostPlacement& placement) {
        start_again();
        runs = 0;
        const auto pages = HostPages::allocate(bytes, placement, 1, machine, calls, lent(workers, runs));
        EXPECT_TRUE(pages.ok());
        EXPECT_EQ(script.populated_bytes, bytes) << "each page once";
        return script.populate_calls.load();
    };
    EXPECT_EQ(touched(64 * megabyte, 4, on_node_1(true)), 4);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(touched(40 * megabyte + 4096, 8, on_node_1(true)), 2) << "no more than are worth it";
    EXPECT_EQ(touched(24 * megabyte, 8, on_node_1(true)), 1);
    EXPECT_EQ(runs, 0) << "small memory is touched by the caller";
    EXPECT_EQ(touched(64 * megabyte, 1, on_node_1(true)), 1);
    EXPECT_EQ(runs, 0);
    HostPlacement local;
    local.locality = Locality::local;
    local.prefault = true;
    EXPECT_EQ(touched(64 * megabyte, 4, local), 1);
    EXPECT_EQ(runs, 0) << "local is where the caller runs";
}

TEST_F(HostMemoryOnAMadeUpSystem, AFailureOfOneLentThreadFailsTheAllocation) {  // keeps R6
    int runs = 0;
    script.populate_error_at = 32 * megabyte;
    const auto pages = HostPages::allocate(64 * megabyte, on_node_1(false), 1, machine, calls, lent(4, runs));
    EXPECT_EQ(pages.code(), Code::system_error);
    EXPECT_EQ(pages.error().driver_code(), EIO);
}

TEST_F(HostMemoryOnAMadeUpSystem, ANodeThatIsFullIsAFallbackOrRefused) {  // keeps H2
    // mbind succeeds, and the pages come from another node: only a query of their nodes shows it.
    script.lies_on = script.first_lies_on = 0;
    EXPECT_EQ(get(on_node_1(false))->report().placed, Placed::fallback);
    const auto strict = get(on_node_1(true));
    ASSERT_EQ(strict.code(), Code::system_error);
    EXPECT_EQ(strict.error().remedy(), "free memory on the node that was asked for");
}

TEST_F(HostMemoryOnAMadeUpSystem, MovingHandsTheMappingOverOnce) {
    auto first = std::move(get({})).value();
    void* const data = first.data();
    HostPages second = std::move(first);
    EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move): promised
    EXPECT_EQ(second.data(), data);
    EXPECT_EQ(second.bytes(), megabyte);
    second = HostPages();
    EXPECT_EQ(second.data(), nullptr);
    EXPECT_EQ(script.mapped_bytes, 0);
}

}  // namespace
}  // namespace isthmus::platform::os
