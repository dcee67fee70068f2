// SPDX-License-Identifier: Apache-2.0
// How much memory cgroups leave, on files of real systems and containers, and the host memory that follows.
#include "fact_parsers.hpp"

#include <gtest/gtest.h>

namespace isthmus::platform::os {
namespace {

TEST(CgroupBytes, KnowBothWaysOfSayingNoLimit) {
    EXPECT_EQ(parse_cgroup_bytes("1073741824\n"), 1073741824u);
    EXPECT_FALSE(parse_cgroup_bytes("max\n"));
    EXPECT_FALSE(parse_cgroup_bytes("9223372036854771712\n"));
    EXPECT_FALSE(parse_cgroup_bytes(""));
}

std::vector<std::string> paths(const std::vector<CgroupDirectory>& directories) {
    std::vector<std::string> all;
    all.reserve(directories.size());
    for (const CgroupDirectory& directory : directories) {
        all.push_back((directory.unified ? "2:" : "1:") + directory.path);
    }
    return all;
}

TEST(Cgroups, Version2IsWalkedFromTheInnermostToTheMount) {
    EXPECT_EQ(paths(cgroup_directories("0::/user.slice/job\n",
                                       "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n")),
              (std::vector<std::string>{"2:/sys/fs/cgroup/user.slice/job", "2:/sys/fs/cgroup/user.slice",
                                        "2:/sys/fs/cgroup"}));
}

TEST(Cgroups, Version1IsFoundByItsMemoryController) {
    EXPECT_EQ(paths(cgroup_directories("5:devices:/\n4:cpu,memory:/docker/a\n",
                                       "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                                       "32 30 0:28 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n")),
              (std::vector<std::string>{"1:/sys/fs/cgroup/memory/docker/a", "1:/sys/fs/cgroup/memory/docker",
                                        "1:/sys/fs/cgroup/memory"}));
}

TEST(Cgroups, AContainerThatSeesOnlyItsOwnCgroupGetsTheMountPoint) {
    const char* mounts = "31 30 0:27 /docker/a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    EXPECT_EQ(paths(cgroup_directories("4:memory:/docker/a\n", mounts)),
              std::vector<std::string>{"1:/sys/fs/cgroup/memory"});
    EXPECT_EQ(paths(cgroup_directories("4:memory:/docker/a/b\n", mounts)),
              (std::vector<std::string>{"1:/sys/fs/cgroup/memory/b", "1:/sys/fs/cgroup/memory"}));
    EXPECT_EQ(paths(cgroup_directories("4:memory:/../other\n", mounts)),
              std::vector<std::string>{"1:/sys/fs/cgroup/memory"});
}

TEST(Cgroups, WithoutAMountThereIsNoLimit) {
    EXPECT_TRUE(cgroup_directories("0::/\n", "").empty());
    EXPECT_TRUE(cgroup_directories("", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n").empty());
}

TEST(Cgroups, ANeighbourWhoseNameBeginsAlikeIsNotWithinTheMount) {
    const char* mounts = "31 30 0:27 /docker/a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    EXPECT_EQ(paths(cgroup_directories("4:memory:/docker/ab\n", mounts)),
              std::vector<std::string>{"1:/sys/fs/cgroup/memory"});
}

TEST(Cgroups, AContainerWithItsOwnNamespaceIsAtTheRoot) {
    EXPECT_EQ(
        paths(cgroup_directories("0::/\n", "30 23 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n")),
        std::vector<std::string>{"2:/sys/fs/cgroup"});
    EXPECT_EQ(paths(cgroup_directories("0::/\n", "30 23 0:26 /../.. /sys/fs/cgroup ro - cgroup2 cgroup rw\n")),
              std::vector<std::string>{"2:/sys/fs/cgroup"});
}

TEST(Cgroups, HybridMountsAreBothAsked) {
    EXPECT_EQ(paths(cgroup_directories("4:memory:/a\n0::/b\n",
                                       "1 0 0:1 / /cg/memory rw - cgroup cgroup rw,memory\n"
                                       "2 0 0:2 / /cg/unified rw shared:9 master:3 - cgroup2 cgroup2 rw\n")),
              (std::vector<std::string>{"1:/cg/memory/a", "1:/cg/memory", "2:/cg/unified/b", "2:/cg/unified"}));
}

TEST(Cgroups, BlanksInAMountPointAreRead) {
    EXPECT_EQ(paths(cgroup_directories("0::/\n", "1 0 0:1 / /my\\040groups rw - cgroup2 cgroup2 rw\n")),
              std::vector<std::string>{"2:/my groups"});
}

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
std::string megabytes(std::uint64_t count) {
    return std::to_string(count * mib) + "\n";
}
CgroupTexts unified(const std::string& max, const std::string& high, const std::string& current,
                    const std::string& stat = {}) {
    return {true, max, high, current, stat};
}

TEST(CgroupMemoryLeft, IsTheLimitLessWhatIsUsed) {
    const auto left = cgroup_memory(unified(megabytes(100), "max\n", megabytes(30)));
    ASSERT_TRUE(left);
    EXPECT_EQ(left->limit_bytes, 100 * mib);
    EXPECT_EQ(left->available_bytes, 70 * mib);
}

TEST(CgroupMemoryLeft, CountsFileCacheAsFreeBecauseItIsGivenUpFirst) {
    const std::string stat = "anon 5\nfile 9\nactive_file 7\ninactive_file " + megabytes(20) + "slab 3\n";
    EXPECT_EQ(cgroup_memory(unified(megabytes(100), "max\n", megabytes(90), stat))->available_bytes, 30 * mib);
    // A statistic that is newer than the usage leaves no more than the limit.
    EXPECT_EQ(cgroup_memory(unified(megabytes(100), "max\n", megabytes(10), stat))->available_bytes, 100 * mib);
}

TEST(CgroupMemoryLeft, IsZeroWhereMoreIsUsedThanAllowed) {
    EXPECT_EQ(cgroup_memory(unified(megabytes(100), "max\n", megabytes(101)))->available_bytes, 0u);
}

TEST(CgroupMemoryLeft, TheSofterOfVersion2sLimitsCountsToo) {
    EXPECT_EQ(cgroup_memory(unified("max\n", megabytes(50), megabytes(10)))->available_bytes, 40 * mib);
    EXPECT_EQ(cgroup_memory(unified(megabytes(100), megabytes(50), megabytes(10)))->limit_bytes, 50 * mib);
    EXPECT_EQ(cgroup_memory(unified(megabytes(20), megabytes(50), megabytes(10)))->limit_bytes, 20 * mib);
}

TEST(CgroupMemoryLeft, IsNothingWithoutALimit) {
    EXPECT_FALSE(cgroup_memory(unified("max\n", "max\n", megabytes(30))));
    EXPECT_FALSE(cgroup_memory(unified("", "", "")));
    EXPECT_FALSE(cgroup_memory(
        {false, "9223372036854771712\n", "", megabytes(30), "hierarchical_memory_limit 9223372036854771712\n"}));
}

TEST(CgroupMemoryLeft, Version1StatesTheLimitOfAncestorsThatCannotBeSeen) {
    const std::string stat =
        "cache 1\ninactive_file 5\nhierarchical_memory_limit " + megabytes(64) + "total_inactive_file " + megabytes(4);
    const auto left = cgroup_memory({false, "9223372036854771712\n", "", megabytes(14), stat});
    ASSERT_TRUE(left);
    EXPECT_EQ(left->limit_bytes, 64 * mib);
    EXPECT_EQ(left->available_bytes, 54 * mib);
}

constexpr const char* meminfo = "MemTotal: 1048576 kB\nMemFree: 1 kB\nMemAvailable: 819200 kB\n";  // 1024 and 800 MiB

TEST(HostMemoryNow, IsWhatTheSystemSaysWhereNoLimitIsTighter) {
    const HostMemory memory = combine_host_memory(meminfo, {}, {unified(megabytes(2000), "max\n", megabytes(5))});
    EXPECT_EQ(memory.total_bytes, 1024 * mib);
    EXPECT_EQ(memory.available_bytes, 800 * mib);
    EXPECT_FALSE(memory.cgroup_decides);
}

TEST(HostMemoryNow, IsWhatTheTightestAncestorLeaves) {
    // The innermost cgroup allows much, its parent little, and the root is filled by others.
    const HostMemory memory = combine_host_memory(
        meminfo, {},
        {unified(megabytes(900), "max\n", megabytes(10)), unified(megabytes(200), "max\n", megabytes(50)),
         unified(megabytes(950), "max\n", megabytes(700))});
    EXPECT_EQ(memory.total_bytes, 200 * mib);
    EXPECT_EQ(memory.available_bytes, 150 * mib);
    EXPECT_TRUE(memory.cgroup_decides);
}

TEST(HostMemoryNow, AnAncestorFullOfOthersCountsThoughItsLimitIsLarge) {
    const HostMemory memory = combine_host_memory(
        meminfo, {},
        {unified(megabytes(500), "max\n", megabytes(1)), unified(megabytes(900), "max\n", megabytes(890))});
    EXPECT_EQ(memory.available_bytes, 10 * mib);
    EXPECT_EQ(memory.total_bytes, 500 * mib);
}

TEST(HostMemoryNow, LeavesOutTheNodesOfGpus) {  // keeps H4
    const char* gpu = "Node 2 MemTotal: 524288 kB\nNode 2 MemFree: 409600 kB\n";
    const HostMemory memory = combine_host_memory(meminfo, {gpu}, {});
    EXPECT_EQ(memory.total_bytes, 512 * mib);
    EXPECT_EQ(memory.available_bytes, 400 * mib);
    // More than the total: nothing is left, and nothing wraps around.
    const HostMemory none = combine_host_memory(meminfo, {gpu, gpu, gpu}, {});
    EXPECT_EQ(none.total_bytes, 0u);
    EXPECT_EQ(none.available_bytes, 0u);
}

TEST(HostMemoryNow, IsUnknownWhereTheSystemSaysNothing) {
    const HostMemory memory = combine_host_memory("", {}, {unified(megabytes(100), "max\n", megabytes(1))});
    EXPECT_EQ(memory.total_bytes, 0u);
    EXPECT_EQ(memory.available_bytes, 0u);
    EXPECT_FALSE(memory.cgroup_decides);
}

}  // namespace
}  // namespace isthmus::platform::os
