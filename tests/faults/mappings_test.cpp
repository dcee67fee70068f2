// SPDX-License-Identifier: Apache-2.0
// Which mappings failing_system.so counts as the library's: those that the library made, until any code unmaps them.
// And which of its calls fail: not those of the C++ library's code in it.
// Always built with optimization, because a tail call then returns into the library.
#include "conformance.hpp"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace {

using namespace isthmus;

constexpr std::size_t count = 3000;  // not a whole number of pages
constexpr std::size_t bytes = count * sizeof(std::int32_t);

using MappedBytes = long (*)();

class CountedMappings : public testing::Test {
protected:
    void SetUp() override {
        mapped_bytes = reinterpret_cast<MappedBytes>(dlsym(RTLD_DEFAULT, "failing_system_mapped_bytes"));
        ASSERT_NE(mapped_bytes, nullptr) << "run this program with LD_PRELOAD=failing_system.so";
    }
    MappedBytes mapped_bytes = nullptr;
};

TEST_F(CountedMappings, LeaveOutWhatAnOwnerUnmapsInItsReleaseCallback) {
    Runtime runtime = Runtime::open({}).value();
    for (std::size_t at = 0; at < runtime.device_count(); ++at) {
        Device& device = *runtime.device(at).value();
        void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(memory, MAP_FAILED);
        const long before = mapped_bytes();
        AdoptOptions options;
        options.release = [](void* data, std::size_t length) { (void)munmap(data, length); };
        { const auto adopted = device.adopt<std::int32_t>(memory, count, std::move(options)).value(); }
        EXPECT_EQ(mapped_bytes(), before) << device.name();
        ASSERT_NE(msync(memory, bytes, MS_ASYNC), 0) << "the callback has unmapped it";
    }
}

TEST_F(CountedMappings, AreTheLibrarysUntilItUnmapsThem) {
    const long before = mapped_bytes();
    {
        Runtime runtime = Runtime::open({}).value();
        Device& cpu = *runtime.device(runtime.device_count() - 1).value();
        const long opened = mapped_bytes();
        constexpr std::size_t large = std::size_t{64} << 20;
        const auto buffer = cpu.allocate<std::byte>(large, MemoryKind::host).value();
        EXPECT_GE(mapped_bytes(), opened + static_cast<long>(large));
    }
    EXPECT_EQ(mapped_bytes(), before);
}

// Its threads would sleep for ever.
TEST(FailedSystemCalls, LeaveOutTheWakeUpsOfLocalStatics) {
    using Plan = int (*)(const char*);
    using Calls = long (*)();
    using Wake = long (*)(std::uint32_t*, int);
    const auto plan = reinterpret_cast<Plan>(dlsym(RTLD_DEFAULT, "failing_system_plan"));
    const auto calls = reinterpret_cast<Calls>(dlsym(RTLD_DEFAULT, "failing_system_calls"));
    ASSERT_TRUE(plan != nullptr && calls != nullptr) << "run this program with LD_PRELOAD=failing_system.so";
    void* const library = dlopen(FUTEX_CALLS, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto wake = reinterpret_cast<Wake>(dlsym(library, "wake"));
    ASSERT_NE(wake, nullptr);
    std::uint32_t word = 0;
    ASSERT_EQ(plan("nth=1:persistent"), 0);
    const long of_guard = wake(&word, 0);
    const long counted = calls();
    const long of_library = wake(&word, FUTEX_PRIVATE_FLAG);
    ASSERT_EQ(plan(""), 0);
    EXPECT_EQ(of_guard, 0);
    EXPECT_EQ(counted, 0) << "not counted, so that plans name the library's own calls";
    EXPECT_EQ(of_library, -1);
    EXPECT_EQ(dlclose(library), 0);
}

}  // namespace
