// SPDX-License-Identifier: Apache-2.0
// Growing and reserving that fail halfway: what is left, and whether the next attempt succeeds.
#include "scenario.hpp"
#include "simulator_control.hpp"

#include <isthmus/mapping/growable_buffer.hpp>
#include <isthmus/mapping/multicast.hpp>
#include <isthmus/mapping/paged_pool.hpp>
#include <isthmus/mapping/virtual_memory.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace conformance {
namespace {

class FailedSteps : public testing::Test {
protected:
    void SetUp() override {
        runtime_.emplace(Runtime::open({}).value());
        if (device().is_cpu() || plan() == nullptr) GTEST_SKIP() << "only the simulator fails a call";
        if (!device().capabilities().has(Feature::virtual_memory)) GTEST_SKIP() << "nothing is mapped here";
    }
    void TearDown() override {
        if (plan() != nullptr) (void)plan()(nullptr);
        runtime_.reset();
    }
    static isthmus_sim_fault_plan_fn plan() { return control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan"); }
    static std::int64_t live(const char* what) { return control<isthmus_sim_live_fn>("isthmus_sim_live")(what); }
    Runtime& runtime() { return *runtime_; }
    Device& device() { return runtime_->default_device(); }

private:
    std::optional<Runtime> runtime_;
};

// A capture on another thread, which postpones releases of memory while it is open.
class CaptureElsewhere {
public:
    explicit CaptureElsewhere(Device& device)
        : thread_([this, &device] {
              Stream stream = device.create_stream().value();
              Capture capture = stream.begin_capture().value();
              open_.store(true);
              while (!ends_.load()) std::this_thread::yield();
              EXPECT_TRUE(capture.end().ok());
          }) {
        while (!open_.load()) std::this_thread::yield();
    }
    CaptureElsewhere(const CaptureElsewhere&) = delete;
    CaptureElsewhere& operator=(const CaptureElsewhere&) = delete;
    ~CaptureElsewhere() { ends_.store(true); }

private:
    std::atomic<bool> open_{false};
    std::atomic<bool> ends_{false};
    Thread thread_;
};

// keeps V10, V11
TEST_F(FailedSteps, AFailedGrowthLeavesNothingBehindAndTheNextOneWorksBesideACaptureToo) {
    const std::size_t granule = memory_granularity(device()).value().minimum_bytes / sizeof(std::int32_t);
    auto buffer = GrowableBuffer<std::int32_t>::create(device(), 8 * granule).value();
    buffer.resize(granule).value();
    device().stream().fill(buffer, 1).value();
    device().synchronize().value();
    const CaptureElsewhere capture(device());
    const std::int64_t mappings = live("mappings");
    const std::int64_t memory = live("physical");
    for (const char* const failing :
         {"call=cuMemCreate:n=1:code=999", "call=cuMemMap:n=1:code=999", "call=cuMemSetAccess:n=1:code=999"}) {
        ASSERT_EQ(plan()(failing), 0);
        EXPECT_EQ(buffer.resize(2 * granule).code(), Code::driver_error) << failing;
        ASSERT_EQ(plan()(nullptr), 0);
        EXPECT_EQ(buffer.size(), granule);
        EXPECT_EQ(live("mappings"), mappings) << failing;
        EXPECT_EQ(live("physical"), memory) << failing;
    }
    EXPECT_TRUE(buffer.resize(2 * granule).ok());
    device().stream().launch(add_one, 2 * granule, buffer).value();
    EXPECT_TRUE(device().stream().synchronize().ok());
}

// keeps V10, V15: a step that fails anywhere leaves the range, its pages and the pool as they were, also beside a
// capture
TEST_F(FailedSteps, PagesThatCannotBeMappedStayWhereTheyWere) {
    PagedPool pool = PagedPool::create(device(), 3).value();
    auto range = PagedRange<std::int32_t>::create(pool, 4).value();
    const std::vector<Page> pages = pool.take(3).value();
    range.map(0, pages[0]).value();
    device().stream().fill(range, 1).value();
    device().synchronize().value();
    {
        const CaptureElsewhere capture(device());
        const std::int64_t mappings = live("mappings");
        const std::int64_t memory = live("physical");
        for (const char* const failing :
             {"call=cuMemMap:n=1:code=999", "call=cuMemMap:n=2:code=999", "call=cuMemSetAccess:n=1:code=999"}) {
            ASSERT_EQ(plan()(failing), 0);
            EXPECT_EQ(range.map(1, {pages.data() + 1, 2}).code(), Code::driver_error) << failing;
            ASSERT_EQ(plan()(nullptr), 0);
            EXPECT_EQ(range.size(), pool.page_bytes() / sizeof(std::int32_t));
            EXPECT_FALSE(range.page(1));
            EXPECT_EQ(pages[1].references(), 1u) << failing;
            EXPECT_EQ(live("mappings"), mappings) << failing;
        }
        for (const char* const failing : {"call=cuMemCreate:n=1:code=999", "call=cuMemCreate:n=3:code=999"}) {
            ASSERT_EQ(plan()(failing), 0);
            EXPECT_EQ(pool.grow(3).code(), Code::driver_error) << failing;
            ASSERT_EQ(plan()(nullptr), 0);
            EXPECT_EQ(pool.pages(), 3u);
            EXPECT_EQ(live("physical"), memory) << failing;
        }
        EXPECT_TRUE(range.map(1, {pages.data() + 1, 2}).ok());
    }
    ASSERT_EQ(plan()("call=cuMemUnmap:n=2:code=999"), 0);
    EXPECT_EQ(range.unmap(0, 3).code(), Code::ok) << "a transient failure is tried again";
    ASSERT_EQ(plan()(nullptr), 0);
    EXPECT_EQ(range.size(), 0u);
    EXPECT_TRUE(range.map(0, {pages.data(), 3}).ok());
    device().stream().launch(add_one, range.size(), range).value();
    EXPECT_TRUE(device().stream().synchronize().ok());
}

// keeps V10, V11: whichever call of a step over several devices fails
TEST_F(FailedSteps, AStepOfAStripeThatFailsAnywhereLeavesNothingBehind) {
    const std::size_t granule = memory_granularity(device()).value().minimum_bytes / sizeof(std::int32_t);
    auto buffer =
        GrowableBuffer<std::int32_t>::create(device(), 9 * granule, {.stripe = {&device(), &device(), &device()}})
            .value();
    buffer.resize(granule).value();
    device().stream().fill(buffer, 1).value();
    device().synchronize().value();
    const CaptureElsewhere capture(device());
    const std::int64_t mappings = live("mappings");
    const std::int64_t memory = live("physical");
    for (const char* const failing :
         {"call=cuMemCreate:n=1:code=999", "call=cuMemCreate:n=3:code=999", "call=cuMemMap:n=1:code=999",
          "call=cuMemMap:n=3:code=999", "call=cuMemSetAccess:n=1:code=999"}) {
        ASSERT_EQ(plan()(failing), 0);
        EXPECT_EQ(buffer.resize(9 * granule).code(), Code::driver_error) << failing;
        ASSERT_EQ(plan()(nullptr), 0);
        EXPECT_EQ(buffer.size(), granule);
        EXPECT_EQ(buffer.figures().handles, 3u);
        EXPECT_EQ(live("mappings"), mappings) << failing;
        EXPECT_EQ(live("physical"), memory) << failing;
    }
    EXPECT_TRUE(buffer.resize(9 * granule).ok());
    EXPECT_EQ(live("mappings"), mappings + 3);
    device().stream().launch(add_one, 9 * granule, buffer).value();
    EXPECT_TRUE(device().stream().synchronize().ok());
}

// keeps V10, V14: in this order, and each step that fails changes nothing
TEST_F(FailedSteps, AMulticastObjectIsUnboundThenUnmappedThenReleased) {
    if (std::getenv("ISTHMUS_TEST_REAL") != nullptr) GTEST_SKIP() << "never on real hardware";
    std::vector<const Device*> all;
    for (std::size_t at = 0; at < runtime().device_count(); ++at) {
        const Device& each = *runtime().device(at).value();
        if (can_multicast(each)) all.push_back(&each);
    }
    if (all.size() < 2) GTEST_SKIP() << "no two devices take part";
    const auto failing = [](const char* call, const auto& step) {
        ASSERT_EQ(plan()((std::string("call=") + call + ":nth=1:code=999:persistent").c_str()), 0);
        EXPECT_EQ(step().code(), Code::driver_error) << call;
        ASSERT_EQ(plan()(nullptr), 0);
    };
    const std::size_t bytes = multicast_granularity(device(), all.size()).value().minimum_bytes;
    const auto calls = [](const char* name) {
        return control<isthmus_sim_call_count_fn>("isthmus_sim_call_count")(name);
    };
    failing("cuMulticastCreate", [&] { return MulticastGroup::create(device(), all.size(), bytes); });
    EXPECT_EQ(live("multicast"), 0);
    std::optional<MulticastGroup> group = MulticastGroup::create(device(), all.size(), bytes).value();
    failing("cuMulticastAddDevice", [&] { return group->add(*all.front()); });
    EXPECT_EQ(group->added(), 0u);
    for (const Device* each : all) group->add(*each).value();
    std::optional<MulticastObject> object = std::move(*group).complete().value();
    group.reset();
    std::optional<PhysicalMemory> memory = PhysicalMemory::create(*all.front(), bytes).value();
    failing("cuMulticastBindMem", [&] { return object->bind(0, *memory); });
    EXPECT_EQ(object->bound_bytes(*all.front()), 0u);
    object->bind(0, *memory).value();
    failing("cuMulticastUnbind", [&] { return object->unbind(*all.front(), 0); });
    EXPECT_EQ(object->bound_bytes(*all.front()), bytes);
    std::optional<AddressReservation> where = AddressReservation::reserve(device(), bytes, bytes).value();
    failing("cuMemMap", [&] { return where->map(0, *object); });
    Mapping mapping = where->map(0, *object).value();
    mapping.set_access({all.front()}).value();
    object.reset();
    memory.reset();
    where.reset();
    EXPECT_EQ(live("physical"), 2);
    const auto unbound = calls("cuMulticastUnbind");
    // The multicast memory is unbound by then, and nothing is released.
    failing("cuMemUnmap", [&] { return mapping.unmap(); });
    EXPECT_EQ(calls("cuMulticastUnbind"), unbound + 1);
    EXPECT_EQ(live("multicast"), 1);
    EXPECT_EQ(live("physical"), 1);
    EXPECT_TRUE(mapping.unmap().ok());
    EXPECT_EQ(live("physical"), 0);
    EXPECT_EQ(live("reservations"), 0);
}

// keeps V8, V10
TEST_F(FailedSteps, AddressesThatTheDriverDoesNotTakeBackAreReservedStill) {
    const std::size_t granule = memory_granularity(device()).value().minimum_bytes;
    AddressReservation addresses = AddressReservation::reserve(device(), granule).value();
    const PhysicalMemory memory = PhysicalMemory::create(device(), granule).value();
    ASSERT_EQ(plan()("call=cuMemAddressFree:nth=1:code=999:persistent"), 0);
    EXPECT_EQ(addresses.release().code(), Code::driver_error);
    ASSERT_EQ(plan()(nullptr), 0);
    Mapping mapping = addresses.map(0, memory).value();
    mapping.set_access({&device()}).value();
    const auto words = mapping.view<std::int32_t>(0, 16);
    EXPECT_EQ(device().can_access(words).verdict, Verdict::yes);
    EXPECT_TRUE(mapping.unmap().ok());
    EXPECT_TRUE(addresses.release().ok());
}

}  // namespace
}  // namespace conformance
