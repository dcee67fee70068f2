// SPDX-License-Identifier: Apache-2.0
// How much of the heap the library keeps for each of many small buffers: its state, its entry in the ledger and its
// record in the address map. docs/performance.md has what it consists of.
#include "counting.hpp"
#include "keeping.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t warm = 200;
constexpr std::size_t words = 16;

// Of one of many buffers of this kind, on a device of a runtime of its own: what ended buffers left would be used
// again. Less than 0: the machine has no such memory.
double heap_bytes_each(std::size_t number, MemoryKind kind, std::size_t buffers, bool used) {
    Runtime own = Runtime::open(options_with(std::uint64_t{64} << 20)).value();
    Device& device = *own.device(number).value();
    SharedUse use;
    use.kind = kind;
    std::vector<Buffer<std::int32_t>> made;
    made.reserve(warm + buffers);
    const auto make = [&] {
        Result<Buffer<std::int32_t>> one = device.allocate_shared<std::int32_t>(words, use);
        if (!one) return false;
        one->write_on_host().value()[0] = 1;
        if (used) {
            (void)device.stream().launch(add_one, words, *one).value();
            if (made.size() % 16 == 0) {
                EXPECT_TRUE(worked(device.stream().synchronize()));
            }
        }
        made.push_back(std::move(one).value());
        return true;
    };
    for (std::size_t at = 0; at < warm; ++at) {
        if (!make()) return -1;
    }
    Counting counting;
    for (std::size_t at = 0; at < buffers; ++at) {
        if (!make()) return -1;
    }
    return static_cast<double>(counting.end().heap_bytes) / static_cast<double>(buffers);
}

// More than this, and the figures in docs/performance.md are no longer true: 256 and less, of which a few depend on how
// far the lists have grown.
constexpr double most_bytes = 270;
constexpr double most_bytes_used = most_bytes + 128;      // by a stream
constexpr double most_bytes_attached = most_bytes + 640;  // memory of one side at a time, which is never divided
constexpr MemoryKind kinds[] = {MemoryKind::pinned, MemoryKind::registered, MemoryKind::managed};

// The devices, one of each name.
std::vector<std::size_t> different_devices() {
    std::vector<std::size_t> all;
    for (std::size_t number = 0; number < runtime().device_count(); ++number) {
        const std::string name(runtime().device(number).value()->name());
        if (all.empty() || runtime().device(all.back()).value()->name() != name) all.push_back(number);
    }
    return all;
}

// keeps M1
TEST(StateBytes, OfASmallBufferAreFew) {
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    for (const std::size_t number : different_devices()) {
        const Device& device = *runtime().device(number).value();
        SCOPED_TRACE(device.name());
        for (const MemoryKind kind : kinds) {
            SCOPED_TRACE(isthmus::name(kind));
            const bool attached = kind == MemoryKind::managed && !device.is_cpu() &&
                                  device.capabilities().managed == ManagedModel::phase_guarded;
            const double each = heap_bytes_each(number, kind, attached ? 2000 : 5000, false);
            if (each < 0) continue;
            std::printf("%s: %.0f bytes of the heap\n", std::string(isthmus::name(kind)).c_str(), each);
            EXPECT_LE(each, attached ? most_bytes_attached : most_bytes);
            EXPECT_GE(each, 200.0) << "not all was counted";
        }
    }
}

// keeps M1
TEST(StateBytes, OfASmallBufferThatAStreamUsesAreFew) {
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    for (const std::size_t number : different_devices()) {
        SCOPED_TRACE(runtime().device(number).value()->name());
        const double each = heap_bytes_each(number, MemoryKind::pinned, 5000, true);
        std::printf("used by a stream: %.0f bytes of the heap\n", each);
        EXPECT_LE(each, most_bytes_used);
    }
}

}  // namespace
}  // namespace conformance
