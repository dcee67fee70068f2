// The parsers of /proc, /sys and cgroup texts, on texts as machines write them and on damaged ones.
#include "fact_parsers.hpp"

#include <gtest/gtest.h>

namespace isthmus::platform::os {
namespace {

TEST(IdLists, RangesAndSinglesAreReadInOrder) {
    EXPECT_EQ(parse_id_list("0-1,2,10,18,26\n"), (std::vector<int>{0, 1, 2, 10, 18, 26}));
    EXPECT_EQ(parse_id_list("0\n"), std::vector<int>{0});
}

TEST(IdLists, EmptyAndDamagedTextsGiveWhatIsReadable) {
    EXPECT_TRUE(parse_id_list("").empty());
    EXPECT_TRUE(parse_id_list("\n").empty());
    EXPECT_EQ(parse_id_list("3,x,5-,7-6,-2,9999999999999,0-4000000000"), (std::vector<int>{3, 5}));
}

TEST(Parameters, AreReadWithAndWithoutQuotes) {
    const auto read = parse_parameters("ResmanDebugLevel: 4294967295\nCoherentGPUMemoryMode: \"driver\"\nEmpty:\n");
    ASSERT_EQ(read.size(), 3u);
    EXPECT_EQ(read[0], (std::pair<std::string, std::string>{"ResmanDebugLevel", "4294967295"}));
    EXPECT_EQ(read[1], (std::pair<std::string, std::string>{"CoherentGPUMemoryMode", "driver"}));
    EXPECT_EQ(read[2], (std::pair<std::string, std::string>{"Empty", ""}));
}

TEST(Parameters, LinesWithoutAColonAreLeftOut) {
    EXPECT_TRUE(parse_parameters("nonsense\n\n: 5\n").empty());
}

TEST(CpuName, IsTheModelNameOnX86) {
    EXPECT_EQ(parse_cpu_name("processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\nmodel name\t: Other\n"),
              "Some CPU @ 2.0GHz");
}

TEST(CpuName, IsTheCoresNameOnArmAndBigAndLittleCoresAreBothNamed) {
    EXPECT_EQ(parse_cpu_name("CPU implementer\t: 0x41\nCPU part\t: 0xd42\nCPU part\t: 0xd42\n"), "Arm Cortex-A78AE");
    EXPECT_EQ(parse_cpu_name("CPU implementer\t: 0x41\nCPU part\t: 0xd87\n"
                             "CPU implementer\t: 0x41\nCPU part\t: 0xd85\n"),
              "Arm Cortex-A725 + Arm Cortex-X925");
}

TEST(CpuName, KeepsTheNumbersOfAnUnknownCoreAndIsEmptyWhereNothingStands) {
    EXPECT_EQ(parse_cpu_name("CPU implementer : 0x99\nCPU part : 0x123\n"), "Arm core, implementer 0x99, part 0x123");
    EXPECT_EQ(parse_cpu_name(""), "");
}

TEST(Meminfo, IsReadInBytesForTheSystemAndForANode) {
    EXPECT_EQ(parse_meminfo("MemTotal:       16 kB\nMemAvailable:    8 kB\n", "MemAvailable"), 8192u);
    EXPECT_EQ(parse_meminfo("Node 0 MemTotal:       16 kB\nNode 0 MemFree: 1 kB\n", "MemTotal"), 16384u);
    EXPECT_EQ(parse_meminfo("HugePages_Total:       3\n", "HugePages_Total"), 3u);
}

TEST(Meminfo, SaysNothingForAbsentAndDamagedLines) {
    EXPECT_FALSE(parse_meminfo("SwapMemTotal: 4 kB\n", "MemTotal"));
    EXPECT_FALSE(parse_meminfo("MemTotal: much kB\n", "MemTotal"));
    EXPECT_FALSE(parse_meminfo("MemTotal: 18446744073709551615 kB\n", "MemTotal"));
}

TEST(DeviceMajor, IsFoundAmongCharacterDevicesOnly) {
    const char* text = "Character devices:\n  1 mem\n234 nvidia-caps-imex-channels\n\nBlock devices:\n  9 md\n";
    EXPECT_EQ(parse_device_major(text, "nvidia-caps-imex-channels"), 234);
    EXPECT_EQ(parse_device_major(text, "md"), -1);
    EXPECT_EQ(parse_device_major(text, "nvidia-caps"), -1);
}

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

constexpr const char* smaps =
    "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \nSize:               4096 kB\nAnonHugePages:      4096 kB\n"
    "7f0000800000-7f0000c00000 rw-p 00000000 00:00 0 \nSize:               4096 kB\nAnonHugePages:      2048 kB\n"
    "7f0000d00000-7f0000e00000 rw-p 00000000 00:00 0 \nSize:               1024 kB\n";

TEST(HugeMappings, AreThoseThatConsistOfHugePagesOnly) {
    EXPECT_TRUE(mapping_is_huge(smaps, 0x7f0000000000));
    EXPECT_TRUE(mapping_is_huge(smaps, 0x7f00003fffff));
    EXPECT_FALSE(mapping_is_huge(smaps, 0x7f0000800000)) << "half of it is not";
    EXPECT_FALSE(mapping_is_huge(smaps, 0x7f0000d00000)) << "the kernel does not say";
    EXPECT_FALSE(mapping_is_huge(smaps, 0x1000)) << "there is no such mapping";
    EXPECT_FALSE(mapping_is_huge("", 0x7f0000000000));
}

}  // namespace
}  // namespace isthmus::platform::os
