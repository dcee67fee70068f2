// Host memory against a system that answers what the test wants: every failure of every call, strict and preferred.
#include <platform/os.hpp>

#include <gtest/gtest.h>

#include <linux/mempolicy.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace isthmus::platform::os {
namespace {

// What the made-up system answers (0: success) and what it was asked. Mappings are real.
struct Script {
    int mmap_errno = 0;
    int hugetlb_errno = ENOMEM;  // of MAP_HUGETLB only; 0 gives an ordinary mapping
    int huge_advice_errno = 0;
    int populate_errno = 0;
    int mlock_errno = 0;
    int mbind_errno = 0;
    int move_pages_errno = 0;
    int allowed_errno = 0;
    unsigned long allowed_mask = 3;  // nodes 0 and 1
    int lies_on = 1;                 // what move_pages says of every page …
    int first_lies_on = 1;           // … but the first
    int runs_on = 1;

    int mbind_calls = 0;
    int mode = -1;
    unsigned long mask = 0;
    std::size_t pages_asked = 0;
    std::ptrdiff_t mapped_bytes = 0;  // mapped and not yet unmapped
    bool touched_before_bound = false;
    bool populated = false;
};
Script script;

int answer(int error) {
    errno = error;
    return error == 0 ? 0 : -1;
}

SystemCalls made_up() {
    SystemCalls calls = SystemCalls::real();
    calls.mmap = [](void* address, std::size_t bytes, int protection, int flags, int fd, long offset) -> void* {
        int error = script.mmap_errno;
        if ((flags & MAP_HUGETLB) != 0) error = script.hugetlb_errno;
        if (error != 0) {
            errno = error;
            return MAP_FAILED;
        }
        script.mapped_bytes += static_cast<std::ptrdiff_t>(bytes);
        return ::mmap(address, bytes, protection, flags & ~MAP_HUGETLB, fd, offset);
    };
    calls.munmap = [](void* address, std::size_t bytes) {
        script.mapped_bytes -= static_cast<std::ptrdiff_t>(bytes);
        return ::munmap(address, bytes);
    };
    calls.madvise = [](void*, std::size_t, int advice) {
        if (advice == MADV_HUGEPAGE) return answer(script.huge_advice_errno);
        script.populated = true;
        return answer(script.populate_errno);
    };
    calls.mlock = [](const void*, std::size_t) { return answer(script.mlock_errno); };
    calls.mbind = [](void*, unsigned long, int mode, const unsigned long* mask, unsigned long, unsigned) -> long {
        ++script.mbind_calls;
        script.mode = mode;
        script.mask = mask ? *mask : 0;
        script.touched_before_bound = script.populated;
        return answer(script.mbind_errno);
    };
    calls.move_pages = [](int, unsigned long count, void**, const int* nodes, int* status, int) -> long {
        EXPECT_EQ(nodes, nullptr) << "pages shall be looked for, not moved";
        std::fill(status, status + count, script.lies_on);
        if (script.pages_asked == 0) status[0] = script.first_lies_on;
        script.pages_asked += count;
        return answer(script.move_pages_errno);
    };
    calls.get_mempolicy_allowed = [](unsigned long* mask, unsigned long) -> long {
        *mask = script.allowed_mask;
        return answer(script.allowed_errno);
    };
    calls.current_node = [] { return script.runs_on; };
    return calls;
}

constexpr std::size_t megabyte = 1 << 20;

class HostMemoryOnAMadeUpSystem : public testing::Test {
protected:
    HostMemoryOnAMadeUpSystem() {
        script = {};
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
    SystemCalls calls = made_up();
};

TEST_F(HostMemoryOnAMadeUpSystem, PreferredAndStrictPlacementIsBoundOnceTouchedAndVerified) {  // keeps H1, H2, H6
    for (const bool strict : {false, true}) {
        script = {};
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

TEST_F(HostMemoryOnAMadeUpSystem, AnywhereBesideGpuNodesIsBoundToTheCpuNodesAndNotTouched) {  // keeps H4
    auto pages = get({});
    ASSERT_TRUE(pages.ok());
    EXPECT_EQ(script.mbind_calls, 1);
    EXPECT_EQ(script.mode, MPOL_BIND);
    EXPECT_EQ(script.mask, 3u) << "nodes 0 and 1; node 2 is the memory of a GPU";
    EXPECT_FALSE(script.populated);
    EXPECT_EQ(pages->report().placed, Placed::unasked);
    EXPECT_EQ(pages->report().reason, "");

    // Where binding is forbidden nobody is refused what he did not ask for; the report says it.
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
        script = {};
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
        script = {};
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
    script = {};
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

    script = {};
    script.allowed_errno = EPERM;  // a system that does not say leaves the question to mbind
    script.allowed_mask = 1;
    EXPECT_EQ(get(on_node_1(true))->report().placed, Placed::verified);
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
    script.populate_errno = EINVAL;  // kernels before 5.14: touched by hand
    EXPECT_EQ(get(on_node_1(false))->report().placed, Placed::verified);
}

TEST_F(HostMemoryOnAMadeUpSystem, ALockLimitThatIsTooSmallIsNamed) {  // keeps H8
    HostPlacement placement;
    placement.lock = true;
    EXPECT_TRUE(get(placement)->report().locked);
    for (const int error : {ENOMEM, EPERM, EAGAIN}) {
        script = {};
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

    script.hugetlb_errno = ENOMEM;  // not touched: nobody knows yet
    pages = get(placement);
    EXPECT_EQ(pages->report().page_bytes, page_size_bytes());
    EXPECT_NE(pages->report().reason.find("touched"), std::string::npos);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages->data()) % (2 * megabyte), 0u);

    placement.prefault = true;  // the made-up system gives no transparent huge pages
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
