// SPDX-License-Identifier: Apache-2.0
// The operating-system layer on the machine that runs the test: real pages, real facts, real libraries.
#include <platform/os.hpp>

#include <gtest/gtest.h>

#include <dirent.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace isthmus::platform::os {
namespace {

TEST(ThisMachine, StatesThePageSizeOfTheSystem) {  // keeps H5
    EXPECT_EQ(page_size_bytes(), static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    EXPECT_EQ(machine_facts().page_size_bytes, page_size_bytes());
}

TEST(ThisMachine, StatesItsKernelAndItsMemory) {
    const MachineFacts facts = machine_facts();
    EXPECT_FALSE(facts.kernel_release.empty());
    const HostMemory memory = host_memory();
    if (memory.total_bytes == 0) GTEST_SKIP() << "/proc/meminfo cannot be read here";
    EXPECT_LE(memory.available_bytes, memory.total_bytes);
    if (facts.memory_limit_bytes != 0) {
        EXPECT_LE(memory.total_bytes, facts.memory_limit_bytes);
    }
    // keeps R10: the same without reading what is used, which opening a runtime does not need
    EXPECT_EQ(host_total_bytes(facts.memory_limit_bytes), memory.total_bytes);
    EXPECT_EQ(host_total_bytes(4096), 4096u) << "a limit below what there is";
    EXPECT_GE(host_total_bytes(0), memory.total_bytes);
}

TEST(ThisMachine, StatesTheCpusOfItsNodesAsTheSystemListsThem) {
    for (const NumaNode& node : machine_facts().numa_nodes) {
        EXPECT_EQ(node.cpus.empty(), node.cpu_count == 0) << node.id;
        EXPECT_EQ(node.cpus.find('\n'), std::string::npos);
    }
}

TEST(ThisMachine, StatesThePlaceOfEachPciDeviceAndOfNoOther) {
    EXPECT_FALSE(pci_place(0xffff, 0xff, 0x1f));
    int found = 0;
    if (DIR* directory = ::opendir("/sys/bus/pci/devices")) {
        while (const dirent* entry = ::readdir(directory)) {
            unsigned domain = 0, bus = 0, device = 0, function = 1;
            const int read = std::sscanf(entry->d_name, "%x:%x:%x.%u", &domain, &bus, &device, &function);
            if (read != 4 || function != 0) continue;
            EXPECT_TRUE(pci_place(static_cast<int>(domain), static_cast<int>(bus), static_cast<int>(device)))
                << entry->d_name;
            ++found;
        }
        ::closedir(directory);
    }
    if (found == 0) GTEST_SKIP() << "the system lists no PCI devices";
}

TEST(ThisMachine, GivesWritableZeroedPagesThatStartOnAPage) {
    const auto pages = HostPages::allocate(10000, {}, -1, machine_facts());
    ASSERT_TRUE(pages.ok()) << pages.error().text();
    EXPECT_EQ(pages->bytes(), 10000u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages->data()) % page_size_bytes(), 0u);
    auto* bytes = static_cast<unsigned char*>(pages->data());
    EXPECT_EQ(bytes[9999], 0);
    std::memset(bytes, 7, 10000);
    EXPECT_EQ(bytes[9999], 7);
}

TEST(ThisMachine, PlacesOnEachOfItsCpuNodesAndVerifies) {  // keeps H1, H2
    const MachineFacts facts = machine_facts();
    int tried = 0;
    for (const NumaNode& node : facts.numa_nodes) {
        if (node.cpu_count == 0 || node.memory_bytes == 0) continue;
        HostPlacement placement;
        placement.locality = Locality::node;
        placement.node = node.id;
        const auto pages = HostPages::allocate(1 << 20, placement, -1, facts);
        ASSERT_TRUE(pages.ok()) << pages.error().text();
        if (pages->report().placed == Placed::verified) {
            ++tried;
            EXPECT_EQ(pages->report().node, node.id);
        } else {
            EXPECT_FALSE(pages->report().reason.empty());
            std::printf("node %d: %s\n", node.id, pages->report().reason.c_str());
        }
    }
    if (tried == 0) GTEST_SKIP() << "this system lets no placement be verified (no NUMA, emulation or a container)";
}

TEST(ThisMachine, KnowsNoNode4095) {  // keeps H2
    MachineFacts facts = machine_facts();
    HostPlacement placement;
    placement.locality = Locality::node;
    placement.node = 4095;
    placement.strict = true;
    EXPECT_FALSE(HostPages::allocate(4096, placement, -1, facts).ok());
    // Where the facts claim that the node exists, the system itself refuses.
    facts.numa_nodes.push_back({4095, 1, 1 << 20});
    EXPECT_FALSE(HostPages::allocate(4096, placement, -1, facts).ok());
    placement.strict = false;
    const auto preferred = HostPages::allocate(4096, placement, -1, facts);
    ASSERT_TRUE(preferred.ok());
    EXPECT_EQ(preferred->report().placed, Placed::fallback);
}

TEST(ThisMachine, GivesHugePagesOrSaysWhyNot) {  // keeps H5
    HostPlacement placement;
    placement.page_size = PageSize::huge;
    placement.prefault = true;
    const MachineFacts facts = machine_facts();
    const auto pages = HostPages::allocate(8 << 20, placement, -1, facts);
    ASSERT_TRUE(pages.ok()) << pages.error().text();
    if (pages->report().page_bytes != facts.huge_page_bytes || facts.huge_page_bytes == 0) {
        EXPECT_FALSE(pages->report().reason.empty());
    }
    std::memset(pages->data(), 1, 8 << 20);
}

TEST(ThisMachine, LocksAPageOrNamesTheLimit) {  // keeps H8
    HostPlacement placement;
    placement.lock = true;
    const auto pages = HostPages::allocate(4096, placement, -1, machine_facts());
    ASSERT_TRUE(pages.ok());
    EXPECT_NE(pages->report().locked, !pages->report().reason.empty()) << pages->report().reason;
}

TEST(SharedLibraries, AreOpenedByNameAndKnowWhereTheyWereFound) {
    const auto library = SharedLibrary::open("libc.so.6");
    ASSERT_TRUE(library.ok()) << library.error().text();
    EXPECT_NE(library->symbol("malloc"), nullptr);
    EXPECT_EQ(library->symbol("no_such_function_anywhere"), nullptr);
    EXPECT_NE(library->path().find("libc.so.6"), std::string::npos);
}

TEST(SharedLibraries, ThatAreAbsentKeepTheLoadersWords) {  // keeps D9
    const auto library = SharedLibrary::open("libno-such-driver.so.1");
    ASSERT_EQ(library.code(), Code::no_driver);
    EXPECT_NE(library.error().message().find("libno-such-driver.so.1"), std::string_view::npos);
    EXPECT_NE(library.error().message().find("No such file"), std::string_view::npos);
    EXPECT_EQ(SharedLibrary::open("").code(), Code::invalid_argument);
    EXPECT_EQ(SharedLibrary().symbol("malloc"), nullptr);
    EXPECT_EQ(SharedLibrary().path(), "");
}

TEST(Environment, IsReadAndAbsentVariablesAreEmpty) {
    ASSERT_EQ(::setenv("ISTHMUS_OS_TEST", "value", 1), 0);
    EXPECT_EQ(environment("ISTHMUS_OS_TEST"), "value");
    ::unsetenv("ISTHMUS_OS_TEST");
    EXPECT_EQ(environment("ISTHMUS_OS_TEST"), "");
}

}  // namespace
}  // namespace isthmus::platform::os
