// SPDX-License-Identifier: Apache-2.0
// Which mappings failing_system.so counts as the library's: those that the library made, until any code unmaps them.
// Always built with optimization, because a tail call then returns into the library.
#include "conformance.hpp"

#include <dlfcn.h>
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

}  // namespace
