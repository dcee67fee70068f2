// SPDX-License-Identifier: Apache-2.0
// Buffers that end and rest whole until their thread asks for the same again: what such a buffer is then, which ones
// rest, and that they count as kept memory.
#include "foreign_driver.hpp"
#include "gate.hpp"
#include "keeping.hpp"

#include <isthmus/graph.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 3000;
constexpr std::uint64_t plenty = std::uint64_t{256} << 20;
constexpr std::array kinds = {MemoryKind::device,  MemoryKind::pinned,     MemoryKind::write_combined,
                              MemoryKind::managed, MemoryKind::registered, MemoryKind::host};

Result<Buffer<std::int32_t>> shared_of(Device& device, MemoryKind kind, std::size_t many = count) {
    SharedUse use;
    use.kind = kind;
    return device.allocate_shared<std::int32_t>(many, use);
}

std::uint64_t pieces_of(const Buffer<std::int32_t>& buffer) {
    return buffer.path() == LaunchPath::stage ? 2 : 1;
}

// body(kind) for each kind that this device shares.
template <class Body>
void for_each_shared_kind(Device& device, Body body) {
    for (const MemoryKind kind : kinds) {
        SCOPED_TRACE(isthmus::name(kind));
        const auto try_it = [&] {
            const auto tried = shared_of(device, kind);
            return tried.code() != Code::unsupported && tried.code() != Code::not_accessible && worked(tried);
        };
        if (try_it()) body(kind);
    }
}

// keeps M1, M2, M4
TEST(Lanes, TheSameRequestGetsABufferThatIsNewButForItsMemory) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        for_each_shared_kind(device, [&](MemoryKind kind) {
            const std::uint64_t pieces = device.cache_usage().kept_pieces;
            std::optional<Buffer<std::int32_t>> first = shared_of(device, kind).value();
            const std::string_view why = first->explain();
            const LaunchPath path = first->path();
            set_all(*first, 5);
            const std::int32_t* const stale = first->read_on_host().value().data();
            first.reset();
            EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces == pieces));
            const CacheUsage before = device.cache_usage();
            const long calls = driver_calls();
            Buffer<std::int32_t> again = shared_of(device, kind).value();
            EXPECT_TRUE(unless_fault(driver_calls() == calls));
            EXPECT_TRUE(unless_fault(device.cache_usage().missed == before.missed));
            EXPECT_TRUE(unless_fault(device.cache_usage().served == before.served + pieces_of(again)));
            EXPECT_EQ(again.explain(), why);
            EXPECT_EQ(again.path(), path);
            EXPECT_EQ(again.kind(), device.is_cpu() ? MemoryKind::host : kind);
            EXPECT_EQ(again.size(), count);
            EXPECT_EQ(again.staged_bytes(), 0u);
            set_all(again, 7);
            EXPECT_TRUE(unless_fault(again.read_on_host().value().data() == stale));
            EXPECT_TRUE(worked(device.stream().launch(add_one, count, again)));
            expect_all(again, 8);
        });
    });
}

// keeps M2
TEST(Lanes, WhatRestsIsNobodysMemory) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        std::optional<Buffer<std::int32_t>> buffer = pinned(device, count, 1);
        std::int32_t* const stale = buffer->write_on_host().value().data();
        buffer.reset();
        if (device.cache_usage().kept_pieces == 0) return;  // a planned fault
        EXPECT_TRUE(refused_as(device.adopt<std::int32_t>(stale, count), Code::in_use));
        const bool reaches = device.is_cpu() || device.capabilities().has(Feature::pageable_access);
        EXPECT_TRUE(unless_fault((device.can_access(stale, 4).verdict == Verdict::yes) == reaches))
            << "no more than any memory of the system";
        Buffer<std::int32_t> again = pinned(device, count, 2);
        EXPECT_TRUE(unless_fault(device.can_access(stale, 4).verdict == Verdict::yes)) << "its own again";
        expect_all(again, 2);
    });
}

// keeps M5, M8
TEST(Lanes, WhatRestsServesOtherRequestsBeforeTheDriverIsAsked) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        for_each_shared_kind(device, [&](MemoryKind kind) {
            (void)device.trim_cache().value();
            { const auto buffer = shared_of(device, kind).value(); }
            const CacheUsage before = device.cache_usage();
            EXPECT_TRUE(unless_fault(before.kept_bytes > 0));
            const auto smaller = shared_of(device, kind, count - 5).value();
            EXPECT_TRUE(unless_fault(device.cache_usage().missed == before.missed));
            EXPECT_EQ(smaller.size(), count - 5);
            EXPECT_TRUE(unless_fault(device.cache_usage().kept_bytes == 0)) << "handed out";
        });
    });
}

// keeps M5
TEST(Lanes, WhatRestsGoesBackOnRequestAndBeforeMemoryRunsOut) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        for_each_shared_kind(device, [&](MemoryKind kind) {
            (void)device.trim_cache().value();
            { const auto buffer = shared_of(device, kind).value(); }
            const std::uint64_t kept = device.cache_usage().kept_bytes;
            EXPECT_TRUE(unless_fault(kept >= count * 4));
            const Result<std::uint64_t> went = device.trim_cache();
            EXPECT_TRUE(unless_fault(went.value_or(0) == kept));
            EXPECT_EQ(device.cache_usage().kept_bytes + device.cache_usage().kept_pieces, 0u);
            { const auto buffer = shared_of(device, kind).value(); }
            if (device.is_cpu()) return;
            const auto refused = device.allocate<std::uint8_t>(std::size_t{1} << 45, MemoryKind::device);
            EXPECT_TRUE(refused_as(refused, Code::out_of_memory));
            EXPECT_EQ(device.cache_usage().kept_pieces, 0u);
        });
    });
}

// keeps M3, K6
TEST(Lanes, WhatIsMoreThanItsMemoryDoesNotRest) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        const auto ended = [&](auto use) {
            (void)device.trim_cache().value();
            auto buffer = pinned(device, count, 3);
            use(buffer);
        };
        ended([&](Buffer<std::int32_t>& buffer) { (void)buffer.device_address(); });
        EXPECT_EQ(device.cache_usage().kept_pieces, 0u) << "somebody has its address";
        ended([&](Buffer<std::int32_t>& buffer) { device.stream().launch(add_one, count, buffer).value(); });
        device.synchronize().value();
        (void)device.trim_cache().value();
        // A part outlives the buffer's owner: the buffer ends with it, and the next one has no parts.
        std::optional<BufferPart<std::int32_t>> part;
        ended([&](Buffer<std::int32_t>& buffer) { part = buffer.part(0, 10).value(); });
        part.reset();
        Buffer<std::int32_t> next = pinned(device, count, 4);
        {
            const auto one = next.part(0, 10).value();
            const auto open = next.read_on_host().value();
            EXPECT_TRUE(refused_as(device.stream().launch(add_one, count, next), Code::in_use));
        }
        EXPECT_TRUE(worked(device.stream().launch(add_one, count, next)));
        expect_all(next, 5);
    });
}

// keeps K10, K13
TEST(Lanes, ACaptureNeitherTakesWhatRestsNorLetsAnyRest) {
    NEEDS(graph);
    on_each_device_that_keeps(plenty, [](Device& device) {
        Buffer<std::int32_t> numbers = pinned(device, count, 1);
        { const auto rests = pinned(device, 2 * count, 1); }
        std::optional<Buffer<std::int32_t>> ends = pinned(device, 3 * count, 1);
        const CacheUsage before = device.cache_usage();
        Result<Capture> capture = device.stream().begin_capture();
        if (!worked(capture)) return;
        if (!device.is_cpu()) {
            EXPECT_TRUE(refused_as(shared_of(device, MemoryKind::pinned, 2 * count), Code::capture_error));
        } else {
            const auto other = shared_of(device, MemoryKind::pinned, 2 * count);  // memory of the system: no driver
        }
        EXPECT_EQ(device.cache_usage().served, before.served);
        (void)device.stream().launch(add_one, count, numbers);
        ends.reset();
        EXPECT_EQ(device.cache_usage().kept_pieces, before.kept_pieces) << "not before the capture has ended";
        const Result<Graph> graph = capture->end();
        if (!worked(graph)) return;
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces == before.kept_pieces + 1));
    });
}

// keeps M2, M3
TEST(Lanes, ABufferThatStreamsUsedRestsWhenItsWorkHasEnded) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        Stream stream = device.create_stream().value();
        Stream other = device.create_stream().value();
        for_each_shared_kind(device, [&](MemoryKind kind) {
            (void)device.trim_cache().value();
            const std::uint64_t pieces = device.cache_usage().kept_pieces;
            const auto use = [&](Buffer<std::int32_t>& buffer) {
                set_all(buffer, 1);
                EXPECT_TRUE(worked(stream.launch(add_one, count, buffer)));
                // Attached memory belongs to one stream at a time.
                Stream& next = buffer.path() == LaunchPath::attach ? stream : other;
                EXPECT_TRUE(worked(next.wait_stream(stream)));
                EXPECT_TRUE(worked(next.launch(add_one, count, buffer)));
            };
            const auto wakes = [&] {
                const long calls = driver_calls();
                Result<Buffer<std::int32_t>> again = shared_of(device, kind);
                if (!worked(again)) return;
                EXPECT_TRUE(unless_fault(driver_calls() == calls));
                set_all(*again, 10);
                EXPECT_TRUE(worked(stream.launch(add_one, count, *again)));
                expect_all(*again, 11);
            };
            {
                Buffer<std::int32_t> used = shared_of(device, kind).value();
                use(used);
                expect_all(used, 3);
            }
            EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces > pieces));
            wakes();
            if (kind == MemoryKind::managed) return;  // attached: it ends in the drop
            // What is dropped while work uses it rests once the device is known to have come that far.
            {
                Buffer<std::int32_t> used = shared_of(device, kind).value();
                use(used);
            }
            EXPECT_TRUE(worked(device.synchronize()));
            EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces > pieces));
            wakes();
        });
    });
}

// The second launch stores its position without the buffer's lock.
TEST(Lanes, ABufferWhoseLastLaunchRunsDoesNotRest) {  // keeps M3
    on_each_device_that_keeps(plenty, [](Device& device) {
        Stream stream = device.create_stream().value();
        std::optional<Buffer<std::int32_t>> used = device.allocate<std::int32_t>(count).value();
        EXPECT_TRUE(worked(stream.launch(add_one, count, *used)));
        EXPECT_TRUE(worked(stream.synchronize()));
        Gate gate(device);
        (void)device.trim_cache().value();
        if (!worked(stream.launch(when_raised, 1, gate.words(), *used, 10)) || !gate.holds()) return;
        used.reset();
        EXPECT_EQ(device.cache_usage().kept_pieces, 0u) << "its kernel waits for the gate";
        gate.raise();
        EXPECT_TRUE(worked(stream.synchronize()));
    });
}

// keeps M2, M3
TEST(Lanes, BuffersOfOneKindRestAsSharedOnesDo) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        for (const MemoryKind kind : kinds) {
            SCOPED_TRACE(isthmus::name(kind));
            const auto made = [&](std::size_t many) { return device.allocate<std::int32_t>(many, kind); };
            const auto probe = made(count);
            if (probe.code() == Code::unsupported || !worked(probe)) continue;
            const std::string_view why = probe->explain();
            { const auto rests = made(2 * count).value(); }
            const long calls = driver_calls();
            const auto again = made(2 * count);
            EXPECT_TRUE(unless_fault(driver_calls() == calls));
            if (!worked(again)) continue;
            EXPECT_EQ(again->explain(), why);
            EXPECT_EQ(again->kind(), device.is_cpu() ? MemoryKind::host : kind);
            EXPECT_EQ(again->size(), 2 * count);
        }
    });
}

AllocationRequest block_of(std::size_t bytes, Stream* stream = nullptr) {
    AllocationRequest request;
    request.bytes = bytes;
    request.stream = stream;
    return request;
}

// keeps M1, M2, M4, K8
TEST(Lanes, ABlockThatWasReleasedServesTheSameRequestUnderAnotherIdentity) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        for (const MemoryKind kind : kinds) {
            SCOPED_TRACE(isthmus::name(kind));
            const Allocator allocator = device.allocator(kind);
            const Result<MemoryBlock> first = allocator.allocate(block_of(4096));
            if (first.code() == Code::unsupported || !worked(first)) continue;
            const CacheUsage before = device.cache_usage();
            EXPECT_TRUE(worked(allocator.release(*first)));
            EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces == before.kept_pieces + 1));
            EXPECT_TRUE(unless_fault(device.cache_usage().kept_bytes >= before.kept_bytes + 4096));
            EXPECT_TRUE(refused_as(allocator.release(*first), Code::already_released));
            const long calls = driver_calls();
            const Result<MemoryBlock> other = allocator.allocate(block_of(4095 + 8192));
            const Result<MemoryBlock> coarse = allocator.allocate({4096, 4096});
            if (!worked(other) || !worked(coarse)) continue;
            EXPECT_EQ(coarse->id == first->id || other->id == first->id, false);
            EXPECT_TRUE(worked(allocator.release(*coarse)));
            EXPECT_TRUE(worked(allocator.release(*other)));
            const long with_others = driver_calls();
            const CacheUsage kept = device.cache_usage();
            const Result<MemoryBlock> again = allocator.allocate(block_of(4096));
            if (!worked(again)) continue;
            EXPECT_TRUE(unless_fault(driver_calls() == with_others)) << calls;
            EXPECT_TRUE(unless_fault(device.cache_usage().served == kept.served + 1));
            EXPECT_NE(again->id, first->id);
            EXPECT_EQ(again->kind, first->kind);
            EXPECT_EQ(again->bytes, 4096u);
            EXPECT_TRUE(refused_as(allocator.release(*first), Code::already_released)) << "another has the memory";
            // Any allocator of the device takes it back.
            EXPECT_TRUE(worked(device.allocator(MemoryKind::host).release(*again)));
            EXPECT_TRUE(refused_as(allocator.release(*again), Code::already_released));
        }
        (void)device.trim_cache().value();
        EXPECT_EQ(device.cache_usage().kept_bytes + device.cache_usage().kept_pieces, 0u);
    });
}

// keeps M2
TEST(Lanes, ABlockThatRestsIsNobodysMemory) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        const Allocator allocator = device.allocator(MemoryKind::pinned);
        const Result<MemoryBlock> block = allocator.allocate(block_of(4096));
        if (!worked(block)) return;
        auto* const stale = static_cast<std::int32_t*>(block->host);
        EXPECT_TRUE(unless_fault(device.can_access(stale, 4).verdict == Verdict::yes));
        EXPECT_TRUE(worked(allocator.release(*block)));
        if (device.cache_usage().kept_pieces == 0) return;  // a planned fault
        EXPECT_TRUE(refused_as(device.adopt<std::int32_t>(stale, 1024), Code::in_use));
        const bool reaches = device.is_cpu() || device.capabilities().has(Feature::pageable_access);
        EXPECT_TRUE(unless_fault((device.can_access(stale, 4).verdict == Verdict::yes) == reaches));
    });
}

// keeps M2: the simulator is told of the release, and of the next owner
TEST(Lanes, ABlockThatRestsMayNotBeAccessed) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (!counts_calls(device)) return;  // a driver does not know
        const Allocator allocator = device.allocator(MemoryKind::device);
        const MemoryBlock other = allocator.allocate(block_of(4096)).value();
        const MemoryBlock block = allocator.allocate(block_of(4096)).value();
        const ForeignContext context(device);
        const auto copy = [&] {
            auto* const function = driver_function<int(std::uint64_t, std::uint64_t, std::size_t)>("cuMemcpyDtoD_v2");
            return function(other.device, block.device, 4096);
        };
        EXPECT_TRUE(unless_fault(copy() == 0));
        EXPECT_TRUE(worked(allocator.release(block)));
        EXPECT_TRUE(unless_fault(copy() == 1)) << "use after release";
        const MemoryBlock again = allocator.allocate(block_of(4096)).value();
        EXPECT_TRUE(unless_fault(again.device == block.device && copy() == 0));
        EXPECT_TRUE(worked(allocator.release(again)));
        EXPECT_TRUE(worked(allocator.release(other)));
    });
}

// keeps M2: a block has the bounds that were asked for, whatever its memory was allocated for before
TEST(Lanes, MemoryOfACoarserAlignmentServesOthersWithinTheirBounds) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (!counts_calls(device)) return;  // a driver does not know the bounds
        constexpr std::size_t bytes = 5000;
        const Allocator allocator = device.allocator(MemoryKind::device);
        const MemoryBlock other = allocator.allocate(block_of(2 * bytes)).value();
        const ForeignContext context(device);
        const auto copies = [&](const MemoryBlock& block, std::size_t many) {
            auto* const function = driver_function<int(std::uint64_t, std::uint64_t, std::size_t)>("cuMemcpyDtoD_v2");
            return function(other.device, block.device, many) == 0;
        };
        for (int round = 0; round < 3; ++round) {
            const Result<MemoryBlock> coarse = allocator.allocate({bytes, 4096});
            if (!worked(coarse)) return;
            EXPECT_EQ(coarse->device % 4096, 0u);
            EXPECT_TRUE(unless_fault(copies(*coarse, bytes)));
            EXPECT_TRUE(worked(allocator.release(*coarse)));
            EXPECT_FALSE(copies(*coarse, bytes)) << "use after release";
            const Result<MemoryBlock> again = allocator.allocate(block_of(bytes));
            if (!worked(again)) return;
            EXPECT_EQ(again->device % 256, 0u);
            EXPECT_TRUE(unless_fault(copies(*again, bytes)));
            EXPECT_FALSE(copies(*again, bytes + 1)) << "an overrun by one byte";
            EXPECT_TRUE(
                unless_fault(device.can_access(reinterpret_cast<void*>(again->device), bytes).verdict == Verdict::yes));
            EXPECT_TRUE(worked(allocator.release(*again)));
        }
        EXPECT_TRUE(worked(allocator.release(other)));
    });
}

// Sizes that change from one block, or buffer, to the next: each has its own identity, bounds and content.
TEST(Lanes, ABufferOfAnotherSizeTakesWhatRestsAlong) {  // keeps M2, M4, K8
    on_each_device_that_keeps(plenty, [](Device& device) {
        Stream stream = device.create_stream().value();
        const Allocator allocator = device.allocator(MemoryKind::pinned);
        MemoryBlock before;
        std::uint64_t state = 3;
        const auto draw = [&] {
            return static_cast<std::size_t>((state = state * 25214903917u + 11) >> 20) % 60000 + 600;
        };
        for (int round = 0; round < 60; ++round) {
            const std::size_t many = draw();
            const Result<MemoryBlock> block = allocator.allocate(block_of(many));
            if (!worked(block)) return;
            EXPECT_EQ(block->bytes, many);
            EXPECT_NE(block->id, before.id);
            std::memset(block->host, round, many);
            if (before.id != 0) {
                EXPECT_TRUE(refused_as(allocator.release(before), Code::already_released));
            }
            before = *block;
            EXPECT_TRUE(worked(allocator.release(*block)));
            SharedUse use;
            use.kind = MemoryKind::pinned;
            for (const bool shared : {true, false}) {
                auto made = shared ? device.allocate_shared<std::int32_t>(many, use)
                                   : device.allocate<std::int32_t>(many, MemoryKind::pinned);
                if (!worked(made)) return;
                ASSERT_EQ(made->size(), many);
                set_all(*made, round);
                if (!worked(stream.launch(add_one, many, *made))) return;
                expect_all(*made, round + 1);
                EXPECT_EQ(made->kind(), device.is_cpu() ? MemoryKind::host : MemoryKind::pinned);
                EXPECT_FALSE(made->explain().empty());
            }
        }
    });
}

// Small memory, whose place serves requests of its size.
TEST(Lanes, ASmallBufferOfAnotherSizeHasItsOwnBoundsAndIdentity) {  // keeps M2, M4
    on_each_device_that_keeps(plenty, [](Device& device) {
        Stream stream = device.create_stream().value();
        std::uint64_t state = 5;
        const auto draw = [&] { return static_cast<std::size_t>((state = state * 25214903917u + 11) >> 20) % 500 + 1; };
        for_each_shared_kind(device, [&](MemoryKind kind) {
            std::vector<Buffer<std::int32_t>> beside;  // in places of the same slabs
            for (std::int32_t at = 0; at < 8; ++at) {
                beside.push_back(shared_of(device, kind, 60 * static_cast<std::size_t>(at) + 20).value());
                set_all(beside.back(), 1000 + at);
            }
            for (std::int32_t round = 0; round < 100; ++round) {
                const std::size_t many = draw();
                auto made = shared_of(device, kind, many);
                if (!worked(made)) return;
                ASSERT_EQ(made->size(), many);
                set_all(*made, round);
                if (!worked(stream.launch(add_one, many, *made))) return;
                expect_all(*made, round + 1);
                EXPECT_EQ(made->kind(), device.is_cpu() ? MemoryKind::host : kind);
                EXPECT_FALSE(made->explain().empty());
            }
            for (std::int32_t at = 0; at < 8; ++at) expect_all(beside[static_cast<std::size_t>(at)], 1000 + at);
        });
    });
}

// keeps M3
TEST(Lanes, ABlockOfAStreamServesItsOrderAndNoOther) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (device.is_cpu() || !device.capabilities().has(Feature::pools)) return;
        const Allocator allocator = device.allocator(MemoryKind::pool);
        const std::uint64_t before = device.cache_usage().kept_pieces;
        {
            Stream one = device.create_stream().value();
            Stream other = device.create_stream().value();
            EXPECT_TRUE(worked(one.synchronize()));
            EXPECT_TRUE(worked(other.synchronize()));
            const Result<MemoryBlock> first = allocator.allocate(block_of(4096, &one));
            if (!worked(first)) return;
            EXPECT_TRUE(worked(allocator.release(*first, &one)));
            const CacheUsage kept = device.cache_usage();
            EXPECT_TRUE(unless_fault(kept.kept_pieces == before + 1));
            const long given_back = driver_calls("cuMemFreeAsync");
            const Result<MemoryBlock> everywhere = allocator.allocate(block_of(4096));
            const Result<MemoryBlock> elsewhere = allocator.allocate(block_of(4096, &other));
            if (!worked(elsewhere) || !worked(everywhere)) return;
            // Else the driver has got the block, in the order of its stream, and orders whom it gives it to behind it.
            EXPECT_TRUE(unless_fault(driver_calls("cuMemFreeAsync") == given_back));
            EXPECT_NE(elsewhere->device, first->device) << "work of the first stream may still use it";
            EXPECT_NE(everywhere->device, first->device);
            const Result<MemoryBlock> again = allocator.allocate(block_of(4096, &one));
            if (!worked(again)) return;
            EXPECT_TRUE(unless_fault(again->device == first->device));
            // Released behind the other stream, it is that one's.
            EXPECT_TRUE(worked(other.wait_stream(one)));
            EXPECT_TRUE(worked(allocator.release(*again, &other)));
            EXPECT_TRUE(worked(allocator.release(*elsewhere, &other)));
            EXPECT_TRUE(worked(allocator.release(*everywhere)));
            const Result<MemoryBlock> last = allocator.allocate(block_of(4096, &one));
            if (!worked(last)) return;
            EXPECT_NE(last->device, again->device);
            EXPECT_TRUE(worked(allocator.release(*last, &one)));
            EXPECT_TRUE(worked(one.synchronize()));
            EXPECT_TRUE(worked(other.synchronize()));
        }
        // The streams have ended: what rested in their order is everybody's, and a trim finds all of it.
        (void)device.trim_cache().value();
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces == 0));
    });
}

// keeps M5: a large piece that served a small request is too much as soon as it has left its lane
TEST(Lanes, WhatATrimGivesBackOutOfALaneCounts) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        constexpr std::size_t large = std::size_t{4} << 20;
        const Allocator allocator = device.allocator(device.is_cpu() ? MemoryKind::host : MemoryKind::device);
        for (const bool all : {true, false}) {
            (void)device.trim_cache().value();
            const Result<MemoryBlock> first = allocator.allocate(block_of(large));
            if (!worked(first) || !worked(allocator.release(*first))) return;
            const Result<MemoryBlock> small = allocator.allocate(block_of(8192));
            (void)device.trim_cache().value();  // the most in use is counted anew
            if (!worked(small) || !worked(allocator.release(*small))) return;
            const std::uint64_t kept = device.cache_usage().kept_bytes;
            EXPECT_TRUE(unless_fault(kept == large));
            const Result<std::uint64_t> went = device.trim_cache(all ? 0 : kept);
            if (!worked(went)) return;
            EXPECT_EQ(*went + device.cache_usage().kept_bytes, kept);
        }
    });
}

// keeps M5: what has been kept for longest goes back first, wherever it was kept
TEST(Lanes, WhatALaneHasNoRoomForAgesAsTheRestDoes) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        const Allocator allocator = device.allocator(MemoryKind::pinned);
        constexpr std::size_t size = 1 << 16;
        constexpr std::size_t more_than_a_lane = 9;
        const Result<MemoryBlock> beside = allocator.allocate(block_of(128 * size));  // so that the others may be kept
        const Result<MemoryBlock> oldest = allocator.allocate(block_of(size));
        std::vector<MemoryBlock> blocks;
        for (std::size_t at = 0; at < more_than_a_lane; ++at) {
            if (const Result<MemoryBlock> made = allocator.allocate(block_of(size)); worked(made)) {
                blocks.push_back(*made);
            }
        }
        if (!worked(beside) || !worked(oldest) || blocks.size() < more_than_a_lane) return;
        EXPECT_TRUE(worked(allocator.release(*oldest)));
        EXPECT_TRUE(worked(device.trim_cache(plenty)));  // from its lane into the cache
        for (const MemoryBlock& block : blocks) EXPECT_TRUE(worked(allocator.release(block)));
        EXPECT_TRUE(worked(device.trim_cache(device.cache_usage().kept_bytes - 1)));
        for (MemoryBlock& block : blocks) {
            const Result<MemoryBlock> again = allocator.allocate(block_of(size));
            if (!worked(again)) return;
            EXPECT_TRUE(unless_fault(again->host != oldest->host)) << "it was released before the others";
            block = *again;
        }
        for (const MemoryBlock& block : blocks) EXPECT_TRUE(worked(allocator.release(block)));
        EXPECT_TRUE(worked(allocator.release(*beside)));
    });
}

// keeps K10, K13
TEST(Lanes, ACaptureNeitherTakesABlockThatRestsNorLetsOneRest) {
    NEEDS(graph);
    on_each_device_that_keeps(plenty, [](Device& device) {
        const Allocator allocator = device.allocator(MemoryKind::pinned);
        Buffer<std::int32_t> numbers = pinned(device, count, 1);
        const Result<MemoryBlock> rests = allocator.allocate(block_of(4096));
        const Result<MemoryBlock> ends = allocator.allocate(block_of(8192));
        if (!worked(rests) || !worked(ends)) return;
        EXPECT_TRUE(worked(allocator.release(*rests)));
        const CacheUsage before = device.cache_usage();
        Result<Capture> capture = device.stream().begin_capture();
        if (!worked(capture)) return;
        const Result<MemoryBlock> refused = allocator.allocate(block_of(4096));
        EXPECT_EQ(device.cache_usage().served, before.served);
        if (!device.is_cpu()) {
            EXPECT_TRUE(refused_as(refused, Code::capture_error));
        }
        (void)device.stream().launch(add_one, count, numbers);
        EXPECT_TRUE(worked(allocator.release(*ends)));
        EXPECT_EQ(device.cache_usage().kept_pieces, before.kept_pieces) << "not before the capture has ended";
        const Result<Graph> graph = capture->end();
        if (!worked(graph)) return;
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces == before.kept_pieces + 1));
        if (refused.ok()) {
            EXPECT_TRUE(worked(allocator.release(*refused)));
        }
    });
}

// What is large takes no room of the shares of lanes that others may fill yet.
TEST(Lanes, AllThreadsTogetherKeepNoMoreThanTheLimit) {  // keeps M5
    constexpr std::uint64_t mib = std::uint64_t{1} << 20;
    on_each_device_that_keeps(32 * mib, [](Device& device) {
        const Allocator allocator = device.allocator(MemoryKind::pinned);
        const auto allocated = [&](std::size_t many, std::size_t bytes) {
            std::vector<MemoryBlock> blocks;
            for (std::size_t at = 0; at < many; ++at) blocks.push_back(allocator.allocate(request_of(bytes)).value());
            return blocks;
        };
        const auto release = [&](const std::vector<MemoryBlock>& blocks) {
            for (const MemoryBlock& block : blocks) EXPECT_TRUE(worked(allocator.release(block)));
        };
        const std::vector<MemoryBlock> outside = allocated(16, mib);
        const std::vector<MemoryBlock> large = allocated(1, 11 * mib);
        const std::vector<MemoryBlock> of_threads = allocated(32, mib);
        release(outside);  // all but the last leave the lane
        release(large);
        for (const MemoryBlock& block : of_threads) {
            std::thread([&] { release({block}); }).join();
            EXPECT_LE(device.cache_usage().kept_bytes, 32 * mib);
        }
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_bytes >= 24 * mib));
    });
}

// Blocks that one thread allocates and another one releases, and stale ones that are released again beside that.
TEST(Lanes, ThreadsThatReleaseEachOthersBlocksGetMemoryOfTheirOwn) {  // keeps M4, M7, K8
    on_each_device_that_keeps(plenty, [](Device& device) {
        const Allocator allocator = device.allocator(MemoryKind::host);
        constexpr int rounds = 400;
        constexpr int pairs = 3;
        std::array<std::atomic<MemoryBlock*>, pairs> handed{};
        std::atomic<int> twice{0};
        std::atomic<bool> failed{false};  // an expectation that fails would end a thread for which another one waits
        const auto make = [&](std::size_t at) {
            for (int round = 0; round < rounds; ++round) {
                const Result<MemoryBlock> made = allocator.allocate(block_of(4096));
                const MemoryBlock block = made ? *made : MemoryBlock();
                failed = failed || !made;
                if (block) {
                    auto* const numbers = static_cast<std::int32_t*>(block.host);
                    for (std::size_t i = 0; i < 1024; ++i) numbers[i] = static_cast<std::int32_t>(at);
                    for (std::size_t i = 0; i < 1024; ++i) {
                        if (numbers[i] != static_cast<std::int32_t>(at)) ++twice;
                    }
                }
                auto* const passed = new MemoryBlock(block);
                MemoryBlock* none = nullptr;
                while (!handed[at].compare_exchange_weak(none, passed)) {
                    none = nullptr;
                    std::this_thread::yield();
                }
            }
        };
        const auto end = [&](std::size_t at) {
            MemoryBlock stale;
            for (int round = 0; round < rounds; ++round) {
                MemoryBlock* block = nullptr;
                while ((block = handed[at].exchange(nullptr)) == nullptr) std::this_thread::yield();
                const bool released = !*block || allocator.release(*block).ok();
                failed = failed || !released;
                if (stale) {
                    EXPECT_EQ(allocator.release(stale).code(), Code::already_released);
                }
                stale = released ? *block : MemoryBlock();
                delete block;
            }
        };
        std::vector<std::thread> threads;
        for (std::size_t at = 0; at < pairs; ++at) {
            threads.emplace_back(make, at);
            threads.emplace_back(end, at);
        }
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(twice.load(), 0);
        EXPECT_TRUE(unless_fault(!failed));
        (void)device.trim_cache().value();
        EXPECT_EQ(device.cache_usage().kept_bytes, 0u);
    });
}

// keeps M2, M3
TEST(Lanes, MemoryOfAStreamIsThereAtOnceInItsOrderAndNowhereElse) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (device.is_cpu() || !device.capabilities().has(Feature::pools)) return;
        Stream one = device.create_stream().value();
        Stream other = device.create_stream().value();
        EXPECT_TRUE(worked(one.synchronize()));
        EXPECT_TRUE(worked(other.synchronize()));
        Gate gate(device);
        {
            Buffer<std::int32_t> used = one.allocate<std::int32_t>(count).value();
            EXPECT_TRUE(worked(one.launch(when_raised, 1, gate.words(), used, 1)));
        }
        CacheUsage before = device.cache_usage();
        EXPECT_TRUE(unless_fault(before.kept_pieces > 0)) << "behind the work of the stream";
        EXPECT_TRUE(unless_fault(device.pool().value().usage().value().used_bytes < count * 4)) << "nobody's";
        const long calls = driver_calls();
        {
            Buffer<std::int32_t> again = one.allocate<std::int32_t>(count).value();
            EXPECT_TRUE(unless_fault(driver_calls() == calls && device.cache_usage().served == before.served + 1));
            EXPECT_TRUE(worked(one.fill(again, 5)));
            // Another stream gets memory of its own.
            Buffer<std::int32_t> elsewhere = other.allocate<std::int32_t>(count).value();
            EXPECT_TRUE(worked(other.fill(elsewhere, 7)));
            gate.raise();
            Buffer<std::int32_t> seen = pinned(device, count, 0);
            EXPECT_TRUE(worked(one.copy(seen, again)));
            expect_all(seen, 5);
            // And uses this one after its allocation.
            EXPECT_TRUE(worked(other.wait_stream(one)));
            EXPECT_TRUE(worked(other.launch(churn, count, again, 2000)));
            EXPECT_TRUE(worked(other.synchronize()));
            EXPECT_TRUE(worked(one.synchronize()));
        }
        (void)device.trim_cache().value();
        Gate behind(device);
        {
            Buffer<std::int32_t> used = one.allocate<std::int32_t>(count).value();
            EXPECT_TRUE(worked(other.launch(when_raised, 1, behind.words(), used, 1)));
        }
        // The other stream used it last: it is kept behind that one's work.
        before = device.cache_usage();
        Buffer<std::int32_t> last = other.allocate<std::int32_t>(count).value();
        EXPECT_TRUE(unless_fault(device.cache_usage().missed == before.missed));
        behind.raise();
        EXPECT_TRUE(worked(other.synchronize()));
    });
}

// keeps M3, M7
TEST(Lanes, AStreamTakesWhatRestsInItsOrderAlong) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (device.is_cpu() || !device.capabilities().has(Feature::pools)) return;
        const long before = driver_calls("cuStreamDestroy_v2");
        {
            Stream stream = device.create_stream().value();
            Buffer<std::int32_t> shared = pinned(device, count, 1);
            EXPECT_TRUE(worked(stream.launch(add_one, count, shared)));
            { const auto rests = stream.allocate<std::int32_t>(count).value(); }
            EXPECT_TRUE(worked(stream.synchronize()));
        }
        if (counts_calls(device)) {
            EXPECT_TRUE(unless_fault(driver_calls("cuStreamDestroy_v2") == before + 1))
                << "nothing that rests holds it";
        }
        {
            std::optional<Buffer<std::int32_t>> last;
            {
                Stream stream = device.create_stream().value();
                last = stream.allocate<std::int32_t>(2 * count).value();
                EXPECT_TRUE(worked(stream.launch(churn, count, *last, 2000)));
            }
            last.reset();  // the last holder of its stream
        }
        if (counts_calls(device)) {
            EXPECT_TRUE(unless_fault(driver_calls("cuStreamDestroy_v2") == before + 2));
        }
        Stream next = device.create_stream().value();
        { const auto other = next.allocate<std::int32_t>(count).value(); }
        EXPECT_TRUE(worked(device.synchronize()));
        (void)device.trim_cache().value();
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces == 0));
    });
}

// keeps K13, M7
TEST(Lanes, ACaptureGetsMemoryOfItsGraphAndNotWhatRests) {
    NEEDS(graph);
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (device.is_cpu() || !device.capabilities().has(Feature::pools)) return;
        Stream stream = device.create_stream().value();
        { const auto rests = stream.allocate<std::int32_t>(count).value(); }
        const std::uint64_t served = device.cache_usage().served;
        Result<Capture> capture = stream.begin_capture();
        if (!worked(capture)) return;
        {
            Result<Buffer<std::int32_t>> made = stream.allocate<std::int32_t>(count);
            if (worked(made)) {
                EXPECT_EQ(made->kind(), MemoryKind::graph);
                EXPECT_TRUE(worked(stream.fill(*made, 1)));
                EXPECT_TRUE(worked(made->release()));
            }
        }
        EXPECT_EQ(device.cache_usage().served, served);
        (void)capture->end();
        const auto again = stream.allocate<std::int32_t>(count);
        EXPECT_TRUE(unless_fault(device.cache_usage().served == served + 1)) << "after the capture";
    });
}

// keeps M5
TEST(Lanes, AViewMayBeTheLastHolder) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        for (int round = 0; round < 3; ++round) {
            std::optional<Buffer<std::int32_t>> buffer = pinned(device, count, round);
            auto view = buffer->read_write_on_host().value();
            buffer.reset();
            view[0] = 9;
            EXPECT_EQ(view[count - 1], round);
        }
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces == 1));
    });
}

// keeps M7, K12
TEST(Lanes, ThreadsThatEndEachOthersBuffersGetMemoryOfTheirOwn) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        std::array<std::atomic<Buffer<std::int32_t>*>, 4> places{};
        std::atomic<int> wrong{0};
        const auto churn = [&](std::int32_t own) {
            for (int round = 0; round < 200; ++round) {
                auto made = shared_of(device, MemoryKind::pinned, round % 5 == 0 ? 400 : 500);
                if (!made) continue;  // a planned fault
                const std::int32_t value = own * 1000 + round;
                if (auto written = made->write_on_host()) {
                    for (std::int32_t& one : *written) one = value;
                }
                if (auto seen = made->read_on_host()) {
                    for (const std::int32_t one : *seen) wrong += one == value ? 0 : 1;
                }
                auto* const mine = new Buffer<std::int32_t>(std::move(made).value());
                delete places[static_cast<std::size_t>(round % 4)].exchange(mine);
                if (round % 50 == 49) (void)device.trim_cache();
            }
        };
        {
            std::deque<Thread> threads;
            for (std::int32_t own = 1; own <= 4; ++own) threads.emplace_back([&churn, own] { churn(own); });
            for (Thread& thread : threads) thread.join();
        }
        for (auto& place : places) delete place.exchange(nullptr);
        EXPECT_EQ(wrong, 0);
        (void)device.trim_cache();
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_bytes == 0));
    });
}

}  // namespace
}  // namespace conformance
