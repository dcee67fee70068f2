// SPDX-License-Identifier: Apache-2.0
// What `isthmus doctor --real-time` reads, from folders that stand for a machine's /proc and /sys.
#include "doctor/doctor_real_time.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace isthmus::tools {
namespace {

class PlantedRoot : public testing::Test {
protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "isthmus-root-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        root_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    void plant(const std::string& path, const std::string& text) {
        std::filesystem::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
        std::ofstream(root_ + path) << text;
    }
    RealTimeFacts read() const { return gather_real_time(root_); }
    std::string root_;
};

TEST_F(PlantedRoot, WithoutFilesNothingIsKnown) {
    const RealTimeFacts facts = read();
    EXPECT_TRUE(facts.wanted);
    EXPECT_EQ(facts.preempt_rt, Seen::unknown);
    EXPECT_EQ(facts.cpus, Seen::unknown);
    EXPECT_EQ(facts.idle, Seen::unknown);
    EXPECT_FALSE(facts.runtime_us);
}

TEST_F(PlantedRoot, PreemptRtIsSaidByItsFileOrByTheVersion) {
    plant("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.12\n");
    EXPECT_EQ(read().preempt_rt, Seen::no);
    EXPECT_EQ(read().kernel_version, "#1 SMP PREEMPT_DYNAMIC Debian 6.12");
    plant("/sys/kernel/realtime", "0\n");
    EXPECT_EQ(read().preempt_rt, Seen::no);
    plant("/sys/kernel/realtime", "1\n");
    EXPECT_EQ(read().preempt_rt, Seen::yes);
    plant("/sys/kernel/realtime", "");
    plant("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 6.12\n");
    EXPECT_EQ(read().preempt_rt, Seen::yes);
}

TEST_F(PlantedRoot, ReadsTheCapabilityToLockMemory) {
    EXPECT_EQ(read().ipc_lock, Seen::unknown);
    plant("/proc/self/status", "Name:\tx\nCapPrm:\tffff\nCapEff:\t0000000000000000\n");
    EXPECT_EQ(read().ipc_lock, Seen::no);
    plant("/proc/self/status", "Name:\tx\nCapPrm:\t0\nCapEff:\t0000000000004000\n");
    EXPECT_EQ(read().ipc_lock, Seen::yes);
}

TEST_F(PlantedRoot, ReadsTheListsOfCpus) {
    const std::string cpus = "/sys/devices/system/cpu/";
    plant(cpus + "online", "0-5\n");
    EXPECT_EQ(read().cpus, Seen::unknown) << "no file says which are isolated";
    plant(cpus + "isolated", "\n");
    EXPECT_EQ(read().cpus, Seen::yes);
    EXPECT_TRUE(read().isolated.empty());
    plant(cpus + "isolated", "2-3,5\n");
    plant(cpus + "nohz_full", "(null)\n");
    EXPECT_EQ(read().online, (std::vector<int>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(read().isolated, (std::vector<int>{2, 3, 5}));
    EXPECT_TRUE(read().tickless.empty());
    plant(cpus + "nohz_full", "3\n");
    EXPECT_EQ(read().tickless, std::vector<int>{3});
    plant(cpus + "isolated", "x,4-,3-2,0-99999999999\n");
    EXPECT_LE(read().isolated.size(), std::size_t{1} << 17) << "a list that is no list of CPUs stays small";
}

TEST_F(PlantedRoot, ReadsTheThrottling) {
    plant("/proc/sys/kernel/sched_rt_runtime_us", "950000\n");
    EXPECT_EQ(read().runtime_us, 950000);
    EXPECT_EQ(read().period_us, 1000000) << "the kernel's default";
    plant("/proc/sys/kernel/sched_rt_runtime_us", "-1\n");
    plant("/proc/sys/kernel/sched_rt_period_us", "500000\n");
    EXPECT_EQ(read().runtime_us, -1);
    EXPECT_EQ(read().period_us, 500000);
    plant("/proc/sys/kernel/sched_rt_runtime_us", "much\n");
    EXPECT_FALSE(read().runtime_us);
}

TEST_F(PlantedRoot, FindsTheInterruptsOfGpus) {
    plant("/proc/interrupts",
          "            CPU0       CPU1       \n"
          "   9:          0          0  IR-IO-APIC    9-fasteoi   acpi\n"
          "  45:      12345          0  PCI-MSI 524288-edge      nvidia\n"
          " 146:          7          0  IR-PCI-MSI 1048576-edge  xhci_hcd, nvidia\n"
          "  80:          0          3  GICv3 102 Level     17000000.gpu\n"
          " NMI:          1          1  Non-maskable interrupts nvidia\n"
          "garbage\n\n");
    plant("/proc/irq/45/smp_affinity_list", "0-1\n");
    plant("/proc/irq/80/smp_affinity_list", "1\n");
    const RealTimeFacts facts = read();
    ASSERT_EQ(facts.of_gpu.size(), 3u);
    EXPECT_EQ(facts.of_gpu[0].number, 45);
    EXPECT_EQ(facts.of_gpu[0].name, "nvidia");
    EXPECT_EQ(facts.of_gpu[0].cpus, (std::vector<int>{0, 1}));
    EXPECT_EQ(facts.of_gpu[1].number, 146);
    EXPECT_TRUE(facts.of_gpu[1].cpus.empty()) << "not stated";
    EXPECT_EQ(facts.of_gpu[2].name, "17000000.gpu");
    EXPECT_EQ(facts.of_gpu[2].cpus, std::vector<int>{1});
}

TEST_F(PlantedRoot, ReadsTheIdleStatesThatAreOn) {
    const auto state = [&](const std::string& at, const char* name, const char* latency, const char* off) {
        plant("/sys/devices/system/cpu/" + at + "/name", name);
        plant("/sys/devices/system/cpu/" + at + "/latency", latency);
        plant("/sys/devices/system/cpu/" + at + "/disable", off);
    };
    plant("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n");
    state("cpu0/cpuidle/state0", "POLL\n", "0\n", "0\n");
    state("cpu0/cpuidle/state1", "C6\n", "133\n", "1\n");
    state("cpu1/cpuidle/state0", "POLL\n", "0\n", "0\n");
    EXPECT_EQ(read().idle_states.size(), 1u) << "C6 is off";
    state("cpu1/cpuidle/state1", "C6\n", "133\n", "0\n");
    const RealTimeFacts facts = read();
    EXPECT_EQ(facts.idle, Seen::yes);
    ASSERT_EQ(facts.idle_states.size(), 2u) << "C6 is on for one CPU";
    EXPECT_EQ(facts.idle_states[1].name, "C6");
    EXPECT_EQ(facts.idle_states[1].latency_us, 133u);
}

}  // namespace
}  // namespace isthmus::tools
