// SPDX-License-Identifier: Apache-2.0
// Recorded traces played through the public interface: nobody's content is another one's, little more is kept than
// lived, and a day of messages leaves nothing behind. $ISTHMUS_MESSAGES says how many messages (default: 20 000).
#include "keeping.hpp"

#include <allocation_trace.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace conformance {
namespace {

constexpr std::uint64_t plenty = std::uint64_t{1} << 30;

traces::Trace recorded(const std::string& name) {
    return traces::read(std::string(ISTHMUS_TRACES) + name + ".txt");
}

// Live allocations of the simulator's driver; 0 on the CPU device and on a real driver.
std::int64_t live_allocations() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return 0;
    using Live = std::int64_t (*)(const char*);
    const auto live = reinterpret_cast<Live>(dlsym(library, "isthmus_sim_live"));
    return live == nullptr ? 0 : live("allocations");
}

using Bytes = Buffer<std::uint8_t>;

// Every byte, so that a block that overlaps another one is found at the release of either.
void write_pattern(Bytes& buffer, std::uint32_t block) {
    auto view = buffer.write_on_host().value();
    std::memset(view.data(), static_cast<int>(block % 251), view.size());
}
void expect_pattern(Bytes& buffer, std::uint32_t block) {
    const auto view = buffer.read_on_host().value();
    ASSERT_EQ(view[0], block % 251);
    ASSERT_EQ(std::memcmp(view.data(), view.data() + 1, view.size() - 1), 0) << "block " << block;
}

// Plays a trace; sizes are divided by `scale`. `make` answers the buffer of a block, of one of so many kinds.
template <class Make>
void play(Device& device, const traces::Trace& trace, std::size_t scale, std::size_t kinds, Make make) {
    std::vector<std::optional<Bytes>> blocks(trace.blocks);
    // Beside a sixteenth of the peak: 128 KiB for small programs, and where pages are large one for each of the eight
    // sizes of small buffers of each kind, which share them.
    const std::size_t page = runtime().machine().page_size_bytes;
    const std::size_t beside = (128 << 10) + (page > 4096 ? 8 * kinds * page : 0);
    std::uint64_t live = 0, peak = 0;
    for (const traces::Event& event : trace.events) {
        std::optional<Bytes>& block = blocks[event.block];
        if (event.bytes != 0) {
            block = make(event.block, (event.bytes + scale - 1) / scale);
            write_pattern(*block, event.block);
            live += block->size();
            peak = std::max(peak, live);
        } else {
            expect_pattern(*block, event.block);
            live -= block->size();
            EXPECT_TRUE(worked(block->release()));
            block.reset();
        }
        ASSERT_LE(device.cache_usage().kept_bytes + live, peak + peak / 16 + beside);
    }
    EXPECT_EQ(live, 0u);
}

Bytes shared_bytes(Device& device, std::size_t bytes, MemoryKind kind) {
    SharedUse use;
    use.kind = kind;
    auto made = device.allocate_shared<std::uint8_t>(bytes, use);
    if (made) return std::move(made).value();
    EXPECT_NE(kind, MemoryKind::pinned);
    use.kind = MemoryKind::pinned;  // which every machine shares
    return device.allocate_shared<std::uint8_t>(bytes, use).value();
}

// One after the other, so that blocks of different kinds live beside each other.
constexpr std::array viewable = {MemoryKind::pinned, MemoryKind::managed, MemoryKind::registered,
                                 MemoryKind::write_combined};

// keeps M2, M8
TEST(Traces, BlocksOfARecordedProgramKeepTheirContentAndLittleIsKeptBesideThem) {
    for (const char* const name : {"camera-messages", "camera-streams-short"}) {
        SCOPED_TRACE(name);
        const traces::Trace trace = recorded(name);
        if (trace.events.empty()) GTEST_SKIP() << trace.error;
        on_each_device_that_keeps(plenty, [&](Device& device) {
            play(device, trace, 16, viewable.size(), [&](std::uint32_t block, std::size_t bytes) {
                return shared_bytes(device, bytes, viewable[block % viewable.size()]);
            });
            const CacheUsage usage = device.cache_usage();
            EXPECT_GT(usage.served + usage.missed, 0u);
            (void)device.trim_cache();
        });
    }
}

// keeps M8
TEST(Traces, OneKindIsServedFromLittleMemory) {
    const traces::Trace trace = recorded("camera-messages");
    if (trace.events.empty()) GTEST_SKIP() << trace.error;
    on_each_device_that_keeps(plenty, [&](Device& device) {
        play(device, trace, 4, 1,
             [&](std::uint32_t, std::size_t bytes) { return shared_bytes(device, bytes, MemoryKind::pinned); });
        const CacheUsage usage = device.cache_usage();
        EXPECT_EQ(usage.served + usage.missed, trace.blocks);
        EXPECT_LT(usage.missed * 6, usage.served);
    });
}

// keeps M8
TEST(Traces, WithoutACacheNothingIsKeptOfThem) {
    const traces::Trace trace = recorded("camera-messages");
    if (trace.events.empty()) GTEST_SKIP() << trace.error;
    on_each_device_that_keeps(0, [&](Device& device) {
        play(device, trace, 16, 1,
             [&](std::uint32_t, std::size_t bytes) { return shared_bytes(device, bytes, MemoryKind::pinned); });
        EXPECT_EQ(device.cache_usage().served + device.cache_usage().kept_bytes, 0u);
    });
}

std::uint64_t messages_to_play() {
    const char* const given = std::getenv("ISTHMUS_MESSAGES");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : 20000;
}

struct Left {
    std::uint64_t kept_bytes = 0, kept_pieces = 0;
    std::int64_t allocations = 0;
};

// How many messages are dropped while their copies run differs from round to round, up to all copies of a round (18,
// with which a round needs at most twice the memory); what is left does not add up.
void expect_no_growth(const Left& left, const Left& warm) {
    EXPECT_LE(left.kept_bytes, 2 * warm.kept_bytes);
    EXPECT_LE(left.kept_pieces, warm.kept_pieces + 20);
    EXPECT_LE(left.allocations, warm.allocations + 20);
}

// A camera's consumer: one shared buffer for each message, of mixed sizes, up to four of which wait; now and then one
// is copied to memory of a stream.
// keeps M5, M8
TEST(Traces, ADayOfCameraMessagesDoesNotGrow) {
    const traces::Trace trace = recorded("camera-messages");
    if (trace.events.empty()) GTEST_SKIP() << trace.error;
    on_each_device_that_keeps(plenty, [&](Device& device) {
        Stream stream = device.create_stream().value();
        constexpr std::uint64_t warm_rounds = 4;
        const std::uint64_t rounds = std::max(messages_to_play() / trace.blocks, warm_rounds + 2);
        std::optional<Left> warm;
        std::vector<std::optional<Bytes>> waiting(trace.blocks);
        for (std::uint64_t round = 0; round < rounds; ++round) {
            for (const traces::Event& event : trace.events) {
                std::optional<Bytes>& message = waiting[event.block];
                if (event.bytes == 0) {
                    if (event.block % 64 == 0) {
                        Bytes copy = stream.allocate<std::uint8_t>(message->size()).value();
                        stream.copy(copy, *message).value();
                    }
                    const auto view = message->read_on_host().value();
                    ASSERT_EQ(view[0], event.block % 251);
                    ASSERT_EQ(view[view.size() - 1], (event.block + round) % 251);
                }
                if (event.bytes == 0) {
                    message.reset();
                    continue;
                }
                message = shared_bytes(device, (event.bytes + 15) / 16, MemoryKind::pinned);
                auto view = message->write_on_host().value();
                view[0] = static_cast<std::uint8_t>(event.block % 251);
                view[view.size() - 1] = static_cast<std::uint8_t>((event.block + round) % 251);
            }
            device.synchronize().value();
            const CacheUsage usage = device.cache_usage();
            const Left left{usage.kept_bytes, usage.kept_pieces, live_allocations()};
            if (round == warm_rounds) warm = left;
            if (round > warm_rounds) {
                expect_no_growth(left, *warm);
                ASSERT_FALSE(HasFailure()) << "after round " << round;
            }
        }
        EXPECT_LT(device.cache_usage().missed * 10, device.cache_usage().served);
        RecordProperty("messages", std::to_string(rounds * trace.blocks));
    });
}

}  // namespace
}  // namespace conformance
