// SPDX-License-Identifier: Apache-2.0
// The parsers of /proc, /sys and cgroup texts, on texts of real machines and on damaged ones.
#include "fact_parsers.hpp"
#include "text_file.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

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

TEST(PciPlace, IsReadFromTheFilesOfADevice) {
    const auto place = parse_pci_place({"2.5 GT/s PCIe\n", "8\n", "32.0 GT/s PCIe\n", "16\n", "1\n", "0-15,32-47\n"});
    ASSERT_TRUE(place);
    EXPECT_EQ(place->speed_mt_per_s, 2500);
    EXPECT_EQ(place->lanes, 8);
    EXPECT_EQ(place->max_speed_mt_per_s, 32000);
    EXPECT_EQ(place->max_lanes, 16);
    EXPECT_EQ(place->numa_node, 1);
    EXPECT_EQ(place->near_cpus, "0-15,32-47");
    EXPECT_EQ(parse_pci_place({"8 GT/s", "", "", "", "", ""})->speed_mt_per_s, 8000) << "as older kernels write it";
}

TEST(PciPlace, SaysNothingOfWhatTheSystemDoesNotKnow) {
    EXPECT_FALSE(parse_pci_place({}));
    const auto place = parse_pci_place({"Unknown\n", "63\n", "fast GT/s\n", "0\n", "-1\n", "\n"});
    ASSERT_TRUE(place);
    EXPECT_EQ(place->speed_mt_per_s, 0);
    EXPECT_EQ(place->lanes, 0);
    EXPECT_EQ(place->max_speed_mt_per_s, 0);
    EXPECT_EQ(place->max_lanes, 0);
    EXPECT_EQ(place->numa_node, -1);
    EXPECT_EQ(place->near_cpus, "");
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

// keeps R10: /proc/cpuinfo of 192 CPUs takes the system milliseconds
TEST(TextFile, IsReadNoFurtherThanTheLineThatIsWanted) {
    const std::string path = ::testing::TempDir() + "/isthmus_cpuinfo_" + std::to_string(::getpid());
    const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
    std::string lines = "processor\t: 0\nno model name\t: A\nmodel name\t: B\n";
    for (int cpu = 1; cpu < 1000; ++cpu) lines += "processor\t: " + std::to_string(cpu) + "\nmodel name\t: B\n";
    write(lines);
    const std::string first = read_text_up_to(path, "model name");
    EXPECT_EQ(first, lines.substr(0, first.size()));
    EXPECT_LT(first.size(), 8192u) << "of " << lines.size();
    EXPECT_EQ(parse_cpu_name(first), "B");
    EXPECT_EQ(read_text(path), lines);
    EXPECT_EQ(read_text_up_to(path, "CPU part"), lines) << "no line begins so";
    // The end of what was read may cut the searched line in two.
    const std::string late = std::string(4090, 'x') + "\nmodel name\t: C\n";
    write(late);
    EXPECT_EQ(read_text_up_to(path, "model name"), late);
    write("model name\t: D");
    EXPECT_EQ(read_text_up_to(path, "model name"), "model name\t: D");
    EXPECT_EQ(read_text_up_to(path + ".absent", "model name"), "");
    std::remove(path.c_str());
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

constexpr const char* maps =
    "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
    "7f0000001000-7f0000003000 rw-p 00000000 00:00 0                          [heap]\n"
    "7f0000003000-7f0000004000 rw-s 00000000 08:01 1234                       /home/somebody/data\n"
    "7f0000400000-7f0000600000 rw-p 00000000 00:0f 77                         /anon_hugepage (deleted)\n"
    "7f0000600000-7f0000601000 rw-p 00000000 00:00 0 ";

TEST(MappedRanges, AreOfFilesWhereAnyPartIs) {  // keeps G7
    EXPECT_EQ(range_has_file(maps, 0x7f0000000000, 0x1000), false);
    EXPECT_EQ(range_has_file(maps, 0x7f0000000ff8, 16), false) << "over two mappings";
    EXPECT_EQ(range_has_file(maps, 0x7f0000002fff, 1), false);
    EXPECT_EQ(range_has_file(maps, 0x7f0000002ff8, 16), true) << "its end is";
    EXPECT_EQ(range_has_file(maps, 0x7f0000003800, 8), true);
    EXPECT_EQ(range_has_file(maps, 0x7f0000400000, 8), true) << "hugetlbfs counts as a file";
    EXPECT_EQ(range_has_file(maps, 0x7f0000600ff8, 8), false) << "the last line";
}

TEST(MappedRanges, ThatAreNotMappedAreNotKnown) {
    EXPECT_EQ(range_has_file(maps, 0x1000, 8), std::nullopt);
    EXPECT_EQ(range_has_file(maps, 0x7f0000600ff8, 16), std::nullopt) << "it ends beyond the last mapping";
    EXPECT_EQ(range_has_file("", 0x7f0000000000, 8), std::nullopt);
    EXPECT_EQ(range_has_file("not a line of maps\n", 0x7f0000000000, 8), std::nullopt);
}

constexpr const char* mixed_smaps =
    "1000-3000 rw-p 00000000 00:00 0 \nSize: 8 kB\nVmFlags: rd wr mr mw me ac \n"
    "3000-4000 r--s 00001000 fe:00 42          /a file\nSize: 4 kB\nVmFlags: rd mr me ms \n"
    "4000-5000 rw-s 00000000 00:06 7          /dev/video0\nSize: 4 kB\nVmFlags: rd wr sh pf io de dd \n"
    "9000-a000 ---p 00000000 00:00 0 \nSize: 4 kB\nVmFlags: mr \n";

TEST(Mappings, SayWhatHoldsForAllOfARange) {
    const MappingFacts plain = parse_mapping(mixed_smaps, 0x1800, 0x1000);
    EXPECT_TRUE(plain.known && plain.mapped && plain.readable && plain.writable);
    EXPECT_FALSE(plain.driver_mapping);
    const MappingFacts file = parse_mapping(mixed_smaps, 0x3000, 0x1000);
    EXPECT_TRUE(file.mapped && file.readable);
    EXPECT_FALSE(file.writable || file.driver_mapping);
    const MappingFacts both = parse_mapping(mixed_smaps, 0x2fff, 2);
    EXPECT_TRUE(both.mapped && both.readable);
    EXPECT_FALSE(both.writable);
    EXPECT_TRUE(parse_mapping(mixed_smaps, 0x4100, 16).driver_mapping);
    EXPECT_TRUE(parse_mapping(mixed_smaps, 0x1000, 0x4000).driver_mapping) << "a part of it is";
    EXPECT_FALSE(parse_mapping(mixed_smaps, 0x9000, 0x1000).readable);
}

TEST(Mappings, OfADeviceAreThoseWithoutPagesOfAFileThatNoGpuDriverHas) {  // keeps G7
    const auto is_of_device = [](const std::string& path, const std::string& flags) {
        const std::string text =
            "4000-5000 rw-s 00000000 00:06 7          " + path + "\nSize: 4 kB\nVmFlags: rd wr " + flags + " \n";
        const MappingFacts facts = parse_mapping(text, 0x4000, 0x1000);
        EXPECT_EQ(facts.driver_mapping, flags != "sh") << path;
        return facts.device_mapping;
    };
    for (const char* const flags : {"pf io", "io", "pf", "sh"}) {
        const bool pageless = std::string_view(flags) != "sh";
        for (const char* const path :
             {"/dev/video0", "/dev/mem", "/sys/bus/pci/devices/0000:01:00.0/resource0", "[vvar]"}) {
            EXPECT_EQ(is_of_device(path, flags), pageless) << path << ' ' << flags;
        }
        for (const char* const path : {"", "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm", "/dev/zero (deleted)",
                                       "/dev/nvmap", "/dev/nvhost-gpu", "/dev/dxg", "/dmabuf:", "anon_inode:dmabuf"}) {
            EXPECT_FALSE(is_of_device(path, flags)) << path << ' ' << flags;
        }
    }
    EXPECT_TRUE(parse_mapping(mixed_smaps, 0x1000, 0x4000).device_mapping) << "a part of it is";
    EXPECT_FALSE(parse_mapping(mixed_smaps, 0x1000, 0x2000).device_mapping);
}

TEST(Mappings, WithGapsOrWithoutFlagsAreSaidToBeSo) {
    EXPECT_FALSE(parse_mapping(mixed_smaps, 0x4800, 0x1000).mapped) << "its end is not";
    EXPECT_FALSE(parse_mapping(mixed_smaps, 0x0, 0x2000).mapped) << "its beginning is not";
    EXPECT_FALSE(parse_mapping(mixed_smaps, 0x4000, 0x6000).mapped) << "its middle is not";
    EXPECT_TRUE(parse_mapping(mixed_smaps, 0x6000, 8).known);
    EXPECT_FALSE(parse_mapping("1000-3000 rw-p 00000000 00:00 0 \nSize: 8 kB\n", 0x1000, 8).known);
    EXPECT_FALSE(parse_mapping("", 0x1000, 8).known);
    EXPECT_FALSE(parse_mapping(mixed_smaps, 0x1000, 0).known);
    EXPECT_FALSE(parse_mapping(mixed_smaps, ~std::uint64_t{0}, 8).known);
}

}  // namespace
}  // namespace isthmus::platform::os
