// SPDX-License-Identifier: Apache-2.0
// Several devices in one process: their names, work that runs on all of them at once, and the order between them.
#include "scenario.hpp"

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 300;

std::vector<Device*> devices() {
    std::vector<Device*> all;
    for (std::size_t at = 0; at < runtime().device_count(); ++at) all.push_back(runtime().device(at).value());
    return all;
}
std::vector<Device*> gpus() {
    std::vector<Device*> all = devices();
    all.pop_back();  // the CPU is the last
    return all;
}

std::int32_t common_value(Buffer<std::int32_t>& buffer) {
    auto view = buffer.read_on_host().value();
    for (std::size_t at = 1; at < view.size(); ++at) EXPECT_EQ(view[at], view[0]) << "at " << at;
    return view[0];
}

// Kernels on several devices wait for each other: none ends unless all run at once. The flags are a raw address of
// pinned memory, because one kernel at a time would claim a buffer. A failed launch releases the waiting kernels.
class Meeting {
public:
    explicit Meeting(std::int32_t parties)
        : parties_(parties), flags_(pinned(static_cast<std::size_t>(parties + 1) * meeting_stride)) {
        auto view = flags_.write_on_host().value();
        for (std::int32_t& flag : view) flag = 0;
        data_ = view.data();
    }
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;
    ~Meeting() {
        __atomic_store_n(data_ + parties_ * meeting_stride, 1, __ATOMIC_RELEASE);
        for (Device* device : devices()) (void)device->synchronize();
    }
    View<std::int32_t> flags() const { return {data_, flags_.size()}; }
    std::int32_t parties() const { return parties_; }

    // A kernel waits, so the simulator must run it beside its caller; under planned faults it might never end.
    static bool possible() { return work_runs_by_itself(); }

private:
    static Buffer<std::int32_t> pinned(std::size_t size) {
        SharedUse use;
        use.kind = MemoryKind::pinned;
        return runtime().default_device().allocate_shared<std::int32_t>(size, use).value();
    }
    std::int32_t parties_;
    Buffer<std::int32_t> flags_;
    std::int32_t* data_ = nullptr;
};

// keeps D1, D8
TEST(Devices, AreFoundByTheirUuidAndNoTwoHaveTheSame) {
    on_every_device([](Device& device) {
        const Uuid uuid = device.facts().uuid;
        if (device.is_cpu()) {
            EXPECT_FALSE(uuid);
            EXPECT_TRUE(refused_as(runtime().device(uuid), Code::invalid_argument));
            return;
        }
        if (!unless_fault(static_cast<bool>(uuid))) return;
        EXPECT_EQ(runtime().device(uuid).value(), &device);
        EXPECT_EQ(runtime().device(Uuid::parse(uuid.text()).value()).value(), &device);
        Uuid other = uuid;
        other.bytes[0] ^= 0xff;
        const auto unknown = runtime().device(other);
        ASSERT_TRUE(refused_as(unknown, Code::invalid_argument));
        EXPECT_NE(unknown.error().message().find(other.text()), std::string_view::npos);
    });
}

// keeps D1
TEST(Devices, ANumberThatNoDeviceHasIsRefused) {
    const auto none = runtime().device(runtime().device_count());
    ASSERT_TRUE(refused_as(none, Code::invalid_argument));
    EXPECT_NE(none.error().message().find(std::to_string(runtime().device_count())), std::string_view::npos);
}

// keeps D1, D8, A3
TEST(Devices, EachAnswersByItsOwnAttributesWhateverTheOthersAre) {
    Buffer<std::int32_t> plain = runtime().cpu().allocate<std::int32_t>(count, MemoryKind::host).value();
    runtime().cpu().stream().fill(plain, 0).value();
    std::int32_t expected = 0;
    on_every_device([&](Device& device) {
        const bool reaches = device.is_cpu() || device.capabilities().has(Feature::pageable_access);
        EXPECT_EQ(device.can_access(plain).verdict, reaches ? Verdict::yes : Verdict::no);
        const auto launched = device.stream().launch({.mode = LaunchMode::checked}, add_one, count, plain);
        if (reaches) {
            EXPECT_TRUE(worked(launched));
            ++expected;
        } else {
            EXPECT_TRUE(refused_as(launched, Code::not_accessible));
        }
        EXPECT_EQ(common_value(plain), expected);
    });
}

// keeps D8, K6, A7, A8: one managed buffer per device, each by its own rule
TEST(Devices, ManagedMemoryFollowsTheRuleOfTheDeviceThatMadeIt) {
    std::vector<Buffer<std::int32_t>> buffers;
    for (Device* device : gpus()) {
        if (!device->capabilities().has(Feature::managed)) continue;
        buffers.push_back(shared_numbers(*device, count, MemoryKind::managed));
        const auto value = static_cast<std::int32_t>(buffers.size());
        { (void)buffers.back().write_on_host().value(); }
        device->stream().fill(buffers.back(), value).value();
        device->stream().launch(add_one, count, buffers.back()).value();
    }
    if (buffers.empty()) GTEST_SKIP() << "no managed memory";
    for (std::size_t at = 0; at < buffers.size(); ++at) {
        EXPECT_EQ(common_value(buffers[at]), static_cast<std::int32_t>(at) + 2);
    }
}

// One buffer per device. Each device has run the kernel alone, so that no code has to be loaded and no context opened
// later, which might wait for kernels.
std::vector<Buffer<std::int32_t>> prepared() {
    std::vector<Buffer<std::int32_t>> met;
    for (Device* device : devices()) {
        met.push_back(shared_numbers(*device, count, device->is_cpu() ? MemoryKind::host : MemoryKind::pinned));
        device->stream().fill_bytes(met.back(), 0).value();
        device->stream().launch(add_one, count, met.back()).value();
        const Meeting alone(1);
        device->stream().launch(meet, 1, met.back(), alone.flags(), 0, alone.parties()).value();
        device->synchronize().value();
    }
    return met;
}

// keeps S1, S2: launches return although nothing can end before the last one runs
TEST(Devices, KernelsOfAllDevicesRunAtTheSameTimeFromOneThread) {
    if (gpus().empty()) GTEST_SKIP() << "no GPU";
    if (!Meeting::possible()) GTEST_SKIP() << "work goes on inside driver calls alone";
    std::vector<Buffer<std::int32_t>> met = prepared();
    // Last: its destructor releases the kernels that wait.
    const Meeting meeting(static_cast<std::int32_t>(met.size()));
    // GPUs first; the launch on the CPU device, the last, returns when all have met.
    for (Device* device : devices()) {
        const auto self = static_cast<std::int32_t>(device->index());
        device->stream().launch(meet, 1, met[device->index()], meeting.flags(), self, meeting.parties()).value();
    }
    EXPECT_TRUE(runtime().cpu().stream().finished().value());  // S1: work of the CPU device is synchronous
    for (Buffer<std::int32_t>& buffer : met) EXPECT_EQ(buffer.read_on_host().value()[0], 1) << "it was let go alone";
}

// keeps S2, S14
TEST(Devices, GraphsOfAllDevicesRunAtTheSameTime) {
    NEEDS(graph);
    if (gpus().empty()) GTEST_SKIP() << "no GPU";
    if (!Meeting::possible()) GTEST_SKIP() << "work goes on inside driver calls alone";
    std::vector<Buffer<std::int32_t>> met = prepared();
    std::vector<GraphInstance> graphs;
    const Meeting meeting(static_cast<std::int32_t>(met.size()));
    for (Device* device : devices()) {
        const auto self = static_cast<std::int32_t>(device->index());
        Stream stream = device->create_stream().value();
        Capture capture = stream.begin_capture().value();
        stream.launch(meet, 1, met[device->index()], meeting.flags(), self, meeting.parties()).value();
        stream.launch(add_one, 1, met[device->index()]).value();
        graphs.push_back(capture.end().value().instantiate().value());
    }
    for (Device* device : devices()) device->stream().launch(graphs[device->index()]).value();
    for (Buffer<std::int32_t>& buffer : met) EXPECT_EQ(buffer.read_on_host().value()[0], 2);
}

// keeps S2, K12
TEST(Devices, AThreadForEachWorksWithoutTheOthers) {
    std::vector<std::unique_ptr<Thread>> threads;
    for (Device* device : devices()) {
        threads.push_back(std::make_unique<Thread>([device] {
            for (int round = 0; round < rounds(10); ++round) {
                Stream stream = device->create_stream().value();
                Buffer<std::int32_t> data = device->allocate<std::int32_t>(count).value();
                Buffer<std::int32_t> out = device->allocate_shared<std::int32_t>(count).value();
                stream.fill(data, round).value();
                stream.launch(add_one, count, data).value();
                Stream other = device->create_stream().value();
                other.wait_stream(stream).value();
                other.launch(scale_into, count, out, data, 2).value();
                EXPECT_EQ(common_value(out), 2 * (round + 1));
            }
        }));
    }
    for (auto& thread : threads) thread->join();
}

// keeps S10, K22: every hop waits for the one before, and the host for the last alone
TEST(Devices, CopiesGoRoundInTheOrderOfEvents) {
    const std::vector<Device*> all = devices();
    std::vector<Buffer<std::int32_t>> buffers;
    std::vector<Stream> streams;
    for (Device* device : all) {
        streams.push_back(device->create_stream().value());
        buffers.push_back(device->allocate<std::int32_t>(count).value());
    }
    streams[0].fill(buffers[0], 0).value();
    std::int32_t expected = 0;
    for (int round = 0; round < 3; ++round) {
        for (std::size_t at = 0; at < all.size(); ++at) {
            const std::size_t next = (at + 1) % all.size();
            streams[at].launch(add_one, count, buffers[at]).value();
            ++expected;
            Event done = streams[at].record().value();
            streams[next].wait(done).value();
            if (next != at) streams[next].copy(buffers[next], buffers[at]).value();
        }
    }
    Buffer<std::int32_t> result = runtime().cpu().allocate<std::int32_t>(count).value();
    streams[0].copy(result, buffers[0]).value();
    EXPECT_EQ(common_value(result), expected);
}

// keeps S10, S11
TEST(Devices, EventsAreWaitedForAcrossDevicesAndRecordedOnTheirOwn) {
    const std::vector<Device*> all = devices();
    if (all.size() < 2) GTEST_SKIP() << "one device only";
    for (Device* recording : all) {
        for (Device* waiting : all) {
            if (recording == waiting) continue;
            Event event = recording->stream().record().value();
            EXPECT_TRUE(worked(waiting->stream().wait(event)));
            EXPECT_TRUE(refused_as(waiting->stream().record(event), Code::wrong_device));
            event.synchronize().value();
            EXPECT_TRUE(event.finished().value());
        }
    }
}

// keeps A5, S10
TEST(Devices, AnOpenedPoolIsUsedByAnotherDeviceBehindAnEvent) {
    const std::vector<Device*> all = gpus();
    if (all.size() < 2) GTEST_SKIP() << "one GPU, or none";
    Device& here = *all[0];
    Device& there = *all[1];
    if (!there.capabilities().has(Feature::pools)) GTEST_SKIP() << "no pools";
    MemoryPool pool = there.create_pool().value();
    Stream stream = there.create_stream().value();
    Buffer<std::int32_t> data = stream.allocate<std::int32_t>(count, pool.allocator()).value();
    stream.fill(data, 4).value();
    EXPECT_EQ(here.can_access(data).verdict, Verdict::no);
    const auto allowed = pool.allow(here);
    if (!allowed) {
        EXPECT_TRUE(refused_as(allowed, Code::unsupported)) << "no link between them";
        EXPECT_TRUE(refused_as(here.stream().launch(add_one, count, data), Code::not_accessible));
        return;
    }
    EXPECT_EQ(here.can_access(data).verdict, Verdict::yes);
    Stream user = here.create_stream().value();
    user.wait(stream.record().value()).value();
    user.launch(add_one, count, data).value();
    stream.wait(user.record().value()).value();
    Buffer<std::int32_t> out = there.allocate_shared<std::int32_t>(count).value();
    stream.launch(scale_into, count, out, data, 10).value();
    EXPECT_EQ(common_value(out), 50);
}

// keeps R10: exactly what opening a runtime asks of the driver. A context that the process has already is entered once,
// to see whether its device still answers; none is made.
TEST(OpeningCalls, AskTheDriverForWhatDecidesAndForNothingElse) {
    (void)runtime();  // opens the driver that counts
    if (driver_calls() < 0 || gpus().empty()) GTEST_SKIP() << "nobody counts driver calls";
    const auto gpu_count = static_cast<long>(gpus().size());
    const std::initializer_list<const char*> functions = {"cuDeviceGetAttribute",
                                                          "cuDeviceGetName",
                                                          "cuDeviceTotalMem_v2",
                                                          "cuDeviceGet",
                                                          "cuInit",
                                                          "cuDevicePrimaryCtxRetain",
                                                          "cuCtxPushCurrent_v2",
                                                          "cuCtxPopCurrent_v2",
                                                          "cuDevicePrimaryCtxRelease_v2",
                                                          "cuDriverGetVersion"};
    const auto counted = [&] {
        std::map<std::string_view, long> counts;
        for (const char* function : functions) counts[function] = driver_calls(function);
        return counts;
    };
    std::map<std::string_view, long> before = counted();
    Runtime another = Runtime::open().value();
    std::map<std::string_view, long> made = counted();
    for (auto& [name, calls] : made) calls -= before[name];
    const auto expect = [&](const char* function, long calls) {
        EXPECT_TRUE(unless_fault(made[function] == calls)) << function << ": " << made[function] << ", not " << calls;
    };
    expect("cuDeviceGetAttribute", 37 * gpu_count);
    expect("cuDeviceGetName", gpu_count);
    expect("cuDeviceTotalMem_v2", gpu_count);
    expect("cuDeviceGet", gpu_count);
    expect("cuInit", 1);
    expect("cuDriverGetVersion", 1);
    EXPECT_TRUE(unless_fault(made["cuDevicePrimaryCtxRetain"] <= gpu_count)) << made["cuDevicePrimaryCtxRetain"];
    expect("cuCtxPushCurrent_v2", made["cuDevicePrimaryCtxRetain"]);
    expect("cuCtxPopCurrent_v2", made["cuDevicePrimaryCtxRetain"]);
    expect("cuDevicePrimaryCtxRelease_v2", made["cuDevicePrimaryCtxRetain"]);
    // The remaining attributes are read on first use, once.
    Device& device = another.default_device();
    const long asked = driver_calls("cuDeviceGetAttribute");
    EXPECT_TRUE(unless_fault(device.facts().attributes.size() > 100));
    EXPECT_TRUE(unless_fault(driver_calls("cuDeviceGetAttribute") > asked + 100));
    const long asked_all = driver_calls("cuDeviceGetAttribute");
    EXPECT_EQ(device.facts().attribute(16), another.default_device().facts().attribute(16));
    EXPECT_TRUE(unless_fault(device.facts().attribute(16).has_value())) << "multiprocessors, which decide nothing";
    EXPECT_TRUE(unless_fault(driver_calls("cuDeviceGetAttribute") == asked_all));
}

}  // namespace
}  // namespace conformance
