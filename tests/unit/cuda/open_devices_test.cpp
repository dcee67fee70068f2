// SPDX-License-Identifier: Apache-2.0
// Opening a driver, and every way in which it fails, against libraries that answer as real ones did.
#include "cuda_driver.hpp"
#include "cuda_errors.hpp"
#include "fake_driver.hpp"
#include "library.hpp"
#include "says.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <array>
#include <cstdlib>
#include <fstream>

namespace isthmus::platform::cuda {
namespace {

Error failure_of(const std::string& library) {
    MachineFacts machine;
    Result<OpenedDevices> opened = open_devices(library, machine);
    if (opened.ok()) {
        ADD_FAILURE() << library << " was opened";
        return Error(Code::ok, "");
    }
    return std::move(opened).error();
}

// keeps D1, D8: each device answers for itself
TEST(OpenDevices, EveryDeviceIsOpenedWithItsOwnFacts) {
    MachineFacts machine;
    const Result<OpenedDevices> opened = open_devices(fake_library("good"), machine);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    EXPECT_FALSE(opened->absence.has_value());
    EXPECT_EQ(machine.driver_version, 13000);
    EXPECT_FALSE(machine.simulated);
    ASSERT_EQ(opened->drivers.size(), 2u);
    for (int ordinal = 0; ordinal < 2; ++ordinal) {
        const DeviceFacts& facts = opened->drivers[static_cast<std::size_t>(ordinal)]->facts();
        EXPECT_EQ(facts.ordinal, ordinal);
        EXPECT_EQ(facts.name, "fake device " + std::to_string(ordinal));
        EXPECT_EQ(facts.uuid.bytes[7], 0x40 + ordinal);
        EXPECT_EQ(facts.uuid.mig, ordinal == 1);
        EXPECT_EQ(facts.total_memory_bytes, std::uint64_t{1} << 34);
        EXPECT_EQ(facts.attribute(88), ordinal);
        ASSERT_TRUE(facts.host_atomics.has_value());
        EXPECT_EQ((*facts.host_atomics)[12], 112u);
        EXPECT_FALSE(opened->drivers[static_cast<std::size_t>(ordinal)]->synchronous());
    }
}

// keeps D7: refused and unknown are different answers
TEST(OpenDevices, RefusedAttributesKeepTheirCodeAndUnknownOnesAreAbsent) {
    MachineFacts machine;
    const Result<OpenedDevices> opened = open_devices(fake_library("good"), machine);
    ASSERT_TRUE(opened.ok());
    const DeviceFacts& facts = opened->drivers[0]->facts();
    int refused = 0;
    int last = 0;
    for (const AttributeFact& fact : facts.attributes) {
        EXPECT_GT(fact.id, last);  // ascending
        last = fact.id;
        if (fact.id == 128) refused = fact.refused_code;
        EXPECT_FALSE(fact.id > 140 && fact.id != 150) << fact.id;
    }
    EXPECT_EQ(refused, 801);
    EXPECT_EQ(facts.attribute(128), std::nullopt);
    EXPECT_EQ(facts.attribute(147), std::nullopt);
    EXPECT_EQ(facts.attribute(140), 1400);
    EXPECT_EQ(facts.attribute(150), 1500);  // newer than this code: kept by number
}

// keeps R10: a driver may take microseconds for each attribute, of which few decide anything
TEST(OpenDevices, AttributesThatDecideNothingAreReadWhenSomebodyAsks) {
    const FakeDriver fake("good");
    const long before = fake.seen()->attributes_asked;
    MachineFacts machine;
    const std::array<int, 3> deciding = {88, 128, 147};
    const Result<OpenedDevices> opened = open_devices(fake_library("good"), machine, deciding);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    const auto asked = [&, before] { return fake.seen()->attributes_asked - before; };
    EXPECT_EQ(asked(), 6) << "three for each device";
    const Driver& driver = *opened->drivers[1];
    EXPECT_EQ(driver.facts().attribute(88), 1);
    EXPECT_EQ(driver.facts().attributes.size(), 2u) << "88, and 128 with the code that refused it";
    EXPECT_EQ(driver.all_facts(false).attributes.size(), 2u) << "nothing was asked";
    const DeviceFacts& all = driver.all_facts(true);
    EXPECT_GT(asked(), 6 + 140);
    const long asked_for_all = asked();
    EXPECT_EQ(all.attribute(88), 1);
    EXPECT_EQ(all.attribute(140), 1400);
    EXPECT_EQ(all.attribute(150), 1500) << "newer than this code";
    EXPECT_EQ(all.name, driver.facts().name);
    EXPECT_EQ(all.uuid, driver.facts().uuid);
    EXPECT_EQ(&driver.all_facts(false), &all);
    EXPECT_EQ(&driver.all_facts(true), &all);
    EXPECT_EQ(asked(), asked_for_all) << "once";
}

// keeps R7, R10: opening makes no context and leaves none
TEST(OpenDevices, OpeningMakesNoContext) {
    const FakeDriver fake("good");
    fake.clear();
    MachineFacts machine;
    {
        const Result<OpenedDevices> opened = open_devices(fake_library("good"), machine);
        ASSERT_TRUE(opened.ok());
    }
    EXPECT_FALSE(says(fake.calls(), "CtxRetain")) << fake.calls();
    EXPECT_FALSE(says(fake.calls(), "CtxCreate")) << fake.calls();
    EXPECT_FALSE(says(fake.calls(), "cuCtx")) << fake.calls();
}

// keeps R2: what is lost is found out when it is opened again
TEST(OpenDevices, ADeviceThatFaultedInThisProcessIsKnownByWhatTheDriverAnswers) {
    struct NoFaultSeen {
        NoFaultSeen() { Library::fault_seen = false; }
        ~NoFaultSeen() { Library::fault_seen = false; }
    };
    const NoFaultSeen before_and_afterwards;
    const FakeDriver fake("good");
    const auto found = [] {
        MachineFacts machine;
        return open_devices(fake_library("good"), machine).value().found;
    };
    const auto asked = [&fake] {  // how often a context was retained for the check
        const std::string_view calls = fake.calls();
        std::size_t times = 0;
        for (std::size_t at = calls.find("CtxRetain"); at != calls.npos; at = calls.find("CtxRetain", at + 1)) ++times;
        return times;
    };
    for (const Status& status : found()) EXPECT_TRUE(status.ok());
    // Other code has a context of the first device, which has faulted.
    fake.revive_context();
    fake.clear();
    for (const Status& status : found()) EXPECT_TRUE(status.ok());
    EXPECT_EQ(asked(), 1u) << "where there is a context";
    fake.fail("cuEventCreate", 700);
    const std::vector<Status> lost = found();
    ASSERT_EQ(lost.size(), 2u);
    EXPECT_EQ(lost[0].code, Code::device_lost);
    EXPECT_EQ(lost[0].driver_code, 700);
    EXPECT_TRUE(lost[1].ok());
    EXPECT_EQ(fake.retained(), 1) << "nothing of it is kept";
    EXPECT_EQ(fake.current(), nullptr);
    // A fault was seen: from here on devices without a context are checked, too.
    fake.clear();
    EXPECT_TRUE(found()[1].ok());
    EXPECT_EQ(asked(), 2u);
    fake.fail("cuDevicePrimaryCtxRetain", 719);
    const std::vector<Status> first = found();
    EXPECT_EQ(first[0].code, Code::device_lost);
    EXPECT_EQ(first[0].driver_code, 719);
    EXPECT_TRUE(first[1].ok());
    // Other failures are left to the first use.
    for (const int code : {2, 201, 709, 801, 999}) {
        fake.fail("cuEventCreate", code);
        EXPECT_TRUE(found()[0].ok()) << code;
    }
}

// keeps R1: an answer that makes no sense is a typed error, or is taken for what it can mean at most
TEST(OpenDevices, AnAbsurdCountOfDevicesIsATypedError) {
    for (const char* const fake : {"minus_one", "too_many"}) {
        const Error error = failure_of(fake_library(fake));
        EXPECT_EQ(error.code(), Code::driver_error) << error.text();
        EXPECT_EQ(error.call(), "cuDeviceGetCount");
        EXPECT_FALSE(error.remedy().empty());
    }
}

TEST(OpenDevices, AbsurdAnswersAboutADeviceDoNotKeepItFromBeingOpened) {
    for (const char* const fake : {"absurd_low", "absurd_high"}) {
        MachineFacts machine;
        const Result<OpenedDevices> opened = open_devices(fake_library(fake), machine);
        ASSERT_TRUE(opened.ok()) << opened.error().text();
        ASSERT_EQ(opened->drivers.size(), 2u);
        for (const auto& driver : opened->drivers) {
            const DeviceFacts& facts = driver->facts();
            EXPECT_EQ(facts.name, std::string(255, 'x')) << "cut where the driver wrote no end";
            EXPECT_EQ(facts.attributes.back().id, 255) << "asked no further";
            EXPECT_EQ(facts.total_memory_bytes, ~std::uint64_t{0});
        }
    }
}

// keeps D9
TEST(OpenDevices, AMissingLibraryIsNoDriver) {
    const Error error = failure_of("/nowhere/libcuda.so.1");
    EXPECT_EQ(error.code(), Code::no_driver);
    EXPECT_TRUE(says(error.message(), "/nowhere/libcuda.so.1"));
    EXPECT_TRUE(says(error.remedy(), "ISTHMUS_CUDA_LIBRARY"));
}

TEST(OpenDevices, AFileThatIsNoLibraryIsNoDriver) {
    const std::string file = ::testing::TempDir() + "/isthmus_text_file.so";
    std::ofstream(file) << "this is a text\n";
    const Error error = failure_of(file);
    EXPECT_EQ(error.code(), Code::no_driver);
    EXPECT_TRUE(says(error.message(), file));
    std::remove(file.c_str());
}

TEST(OpenDevices, AnotherLibraryIsNoDriver) {
    const Error error = failure_of("libc.so.6");
    EXPECT_EQ(error.code(), Code::no_driver);
    EXPECT_TRUE(says(error.message(), "cuDriverGetVersion"));
}

TEST(OpenDevices, TheEnvironmentNamesTheLibraryWhereTheCallerDoesNot) {
    ::setenv("ISTHMUS_CUDA_LIBRARY", fake_library("good").c_str(), 1);
    MachineFacts machine;
    EXPECT_TRUE(open_devices("", machine).ok());
    ::setenv("ISTHMUS_CUDA_LIBRARY", "/nowhere/else.so", 1);
    EXPECT_TRUE(says(failure_of("").message(), "/nowhere/else.so"));
    EXPECT_TRUE(open_devices(fake_library("good"), machine).ok());
    ::unsetenv("ISTHMUS_CUDA_LIBRARY");
}

// Also where a driver is installed: in a process that may open no file.
// keeps D9
TEST(OpenDevices, ADriverThatTheLoaderCannotOpenIsNone) {
    if (::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr) GTEST_SKIP() << "a driver is loaded already";
    const auto open_nothing = [] {
        ::unsetenv("ISTHMUS_CUDA_LIBRARY");
        const rlimit none{};
        if (::setrlimit(RLIMIT_NOFILE, &none) != 0) return false;
        const Error error = failure_of("");
        return error.id() == errors::driver_not_found.id && error.code() == Code::no_driver &&
               says(error.message(), "libcuda.so.1");
    };
    EXPECT_EXIT(std::_Exit(open_nothing() ? 0 : 1), testing::ExitedWithCode(0), "");
}

// keeps D9
TEST(OpenDevices, WhereNoDriverIsInstalledTheRemedyIsToInstallOne) {
    ::unsetenv("ISTHMUS_CUDA_LIBRARY");
    if (::dlopen("libcuda.so.1", RTLD_NOW) != nullptr) GTEST_SKIP() << "a driver is installed here";
    const Error error = failure_of("");
    EXPECT_EQ(error.id(), errors::driver_not_found.id);
    EXPECT_EQ(error.code(), Code::no_driver);
    EXPECT_TRUE(says(error.message(), "libcuda.so.1"));
    EXPECT_TRUE(says(error.remedy(), "install NVIDIA's driver"));
}

struct InitCase {
    const char* fake;
    int driver_code;
    Code code;
    const char* remedy;
};
class FailingInit : public ::testing::TestWithParam<InitCase> {};

// keeps D9
TEST_P(FailingInit, IsATypedErrorWithTheDriversCodeAndARemedy) {
    const InitCase& one = GetParam();
    const Error error = failure_of(fake_library(one.fake));
    EXPECT_EQ(error.code(), one.code) << error.text();
    EXPECT_EQ(error.driver_code(), one.driver_code);
    EXPECT_TRUE(says(error.remedy(), one.remedy)) << error.remedy();
}
INSTANTIATE_TEST_SUITE_P(OpenDevices, FailingInit,
                         ::testing::Values(InitCase{"init_100", 100, Code::no_device, "nvidia-smi -L"},
                                           InitCase{"init_3", 3, Code::forked, "exec"},
                                           InitCase{"init_34", 34, Code::driver_mismatch, "stubs"},
                                           InitCase{"init_803", 803, Code::driver_mismatch, "reboot"},
                                           InitCase{"init_804", 804, Code::driver_mismatch, "compat"},
                                           InitCase{"init_999", 999, Code::driver_error, "dmesg"},
                                           InitCase{"init_304", 304, Code::system_limit, "ulimit -u"},
                                           InitCase{"init_2", 2, Code::out_of_memory, "container"},
                                           InitCase{"stub", 34, Code::driver_mismatch, "stubs"},
                                           InitCase{"empty", 100, Code::no_device, "nvidia-smi -L"}),
                         [](const auto& one) { return std::string(one.param.fake); });

// keeps D9
TEST(OpenDevices, ADriverThatIsTooOldIsNamedWithTheVersionThatIsNeeded) {
    MachineFacts machine;
    const Result<OpenedDevices> opened = open_devices(fake_library("old"), machine);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code(), Code::driver_too_old);
    EXPECT_TRUE(says(opened.error().message(), "CUDA 11.0"));
    EXPECT_TRUE(says(opened.error().message(), "cuCtxGetId"));
    EXPECT_TRUE(says(opened.error().remedy(), "CUDA 12.0"));
    EXPECT_EQ(machine.driver_version, 11000);  // reported all the same
}

TEST(OpenDevices, AMissingRequiredFunctionIsNamed) {
    const Error error = failure_of(fake_library("lacks_launch"));
    EXPECT_EQ(error.code(), Code::driver_too_old);
    EXPECT_TRUE(says(error.message(), "cuLaunchKernel"));
    EXPECT_TRUE(says(error.message(), "CUDA 4.0"));
}

// A driver of CUDA 12.6 has no cuDeviceGetHostAtomicCapabilities (13.0): that is no failure.
TEST(OpenDevices, AMissingOptionalFunctionLeavesItsAnswerAbsent) {
    MachineFacts machine;
    const Result<OpenedDevices> opened = open_devices(fake_library("cuda_12_6"), machine);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    EXPECT_EQ(machine.driver_version, 12060);
    EXPECT_FALSE(opened->drivers[0]->facts().host_atomics.has_value());
}

TEST(OpenDevices, ALibraryWithoutGetProcAddressIsReadByExportedNames) {
    MachineFacts machine;
    const Result<OpenedDevices> opened = open_devices(fake_library("no_proc_address"), machine);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    EXPECT_EQ(opened->drivers.size(), 2u);
}

TEST(OpenDevices, ASimulatedMachineStatesItsOwnFacts) {
    MachineFacts machine;
    machine.kernel_release = "the host's";
    machine.nvidia_params = {{"CoherentGPUMemoryMode", "the host's"}};
    const Result<OpenedDevices> opened = open_devices(fake_library("simulator"), machine);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    EXPECT_TRUE(machine.simulated);
    EXPECT_EQ(machine.nvidia_param("CoherentGPUMemoryMode"), "driver");
    EXPECT_EQ(machine.imex_channels_major, 242);
    EXPECT_EQ(machine.imex_channel_files, 2);
    EXPECT_EQ(machine.addressing_mode, "ATS");
    EXPECT_EQ(machine.page_size_bytes, 65536u);
    EXPECT_EQ(machine.cpu_name, "a simulated one");
    EXPECT_EQ(machine.kernel_release, "the host's");  // missing in the record
    ASSERT_EQ(machine.numa_nodes.size(), 2u);         // the malformed third is left out
    EXPECT_EQ(machine.numa_nodes[0].cpu_count, 72);
    EXPECT_EQ(machine.numa_nodes[1].memory_bytes, 2048u);
    EXPECT_EQ(machine.numa_nodes[0].cpus, "0-71");
    EXPECT_EQ(machine.numa_nodes[1].cpus, "");
    const std::optional<PciPlace>& pci = opened->drivers[0]->facts().pci;
    ASSERT_TRUE(pci);
    EXPECT_EQ(pci->max_speed_mt_per_s, 32000);
    EXPECT_EQ(pci->max_lanes, 16);
    EXPECT_EQ(pci->numa_node, 1);
    EXPECT_EQ(pci->near_cpus, "0-3,8");
    EXPECT_FALSE(opened->drivers[1]->facts().pci) << "the record does not say, and the host's bus is another machine's";
}

}  // namespace
}  // namespace isthmus::platform::cuda
