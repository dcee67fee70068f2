// SPDX-License-Identifier: Apache-2.0
// Small shared buffers share pages: their bounds, their identities, their release, and which never do.
#include "keeping.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace conformance {
namespace {

using Words = Buffer<std::int32_t>;

constexpr std::array kinds = {MemoryKind::device,  MemoryKind::pinned,     MemoryKind::write_combined,
                              MemoryKind::managed, MemoryKind::registered, MemoryKind::host};
constexpr std::uint64_t plenty = std::uint64_t{256} << 20;
constexpr std::size_t words = 16;

Result<Words> small_of(Device& device, MemoryKind kind, std::size_t count = words) {
    SharedUse use;
    use.kind = kind;
    return device.allocate_shared<std::int32_t>(count, use);
}

bool is_attached_whole(const Device& device, MemoryKind kind) {
    return kind == MemoryKind::managed && device.capabilities().managed == ManagedModel::phase_guarded;
}

// keeps M1, M2, K6
TEST(Small, BuffersOf64BytesShareTheDriversAllocationsAndNoLine) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        for (const MemoryKind kind : kinds) {
            SCOPED_TRACE(isthmus::name(kind));
            constexpr std::size_t count = 64;
            std::vector<Words> buffers;
            const std::uint64_t missed = device.cache_usage().missed;
            for (std::size_t at = 0; at < count; ++at) {
                Result<Words> made = small_of(device, kind);
                if (made.code() == Code::unsupported || !worked(made)) break;
                buffers.push_back(std::move(made).value());
            }
            if (buffers.size() != count) continue;
            std::set<std::uintptr_t> lines;
            std::set<std::uintptr_t> pages;
            for (Words& buffer : buffers) {
                auto view = buffer.write_on_host();
                if (!worked(view)) continue;
                const auto first = reinterpret_cast<std::uintptr_t>(view->data());
                EXPECT_EQ(first % 256, 0u);
                EXPECT_TRUE(lines.insert(first / 128).second) << "two buffers share a line";
                pages.insert(first / 4096);
            }
            const std::uint64_t fresh = device.cache_usage().missed - missed;
            const bool whole = kind == MemoryKind::write_combined || is_attached_whole(device, kind);
            if (whole && !device.is_cpu()) {
                EXPECT_TRUE(unless_fault(fresh >= count)) << "never divided";
                EXPECT_TRUE(unless_fault(pages.size() == count));
                continue;
            }
            EXPECT_TRUE(unless_fault(pages.size() <= count / 4)) << pages.size() << " pages";
            // Ordinary pages near the device are cut out of slabs of their node, each piece on its own.
            if (kind != MemoryKind::host) {
                EXPECT_TRUE(unless_fault(fresh <= count / 4)) << fresh << " new allocations";
            }
        }
    });
}

// keeps M4, K8, K9
TEST(Small, EachHasItsOwnContentKernelsAndRelease) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        for (const MemoryKind kind : kinds) {
            SCOPED_TRACE(isthmus::name(kind));
            std::vector<Words> buffers;
            for (std::int32_t at = 0; at < 20; ++at) {
                Result<Words> made = small_of(device, kind, 1 + static_cast<std::size_t>(at) * 20);
                if (made.code() == Code::unsupported || !worked(made)) break;
                buffers.push_back(std::move(made).value());
                if (auto view = buffers.back().write_on_host(); worked(view)) {
                    for (std::int32_t& value : *view) value = at;
                }
            }
            for (Words& buffer : buffers) {
                EXPECT_TRUE(unless_fault(device.stream().launch(add_one, buffer.size(), buffer).ok()));
            }
            for (std::size_t at = 1; at < buffers.size(); at += 2) EXPECT_TRUE(worked(buffers[at].release()));
            for (std::size_t at = 0; at < buffers.size(); at += 2) {
                const auto view = buffers[at].read_on_host();
                if (!worked(view)) continue;
                const auto expected = static_cast<std::int32_t>(at) + 1;
                for (const std::int32_t value : *view) EXPECT_TRUE(unless_fault(value == expected));
            }
        }
    });
}

// keeps M3, M5
TEST(Small, TrimmingGivesBackASlabWithItsLastBuffer) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        std::vector<Words> buffers;
        for (int at = 0; at < 40; ++at) {
            Result<Words> made = small_of(device, MemoryKind::pinned);
            if (!worked(made)) return;
            buffers.push_back(std::move(made).value());
        }
        (void)buffers[7].device_address();  // other code may use it: its place is not handed out again
        const void* const exposed = buffers[7].write_on_host().value().data();
        EXPECT_TRUE(worked(buffers[7].release()));
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces == 0u)) << "somebody has its address";
        Result<Words> next = small_of(device, MemoryKind::pinned);
        if (worked(next)) {
            EXPECT_TRUE(unless_fault(next->write_on_host().value().data() != exposed));
        }
        buffers.clear();
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces != 0u));
        (void)device.trim_cache();
        EXPECT_EQ(device.cache_usage().kept_pieces, 0u);
        next = Words();
        (void)device.trim_cache();
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_bytes == 0u)) << device.cache_usage().kept_bytes;
    });
}

// keeps K21, M2: a driver discards whole pages
TEST(Small, ADiscardEndsNoContentOnSharedPages) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        for (const MemoryKind kind : {MemoryKind::managed, MemoryKind::host}) {
            SCOPED_TRACE(isthmus::name(kind));
            Result<Words> one = small_of(device, kind);
            Result<Words> other = small_of(device, kind);
            if (!one || !other) continue;
            Stream stream = device.create_stream().value();
            stream.fill(*one, 41).value();
            stream.fill(*other, 42).value();
            const HintReport report = stream.discard(*other).value();
            EXPECT_TRUE(unless_fault(report.outcome != HintOutcome::done)) << report.reason;
            const std::array<const BufferBase*, 2> two{&*one, &*other};
            const std::vector<HintReport> both = stream.discard(two, HintPlace::on_device()).value();
            for (const HintReport& each : both) EXPECT_TRUE(unless_fault(each.outcome != HintOutcome::done));
            stream.synchronize().value();
            EXPECT_EQ(one->read_on_host().value()[words - 1], 41);
            EXPECT_EQ(other->read_on_host().value()[words - 1], 42);
        }
    });
}

// keeps M1
TEST(Small, WithoutACacheEachHasMemoryOfItsOwn) {
    on_each_device_that_keeps(0, [](Device& device) {
        Result<Words> one = small_of(device, MemoryKind::pinned);
        if (!worked(one)) return;
        const long before = driver_calls();
        Result<Words> other = small_of(device, MemoryKind::pinned);
        if (worked(other) && counts_calls(device)) {
            EXPECT_TRUE(unless_fault(driver_calls() > before));
        }
    });
}

// keeps M2, A16
TEST(Small, ACopyBeyondABufferIsRefusedAlthoughItsSlabGoesOn) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        Result<Words> one = small_of(device, MemoryKind::pinned);
        Result<Words> other = small_of(device, MemoryKind::pinned);
        if (!worked(one) || !worked(other)) return;
        auto view = one->write_on_host();
        if (!worked(view)) return;
        EXPECT_EQ(device.can_access(view->data(), words * sizeof(std::int32_t)).verdict, Verdict::yes);
        const bool pageable = device.is_cpu() || device.capabilities().has(Feature::pageable_access);
        const Verdict beyond = device.can_access(view->data(), words * sizeof(std::int32_t) + 1).verdict;
        if (!pageable) {
            EXPECT_NE(beyond, Verdict::yes) << "no buffer covers these bytes";
        }
        EXPECT_EQ(one->kind(), device.is_cpu() ? MemoryKind::host : MemoryKind::pinned);
    });
}

}  // namespace
}  // namespace conformance
