// SPDX-License-Identifier: Apache-2.0
// The mistakes that the order checker detects, each beside its corrected form, which is not reported.
#include "scenario.hpp"

#include <isthmus/graph.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 256;
constexpr std::size_t half = count / 2;

// A runtime in a checking mode, and its log.
struct Checked {
    explicit Checked(OrderCheck mode) : runtime(open(mode)) {}

    Runtime open(OrderCheck mode) {
        RuntimeOptions options;
        options.order_check = mode;
        options.log = [this](Severity, std::string_view line) {
            const std::lock_guard lock(mutex);
            if (line.find("not ordered") == 0) lines.emplace_back(line);
        };
        return Runtime::open(options).value();
    }
    std::uint64_t violations() const { return runtime.statistics().order_violations; }

    std::mutex mutex;
    std::vector<std::string> lines;
    Runtime runtime;
};

// ThreadSanitizer detects the races themselves, because a mistake that is only reported really races.
#if defined(__SANITIZE_THREAD__)
constexpr bool races_are_watched = true;
#elif defined(__has_feature)
constexpr bool races_are_watched = __has_feature(thread_sanitizer);
#else
constexpr bool races_are_watched = false;
#endif

Result<void> without_report(Result<LaunchReport> launched) {
    if (!launched) return std::move(launched).error();
    return {};
}

// `scenario(device, mended)` makes all but its last use with value(), and returns the last use's Result: a mistake
// unless mended, or on a CPU, whose work ends before the call returns.
template <class Scenario>
void judge_on(Checked& checked, OrderCheck mode, Device& device, Scenario scenario) {
    for (const bool mended : {true, false, false}) {
        if (!mended && mode == OrderCheck::report && races_are_watched) continue;
        SCOPED_TRACE(std::string(device.name()) + (mended ? ", mended" : ", the mistake"));
        const std::uint64_t before = checked.violations();
        const std::size_t said = checked.lines.size();
        const Result<void> last = scenario(device, mended);
        const bool mistake = !mended && !device.is_cpu();
        if (mistake && mode == OrderCheck::refuse) {
            EXPECT_TRUE(refused_as(last, Code::not_ordered));
        } else {
            EXPECT_TRUE(worked(last));
        }
        EXPECT_TRUE(unless_fault((checked.violations() > before) == mistake));
        if (mode == OrderCheck::report) {
            EXPECT_TRUE(unless_fault((checked.lines.size() > said) == mistake));
        } else {
            EXPECT_EQ(checked.lines.size(), said) << "a refusal is told by its error";
        }
        EXPECT_TRUE(worked(device.synchronize()));
    }
}

template <class Scenario>
void on_every_checked_device(Scenario scenario) {
    for (const OrderCheck mode : {OrderCheck::report, OrderCheck::refuse}) {
        Checked checked(mode);
        for (std::size_t at = 0; at < checked.runtime.device_count(); ++at) {
            judge_on(checked, mode, *checked.runtime.device(at).value(), scenario);
        }
    }
}

TEST(Order, AWriteAfterAWriteOfAnotherStream) {  // keeps S7
    on_every_checked_device([](Device& device, bool mended) {
        Stream earlier = device.create_stream().value();
        Stream later = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        (void)earlier.launch(add_one, count, data).value();
        if (mended) later.wait_stream(earlier).value();
        return without_report(later.launch(add_one, count, data));
    });
}

TEST(Order, AReadOfWhatAnotherStreamWrites) {  // keeps S7
    on_every_checked_device([](Device& device, bool mended) {
        Stream earlier = device.create_stream().value();
        Stream later = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> out = device.allocate<std::int32_t>(count).value();
        earlier.fill(data, 7).value();
        if (mended) {
            const Event written = earlier.record().value();
            later.wait(written).value();
        }
        return without_report(later.launch(scale_into, count, out, data, 2));
    });
}

TEST(Order, AWriteOverWhatAnotherStreamReads) {  // keeps S7
    on_every_checked_device([](Device& device, bool mended) {
        Stream earlier = device.create_stream().value();
        Stream later = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> out = device.allocate<std::int32_t>(count).value();
        earlier.fill(data, 7).value();
        later.wait_stream(earlier).value();
        (void)earlier.launch(scale_into, count, out, data, 2).value();
        if (mended) later.wait_stream(earlier).value();
        return later.fill(data, 8);
    });
}

TEST(Order, ReadersNeedNoOrder) {  // keeps S7
    for (const OrderCheck mode : {OrderCheck::report, OrderCheck::refuse}) {
        Checked checked(mode);
        for (std::size_t at = 0; at < checked.runtime.device_count(); ++at) {
            Device& device = *checked.runtime.device(at).value();
            Stream one = device.create_stream().value();
            Stream other = device.create_stream().value();
            Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
            Buffer<std::int32_t> first = device.allocate<std::int32_t>(count).value();
            Buffer<std::int32_t> second = device.allocate<std::int32_t>(count).value();
            one.fill(data, 7).value();
            other.wait_stream(one).value();
            EXPECT_TRUE(worked(one.launch(scale_into, count, first, data, 2)));
            EXPECT_TRUE(worked(other.launch(scale_into, count, second, data, 2)));
        }
        EXPECT_TRUE(unless_fault(checked.violations() == 0));
    }
}

TEST(Order, ACopyThatNobodyWaitsFor) {  // keeps S7
    on_every_checked_device([](Device& device, bool mended) {
        Stream copies = device.create_stream().value();
        Stream kernels = device.create_stream().value();
        Buffer<std::int32_t> from = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> to = device.allocate<std::int32_t>(count).value();
        copies.fill(from, 3).value();
        copies.copy(to, from).value();
        if (mended) kernels.wait_stream(copies).value();
        return without_report(kernels.launch(add_one, count, to));
    });
}

TEST(Order, AnEventThatWasRecordedTooEarly) {  // keeps S7
    on_every_checked_device([](Device& device, bool mended) {
        Stream earlier = device.create_stream().value();
        Stream later = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        earlier.fill(data, 7).value();
        Event event = earlier.record().value();
        (void)earlier.launch(add_one, count, data).value();
        if (mended) earlier.record(event).value();
        later.wait(event).value();
        return without_report(later.launch(add_one, count, data));
    });
}

TEST(Order, PartsOfABufferAreToldApart) {  // keeps S7
    on_every_checked_device([](Device& device, bool mended) {
        Stream left = device.create_stream().value();
        Stream right = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> from = device.allocate<std::int32_t>(count).value();
        left.fill(from, 7).value();
        right.wait_stream(left).value();
        left.copy(data, 0, from, 0, half).value();
        return right.copy(data, mended ? half : half - 1, from, half, half);
    });
}

TEST(Order, ColumnsOfAMatrixAreToldApart) {  // keeps S7
    on_every_checked_device([](Device& device, bool mended) {
        constexpr std::size_t side = 16;
        Stream left = device.create_stream().value();
        Stream right = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(side * side).value();
        Buffer<std::int32_t> from = device.allocate<std::int32_t>(side * side).value();
        left.fill(from, 7).value();
        right.wait_stream(left).value();
        left.copy_region(data, {0, side, 0}, from, {0, side, 0}, {side / 2, side, 1}).value();
        return right.copy_region(data, {mended ? side / 2 : side / 2 - 1, side, 0}, from, {0, side, 0},
                                 {side / 2, side, 1});
    });
}

TEST(Order, PoolMemoryThatAnotherStreamFilled) {  // keeps S7
    on_every_checked_device([](Device& device, bool mended) -> Result<void> {
        Stream maker = device.create_stream().value();
        Stream user = device.create_stream().value();
        if (!device.capabilities().has(Feature::pools)) {
            Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
            maker.fill(data, 7).value();
            if (mended) user.wait_stream(maker).value();
            return user.fill(data, 8);
        }
        Buffer<std::int32_t> untouched = maker.allocate<std::int32_t>(count).value();
        user.fill(untouched, 8).value();  // the runtime orders the allocation itself
        Buffer<std::int32_t> data = maker.allocate<std::int32_t>(count).value();
        maker.fill(data, 7).value();
        if (mended) user.wait_stream(maker).value();
        return user.fill(data, 8);
    });
}

TEST(Order, WhatTheHostHasSeenComplete) {  // keeps S7
    on_every_checked_device([](Device& device, bool mended) {
        Stream earlier = device.create_stream().value();
        Stream between = device.create_stream().value();
        Stream later = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        earlier.fill(data, 7).value();
        between.wait_stream(earlier).value();
        if (mended) between.synchronize().value();  // so the earlier stream has reached what it waited for
        return later.fill(data, 8);
    });
}

// Where managed memory is exclusive to one side, its return to the device lies between the two launches.
TEST(Order, AViewOfManagedMemoryTellsNothingOfTheNextLaunch) {  // keeps S7
    on_every_checked_device([](Device& device, bool mended) -> Result<void> {
        Stream earlier = device.create_stream().value();
        Stream later = device.create_stream().value();
        Result<Buffer<std::int32_t>> managed = device.allocate<std::int32_t>(count, MemoryKind::managed);
        Buffer<std::int32_t> first =
            managed ? std::move(managed).value() : device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        earlier.fill(data, 7).value();
        earlier.synchronize().value();
        const bool usable = first.path() != LaunchPath::refuse && first.read_on_host().ok();
        if (usable) earlier.launch(add_one, count, first).value();
        earlier.launch(add_one, count, data).value();
        if (usable) {
            EXPECT_TRUE(worked(first.read_on_host()));
        }
        if (mended) later.wait_stream(earlier).value();
        return without_report(later.launch(add_one, count, data));
    });
}

TEST(Order, AGraphUsesWhatItsOperationsUse) {  // keeps S7
    NEEDS(graph);
    on_every_checked_device([](Device& device, bool mended) -> Result<void> {
        Stream earlier = device.create_stream().value();
        Stream later = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        if (device.is_cpu()) return {};
        Capture capture = earlier.begin_capture().value();
        (void)earlier.launch(add_one, count, data).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        later.fill(data, 7).value();
        if (mended) earlier.wait_stream(later).value();
        return earlier.launch(instance);
    });
}

TEST(Order, LaunchesOfOneInstanceComeOneAfterTheOther) {  // keeps S7
    NEEDS(graph);
    on_every_checked_device([](Device& device, bool mended) -> Result<void> {
        if (device.is_cpu()) return {};
        Stream first = device.create_stream().value();
        Stream second = device.create_stream().value();
        Stream third = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Capture capture = first.begin_capture().value();
        (void)first.launch(add_one, count, data).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        first.launch(instance).value();
        second.launch(instance).value();  // the driver's own order
        third.wait_stream(mended ? second : first).value();
        return third.fill(data, 7);
    });
}

TEST(Order, PartsThatGraphsCopyAreToldApart) {  // keeps S7
    NEEDS(graph);
    on_every_checked_device([](Device& device, bool mended) -> Result<void> {
        if (device.is_cpu()) return {};
        Stream left = device.create_stream().value();
        Stream right = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> from = device.allocate<std::int32_t>(count).value();
        left.fill(from, 7).value();
        right.wait_stream(left).value();
        const auto copying = [&](Stream& stream, std::size_t at) {
            Capture capture = stream.begin_capture().value();
            stream.copy(data, at, from, at, half).value();
            return capture.end().value().instantiate().value();
        };
        const GraphInstance first = copying(left, 0);
        const GraphInstance second = copying(right, mended ? half : half - 1);
        left.launch(first).value();
        return right.launch(second);
    });
}

TEST(Order, PartsThatAKernelOfAGraphWasGivenSinceAreToldApart) {  // keeps S7, S16
    NEEDS(graph);
    on_every_checked_device([](Device& device, bool mended) -> Result<void> {
        if (device.is_cpu()) return {};
        Stream left = device.create_stream().value();
        Stream right = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> first = device.allocate<std::int32_t>(count).value();
        Capture capture = right.begin_capture().value();
        const auto node = capture.launch(add_one, half, first).value();
        GraphInstance instance = capture.end().value().instantiate().value();
        instance.set_arguments(node, half, data.part(mended ? half : half - 1, half).value()).value();
        (void)left.launch(add_one, half, data.part(0, half).value()).value();
        return right.launch(instance);
    });
}

TEST(Order, BranchesOfACaptureThatWereNotJoinedInBetween) {  // keeps S7
    NEEDS(graph);
    on_every_checked_device([](Device& device, bool mended) -> Result<void> {
        if (device.is_cpu()) return {};
        Stream origin = device.create_stream().value();
        Stream branch = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> out = device.allocate<std::int32_t>(count).value();
        Capture capture = origin.begin_capture().value();
        origin.fill(data, 7).value();
        branch.wait_stream(origin).value();
        (void)origin.launch(add_one, count, data).value();
        if (mended) branch.wait_stream(origin).value();
        Result<void> last = without_report(branch.launch(scale_into, count, out, data, 2));
        origin.wait_stream(branch).value();
        (void)capture.end().value();
        return last;
    });
}

TEST(Order, AScopedStreamThatWasLeftWithoutWaiting) {  // keeps S6, S7
    on_every_checked_device([](Device& device, bool mended) {
        Stream inner = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        device.stream().fill(data, 7).value();
        {
            const ScopedStream scope = ScopedStream::enter(inner).value();
            (void)device.launch(add_one, count, data).value();  // entering the scope waited for the fill
        }
        if (mended) device.current_stream().wait_stream(inner).value();
        return without_report(device.launch(add_one, count, data));
    });
}

TEST(Order, WhatAHostFunctionTellsIsSeenByTheHost) {  // keeps S7, S20
    on_every_checked_device([](Device& device, bool mended) {
        Stream earlier = device.create_stream().value();
        Stream later = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        const auto reached = std::make_shared<std::atomic<bool>>(false);
        if (!mended) earlier.call_on_host([reached]() noexcept { *reached = true; }).value();
        earlier.fill(data, 7).value();
        if (mended) earlier.call_on_host([reached]() noexcept { *reached = true; }).value();
        // Each record is a driver call, inside which a seeded simulator progresses, and by which a lost device is
        // noticed.
        Stream beside = device.create_stream().value();
        const auto until = std::chrono::steady_clock::now() + patience();
        while (!*reached && device.healthy() && std::chrono::steady_clock::now() < until) {
            (void)beside.record();
            std::this_thread::yield();
        }
        Result<void> last = later.fill(data, 8);
        (void)earlier.synchronize();
        return last;
    });
}

TEST(Order, AHostViewAndARightProgramAreNeverReported) {  // keeps S7
    for (const OrderCheck mode : {OrderCheck::report, OrderCheck::refuse}) {
        Checked checked(mode);
        for (std::size_t at = 0; at < checked.runtime.device_count(); ++at) {
            Device& device = *checked.runtime.device(at).value();
            Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(count).value();
            {
                auto view = data.write_on_host().value();
                for (std::int32_t& value : view) value = 0;
            }
            for (int round = 0; round < 5; ++round) {
                Stream passing = device.create_stream().value();  // ends with its work in flight
                EXPECT_TRUE(worked(passing.launch(add_one, count, data)));
                EXPECT_EQ(data.read_on_host().value()[count - 1], round + 1);
            }
            EXPECT_TRUE(worked(checked.runtime.cpu().stream().launch(add_one, count, data)));
        }
        EXPECT_TRUE(unless_fault(checked.violations() == 0));
    }
}

TEST(Order, AReportNamesBothUsesAndIsGivenOnce) {  // keeps S7
    if (races_are_watched) GTEST_SKIP() << "it races";
    Checked checked(OrderCheck::report);
    Device& device = checked.runtime.default_device();
    if (device.is_cpu()) GTEST_SKIP() << "no GPU";
    Stream earlier = device.create_stream().value();
    Stream later = device.create_stream().value();
    Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
    Buffer<std::int32_t> out = device.allocate<std::int32_t>(count).value();
    // Until another stream uses the memory, launches without the check would take the fast path.
    later.fill(data, 1).value();
    for (int round = 0; round < 2; ++round) (void)later.launch(scale_into, count, out, data, 2).value();
    EXPECT_TRUE(worked(later.synchronize()));
    EXPECT_EQ(checked.violations(), 0U);
    (void)earlier.launch(add_one, count, data).value();
    for (int round = 0; round < 3; ++round) {
        const LaunchReport report = later.launch(scale_into, count, out, data, 2).value();
        EXPECT_TRUE(unless_fault(report.unordered_arguments == 1));
    }
    EXPECT_TRUE(unless_fault(checked.violations() == 3));
    ASSERT_EQ(checked.lines.size(), 1U);
    const std::string line = checked.lines.front();
    for (const std::string& part :
         {std::string("kernel 'scale_into', argument 'in', reads on stream ") + std::to_string(later.id()),
          std::string("kernel 'add_one', argument 'data', writes on stream ") + std::to_string(earlier.id()),
          std::string(device.name()), std::string("later.wait_stream(earlier)")}) {
        EXPECT_NE(line.find(part), std::string::npos) << part << " in: " << line;
    }
    EXPECT_TRUE(worked(device.synchronize()));
    const LaunchReport ordered = later.launch(scale_into, count, out, data, 2).value();
    EXPECT_EQ(ordered.unordered_arguments, 0U) << "the host saw all of it";
}

TEST(Order, ARefusalHasChangedNothing) {  // keeps S7
    Checked checked(OrderCheck::refuse);
    Device& device = checked.runtime.default_device();
    if (device.is_cpu()) GTEST_SKIP() << "no GPU";
    Stream earlier = device.create_stream().value();
    Stream later = device.create_stream().value();
    Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(count).value();
    earlier.fill(data, 7).value();
    const long before = driver_calls();
    const auto refused = later.launch(add_one, count, data);
    EXPECT_TRUE(refused_as(refused, Code::not_ordered));
    EXPECT_TRUE(unless_fault(driver_calls() == before)) << "before the driver is called";
    later.wait_stream(earlier).value();
    EXPECT_TRUE(worked(later.launch(add_one, count, data)));
    EXPECT_EQ(data.read_on_host().value()[0], 8);
}

TEST(Order, TwoDevicesNeedAnOrderToo) {  // keeps S7
    for (const OrderCheck mode : {OrderCheck::report, OrderCheck::refuse}) {
        Checked checked(mode);
        if (checked.runtime.device_count() < 3) GTEST_SKIP() << "one GPU, or none";
        Device& here = *checked.runtime.device(0).value();
        Device& there = *checked.runtime.device(1).value();
        SharedUse use;
        use.kind = MemoryKind::pinned;
        const auto scenario = [&](Device&, bool mended) {
            Buffer<std::int32_t> data = here.allocate_shared<std::int32_t>(count, use).value();
            Stream earlier = here.create_stream().value();
            Stream later = there.create_stream().value();
            (void)earlier.launch(add_one, count, data).value();
            if (mended) later.wait_stream(earlier).value();
            Result<void> last = without_report(later.launch(add_one, count, data));
            here.synchronize().value();
            return last;
        };
        judge_on(checked, mode, there, scenario);
    }
}

TEST(Order, CopiesBetweenDevicesOrderThemselves) {  // keeps S7, K22
    Checked checked(OrderCheck::refuse);
    if (checked.runtime.device_count() < 3) GTEST_SKIP() << "one GPU, or none";
    Device& here = *checked.runtime.device(0).value();
    Device& there = *checked.runtime.device(1).value();
    Buffer<std::int32_t> from = here.allocate<std::int32_t>(count).value();
    Buffer<std::int32_t> to = there.allocate<std::int32_t>(count).value();
    for (int round = 0; round < 3; ++round) {
        EXPECT_TRUE(worked(here.stream().fill(from, round)));
        EXPECT_TRUE(worked(there.stream().copy(to, from)));
        EXPECT_TRUE(worked(there.stream().launch(add_one, count, to)));
        EXPECT_TRUE(worked(here.stream().copy(from, to)));
    }
    EXPECT_TRUE(unless_fault(checked.violations() == 0));
}

// Where the buffer is staged, the copy first uploads all of it; it reads its own bytes only.
TEST(Order, ACopyOfAPartToAnotherDeviceLeavesTheOtherPartsFree) {  // keeps S7, K22
    for (const OrderCheck mode : {OrderCheck::report, OrderCheck::refuse}) {
        Checked checked(mode);
        if (checked.runtime.device_count() < 3) GTEST_SKIP() << "one GPU, or none";
        Device& here = *checked.runtime.device(0).value();
        Device& there = *checked.runtime.device(1).value();
        isthmus::SharedUse use;
        use.kind = MemoryKind::device;
        const auto scenario = [&](Device&, bool mended) {
            Buffer<std::int32_t> data = there.allocate_shared<std::int32_t>(count, use).value();
            Buffer<std::int32_t> to = here.allocate<std::int32_t>(count).value();
            for (std::int32_t& one : data.write_on_host().value()) one = 7;
            Stream copier = here.create_stream().value();
            Stream user = there.create_stream().value();
            copier.copy(to, 0, data, 0, half).value();
            isthmus::BufferPart<std::int32_t> part = data.part(mended ? half : half - 1, half).value();
            Result<void> last = without_report(user.launch(add_one, half, part));
            here.synchronize().value();
            if (mended && last) {
                const auto seen = data.read_on_host().value();
                EXPECT_EQ(seen[half - 1], 7);
                EXPECT_EQ(seen[half], 8);
                EXPECT_EQ(seen[count - 1], 8);
            }
            return last;
        };
        judge_on(checked, mode, there, scenario);
    }
}

}  // namespace
}  // namespace conformance
