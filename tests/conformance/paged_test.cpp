// SPDX-License-Identifier: Apache-2.0
// Pages of a pool in several ranges: content, references, refusals, and what unmapping waits for.
#include "gate.hpp"
#include "scenario.hpp"

#include <isthmus/mapping/paged_pool.hpp>

#include <cstdint>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace conformance {
namespace {

using Range = PagedRange<std::int32_t>;
constexpr LaunchOptions checked{.mode = LaunchMode::checked};

static_assert(!std::is_constructible_v<Buffer<int>, PagedRange<int>&&>);
static_assert(!std::is_convertible_v<PagedRange<int>&, Buffer<int>&>);
static_assert(std::is_move_assignable_v<PagedRange<int>> && std::is_copy_constructible_v<PagedPool>);

// Runs on every GPU that maps memory; everywhere else a pool is refused, without a driver call.
template <class Body>
void on_every_paging_device(Body body) {
    on_every_device([&](Device& device) {
        if (maps_memory(device)) return play_on(device, body);
        const long before = driver_calls();
        const auto refused = PagedPool::create(device, 1);
        ASSERT_TRUE(refused_as(refused, Code::unsupported));
        EXPECT_FALSE(refused.error().remedy().empty());
        EXPECT_EQ(driver_calls(), before);
    });
}

// A pool of four pages, three of them taken.
struct Pages {
    PagedPool pool;
    std::vector<Page> taken;
    std::size_t elements;

    explicit Pages(Device& device)
        : pool(PagedPool::create(device, 4).value()),
          taken(pool.take(3).value()),
          elements(pool.page_bytes() / sizeof(std::int32_t)) {}
};

// The value of one element.
std::int32_t element(Device& device, const Range& range, std::size_t at) {
    std::vector<std::int32_t> read(1, -1);
    device.stream().copy_to_host(read, range, at).value();
    return read[0];
}

// keeps V12, V15: a page has one content, whatever range it is seen in, and no address moves
TEST(Paged, APageIsTheSameInEveryRangeAndReturnsToItsPoolWithTheLastReference) {
    on_every_paging_device([](Device& device) {
        std::optional<Pages> scene(device);
        PagedPool pool = scene->pool;
        const std::size_t page = scene->elements;
        EXPECT_EQ(pool.page_bytes(), isthmus::memory_granularity(device).value().minimum_bytes);
        EXPECT_EQ(pool.pages(), 4u);
        EXPECT_EQ(pool.free_pages(), 1u);
        Range first = Range::create(pool, 8).value();
        Range second = Range::create(pool, 2).value();
        EXPECT_EQ(first.kind(), MemoryKind::vmm);
        EXPECT_EQ(first.slots(), 8u);
        EXPECT_EQ(first.size(), 0u);
        const std::uint64_t base = first.device_address();
        const long maps = driver_calls("cuMemMap"), grants = driver_calls("cuMemSetAccess");
        first.map(0, {scene->taken.data(), 2}).value();
        if (counts_calls(device)) {
            EXPECT_TRUE(unless_fault(driver_calls("cuMemMap") == maps + 2));
            EXPECT_TRUE(unless_fault(driver_calls("cuMemSetAccess") == grants + 1)) << "once per step";
        }
        EXPECT_EQ(first.size(), 2 * page);
        EXPECT_EQ(first.device_address(), base);
        device.stream().fill(first, 7).value();
        second.map(0, scene->taken[0]).value();
        (void)device.stream().launch(checked, add_one, page, second).value();
        EXPECT_EQ(element(device, first, page - 1), 8) << "the second range's kernel wrote it";
        EXPECT_EQ(element(device, first, page), 7);
        EXPECT_EQ(first.page(0), second.page(0));
        EXPECT_FALSE(first.page(2));
        scene.reset();  // the Page objects
        EXPECT_EQ(pool.free_pages(), 2u);
        // A gap ends the buffer, and closing it brings back what is behind.
        first.unmap(0).value();
        EXPECT_EQ(first.size(), 0u);
        EXPECT_EQ(pool.free_pages(), 2u) << "the second range has the page";
        first.map(0, pool.take(1).value()).value();
        EXPECT_EQ(first.size(), 2 * page);
        EXPECT_EQ(element(device, first, page), 7);
        EXPECT_EQ(element(device, second, 0), 8);
        second = {};
        EXPECT_TRUE(unless_fault(pool.free_pages() == 2));
        first = {};
        EXPECT_TRUE(unless_fault(pool.free_pages() == 4));
        EXPECT_TRUE(unless_fault(pool.trim() == 4 && pool.pages() == 0));
        pool.grow(2).value();
        EXPECT_TRUE(unless_fault(pool.free_pages() == 2));
        // The pool lives as long as a page does.
        std::optional<PagedPool> alone = std::move(pool);
        std::vector<Page> last = alone->take(1).value();
        EXPECT_EQ(last[0].references(), 1u);
        alone.reset();
        last.clear();
    });
}

// keeps V15: what is refused changes nothing
TEST(Paged, SlotsAndPagesThatDoNotFitAreRefused) {
    on_every_paging_device([](Device& device) {
        Pages scene(device);
        PagedPool& pool = scene.pool;
        const std::vector<Page>& pages = scene.taken;
        EXPECT_TRUE(refused_as(pool.take(2), Code::out_of_memory));
        EXPECT_EQ(pool.free_pages(), 1u);
        EXPECT_TRUE(refused_as(Range::create(pool, 0), Code::invalid_argument));
        EXPECT_TRUE(refused_as(Range::create(pool, std::size_t{1} << 60), Code::invalid_argument));
        PagedPoolOptions null;
        null.also = {nullptr};
        EXPECT_TRUE(refused_as(PagedPool::create(device, 1, null), Code::invalid_argument));
        Range range = Range::create(pool, 3).value();
        range.map(1, pages[0]).value();
        const PagedPool other = PagedPool::create(device, 1).value();
        const std::vector<Page> foreign = PagedPool(other).take(1).value();
        const long maps = driver_calls("cuMemMap"), unmaps = driver_calls("cuMemUnmap");
        EXPECT_TRUE(refused_as(range.map(3, pages[1]), Code::invalid_argument)) << "out of range";
        EXPECT_TRUE(refused_as(range.map(2, {pages.data() + 1, 2}), Code::invalid_argument));
        EXPECT_TRUE(refused_as(range.map(1, pages[1]), Code::in_use)) << "a page is still mapped";
        EXPECT_TRUE(refused_as(range.map(0, {pages.data() + 1, 2}), Code::in_use));
        EXPECT_TRUE(refused_as(range.map(0, pages[0]), Code::in_use)) << "twice in one range";
        Range empty = Range::create(pool, 2).value();
        const Page twice[] = {pages[1], pages[1]};
        EXPECT_TRUE(refused_as(empty.map(0, twice), Code::in_use));
        EXPECT_TRUE(refused_as(range.map(2, foreign[0]), Code::invalid_argument)) << "a page of another pool";
        EXPECT_TRUE(refused_as(range.map(2, Page()), Code::invalid_handle));
        EXPECT_TRUE(refused_as(range.unmap(2), Code::invalid_argument)) << "nothing is mapped there";
        EXPECT_TRUE(refused_as(range.unmap(1, 2), Code::invalid_argument));
        EXPECT_TRUE(refused_as(range.unmap(4), Code::invalid_argument));
        EXPECT_TRUE(unless_fault(driver_calls("cuMemMap") == maps && driver_calls("cuMemUnmap") == unmaps));
        EXPECT_EQ(range.page(1), pages[0]);
        Range moved = std::move(range);
        EXPECT_TRUE(refused_as(range.map(0, pages[1]), Code::invalid_handle));  // NOLINT(bugprone-use-after-move)
        EXPECT_TRUE(refused_as(range.unmap(1), Code::invalid_handle));
        PagedPool gone = std::move(pool);
        EXPECT_TRUE(refused_as(pool.take(1), Code::invalid_handle));  // NOLINT(bugprone-use-after-move)
        EXPECT_TRUE(refused_as(pool.grow(1), Code::invalid_handle));
        EXPECT_TRUE(refused_as(Range::create(pool, 1), Code::invalid_handle));
        moved.release().value();
        EXPECT_TRUE(refused_as(moved.map(0, pages[1]), Code::invalid_handle));
        EXPECT_EQ(gone.free_pages(), 1u) << "the Page objects hold theirs";
    });
}

// keeps V15: unmapping waits for the range's work, and refuses where the wait is ruled out
TEST(Paged, UnmappingWaitsForTheWorkThatUsesTheRange) {
    on_every_paging_device([](Device& device) {
        Pages scene(device);
        Range range = Range::create(scene.pool, 2).value();
        range.map(0, {scene.taken.data(), 2}).value();
        device.stream().fill(range, 3).value();
        device.stream().synchronize().value();
        Buffer<std::int32_t> seen = pinned(device, scene.elements, 0);
        {
            Gate gate(device);
            Stream stream = device.create_stream().value();
            (void)stream.launch(when_raised, 1, gate.words(), range, 12).value();
            (void)stream.launch(checked, scale_into, scene.elements, seen, range, 1).value();
            if (gate.holds()) {
                const auto refused = range.unmap(0, 2, Wait::never());
                EXPECT_TRUE(refused_as(refused, Code::not_ready));
                EXPECT_EQ(range.size(), 2 * scene.elements) << "nothing has changed";
            }
            gate.raise();
            EXPECT_TRUE(worked(range.unmap(0, 2)));
        }
        EXPECT_EQ(range.size(), 0u);
        expect_all(seen, 15);
        range.map(0, scene.taken[2]).value();
        (void)device.stream().launch(checked, scale_into, scene.elements, range, seen, 2).value();
        EXPECT_EQ(element(device, range, 5), 30);
    });
}

// keeps K10, V15: graphs and captures keep what they use
TEST(Paged, WhatAGraphOrACaptureMayUseStaysMapped) {
    NEEDS(graph);
    on_every_paging_device([](Device& device) {
        Pages scene(device);
        Range range = Range::create(scene.pool, 4).value();
        range.map(0, scene.taken[0]).value();
        device.stream().fill(range, 1).value();
        device.stream().synchronize().value();
        Stream stream = device.create_stream().value();
        Capture capture = stream.begin_capture().value();
        (void)stream.launch(add_one, scene.elements, range).value();
        EXPECT_TRUE(refused_as(range.map(1, scene.taken[1]), Code::capture_error));
        EXPECT_TRUE(refused_as(range.unmap(0), Code::capture_error));
        std::thread([&] {
            EXPECT_TRUE(refused_as(range.unmap(0), Code::capture_error)) << "the capture may use the page";
        }).join();
        EXPECT_TRUE(refused_as(scene.pool.grow(1), Code::capture_error));
        {
            Graph graph = capture.end().value();
            EXPECT_TRUE(refused_as(range.unmap(0), Code::in_use));
            range.map(1, scene.taken[1]).value();  // a graph keeps the elements that it was captured with
            const GraphInstance instance = graph.instantiate().value();
            stream.launch(instance).value();
            stream.synchronize().value();
            EXPECT_EQ(element(device, range, scene.elements - 1), 2);
        }
        EXPECT_TRUE(worked(range.unmap(0, 2)));
        range.map(0, scene.taken[0]).value();
        const auto part = range.part(0, 16).value();
        EXPECT_TRUE(refused_as(range.unmap(0), Code::in_use)) << "a part may reach there";
    });
}

// keeps V9, V15: the devices of the pool are let into every page
TEST(Paged, EveryDeviceOfThePoolUsesTheRange) {
    on_every_paging_device([](Device& device) {
        for (Device& other : all_devices()) {
            if (&other == &device || other.is_cpu()) continue;
            PagedPoolOptions options;
            options.also = {&other};
            auto made = PagedPool::create(device, 1, options);
            if (!made) {
                EXPECT_TRUE(refused_as(made, Code::unsupported));
                continue;
            }
            Range range = Range::create(*made, 1).value();
            range.map(0, made->take(1).value()).value();
            device.stream().fill(range, 4).value();
            device.stream().synchronize().value();
            (void)other.stream().launch(checked, add_one, range.size(), range).value();
            other.stream().synchronize().value();
            EXPECT_EQ(element(device, range, range.size() - 1), 5);
        }
        Runtime second = Runtime::open().value();
        PagedPoolOptions theirs;
        theirs.also = {&second.cpu()};
        EXPECT_TRUE(refused_as(PagedPool::create(device, 1, theirs), Code::wrong_device));
    });
}

}  // namespace
}  // namespace conformance
