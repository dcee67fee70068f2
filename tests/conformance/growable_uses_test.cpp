// Growable buffers as arguments: parts of one that shrank, words that kernels update, and one that is another's now.
#include "conformance.hpp"

#include <isthmus/growable_buffer.hpp>
#include <isthmus/read_back.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace {

using conformance::on_every_device;
using conformance::refused_as;
using conformance::runtime;
using conformance::worked;
using isthmus::Buffer;
using isthmus::Code;
using isthmus::Device;
using isthmus::Feature;
using isthmus::GrowableBuffer;
using isthmus::GrowableOptions;
using isthmus::LaunchMode;
using isthmus::LaunchOptions;
using isthmus::MemoryKind;
using isthmus::MemoryPlace;
using isthmus::Stream;

using Numbers = GrowableBuffer<std::int32_t>;
constexpr std::size_t granule = (std::size_t{2} << 20) / sizeof(std::int32_t);  // elements
constexpr LaunchOptions checked{.mode = LaunchMode::checked};

GrowableOptions on_the_host() {
    GrowableOptions options;
    options.where = MemoryPlace::Where::host;
    return options;
}

template <class Body>
void on_every_growing_device(Body body) {
    on_every_device([&](Device& device) {
        if (device.is_cpu() || device.capabilities().has(Feature::virtual_memory)) body(device);
    });
}

// keeps V11, G8: what a part reaches is what the buffer has
TEST(Growable, PartsOfABufferThatShrankAreRefusedUntilItHasThemAgain) {
    on_every_growing_device([](Device& device) {
        Numbers buffer = Numbers::make(device, granule).value();
        buffer.resize(100).value();
        device.stream().fill(buffer, 1).value();
        const auto whole = buffer.part(0, 100).value();
        const auto tail = buffer.part(50, 50).value();
        const auto nothing = buffer.part(0, 0).value();
        for (const std::size_t size : {std::size_t{60}, std::size_t{0}}) {
            buffer.resize(size).value();
            for (const LaunchMode mode :
                 {LaunchMode::relaxed, LaunchMode::checked, LaunchMode::strict, LaunchMode::staged}) {
                for (const auto* const part : {&whole, &tail}) {
                    const auto given = device.stream().launch({.mode = mode}, conformance::add_one, 50, *part);
                    EXPECT_TRUE(refused_as(given, Code::invalid_argument));
                    const auto told = device.stream().explain({.mode = mode}, conformance::add_one, 50, *part);
                    ASSERT_TRUE(told.refusal.has_value());
                    EXPECT_EQ(told.refusal->code(), Code::invalid_argument);
                }
            }
            EXPECT_TRUE(refused_as(tail.read_on_host(), Code::invalid_argument));
            EXPECT_TRUE(refused_as(whole.write_on_host(), Code::invalid_argument));
            EXPECT_TRUE(refused_as(whole.concurrent_on_host(), Code::invalid_argument));
            EXPECT_TRUE(worked(nothing.read_on_host()));
        }
        buffer.resize(100).value();
        (void)device.stream().launch(checked, conformance::add_one, 50, tail).value();
        const std::vector<std::int32_t> all = isthmus::read_back(buffer).value();
        for (std::size_t at = 0; at < 100; ++at) ASSERT_EQ(all[at], at < 50 ? 1 : 2) << at;
    });
}

// keeps V11, G2
TEST(Growable, KernelsUpdateWordsInItWhereTheyMayInOtherMemoryOfThatPlace) {
    on_every_device([](Device& device) {
        for (const bool on_host : {false, true}) {
            auto made =
                GrowableBuffer<std::uint32_t>::make(device, granule, on_host ? on_the_host() : GrowableOptions{});
            if (!made) continue;  // refused, as above
            made->resize(64).value();
            device.stream().fill(*made, 0u).value();
            isthmus::SharedUse use;
            use.kind = made->kind() == MemoryKind::vmm ? MemoryKind::pinned : MemoryKind::host;
            const bool own = made->kind() == MemoryKind::vmm && !on_host;
            auto like = own ? device.allocate<std::uint32_t>(64, MemoryKind::device)
                            : device.allocate_shared<std::uint32_t>(64, use);
            device.stream().fill(like.value(), 0u).value();
            const auto expected = device.stream().launch(checked, conformance::update_words, 100, *like);
            const auto given = device.stream().launch(checked, conformance::update_words, 100, *made);
            EXPECT_TRUE(!own || worked(given));
            EXPECT_TRUE(expected ? worked(given) : refused_as(given, expected.code()));
            const conformance::UpdatedWords words{
                reinterpret_cast<std::uint32_t*>(static_cast<std::uintptr_t>(made->device_address())), 64};
            const auto raw = device.stream().launch(checked, conformance::update_words, 100, words);
            EXPECT_TRUE(expected ? worked(raw) : refused_as(raw, expected.code()));
            // A launch with an address names no buffer that a copy on the calling thread could wait for.
            EXPECT_TRUE(worked(device.stream().synchronize()));
            std::array<std::uint32_t, 1> seen{};
            EXPECT_TRUE(worked(device.stream().copy_to_host(std::span(seen), *made)));
            EXPECT_EQ(seen[0], expected ? 200u : 0u);
        }
    });
}

// keeps V11: its growing is for its own memory
TEST(Growable, AssignedThroughItsBaseItGrowsNoMore) {
    on_every_growing_device([](Device& device) {
        Numbers grown = Numbers::make(device, 2 * granule).value();
        grown.resize(10).value();
        Buffer<std::int32_t> plain = device.allocate<std::int32_t>(10).value();
        Stream stream = device.create_stream().value();
        isthmus::Capture capture = stream.begin_capture().value();  // the memory that grew ends behind it
        Buffer<std::int32_t>& base = grown;
        base = std::move(plain);
        EXPECT_TRUE(refused_as(grown.resize(20), Code::invalid_handle));
        EXPECT_TRUE(refused_as(grown.reserve(20), Code::invalid_handle));
        EXPECT_TRUE(refused_as(grown.trim(), Code::invalid_handle));
        EXPECT_TRUE(worked(capture.end()));
        EXPECT_TRUE(refused_as(grown.resize(20), Code::invalid_handle));
        EXPECT_EQ(grown.size(), 10u);
        device.stream().fill(grown, 2).value();
        EXPECT_TRUE(worked(grown.release()));
    });
}

// keeps V13: what was asked for is had, or refused
TEST(Growable, TheSystemsMemoryIsNotCompressed) {
    EXPECT_TRUE(refused_as(Numbers::make(runtime().cpu(), 1, {.compressible = true}), Code::unsupported));
}

}  // namespace
