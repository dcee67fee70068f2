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
