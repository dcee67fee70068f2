// SPDX-License-Identifier: Apache-2.0
// Many threads at once, on their own and on shared streams and buffers: what a thread sanitizer should see.
#include "scenario.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 64;
constexpr int thread_count = 16;

// What all threads of a device share. Launches on the CPU device open their buffers one at a time, so another thread's
// launch may cause a refusal there.
struct Everybodys {
    explicit Everybodys(Device& owner)
        : device(owner),
          stream(owner.create_stream().value()),
          counter(owner.allocate<std::int32_t>(count).value()),
          constant(owner.allocate_shared<std::int32_t>(count).value()) {
        stream.fill(counter, 0).value();
        auto view = constant.write_on_host().value();
        for (std::int32_t& one : view) one = 7;
    }
    template <class T>
    bool happened(const Result<T>& result) const {
        if (!result && device.is_cpu()) {
            EXPECT_TRUE(refused_as(result, Code::in_use));
            return false;
        }
        EXPECT_TRUE(worked(result));
        return result.ok();
    }

    Device& device;
    Stream stream;
    Buffer<std::int32_t> counter;
    Buffer<std::int32_t> constant;
    std::atomic<std::int32_t> launches{0};
};

// One thread's work: a few operations in its own order, and their expected result.
class Worker {
public:
    Worker(Everybodys& shared, unsigned seed)
        : shared_(shared),
          device_(shared.device),
          random_(seed),
          stream_(device_.create_stream().value()),
          data_(device_.allocate<std::int32_t>(count).value()) {
        stream_.fill(data_, 0).value();
    }

    void step() {
        switch (random_() % (test::has_component("graph") ? 9 : 7)) {
            case 0: return launch_together();
            case 1: return launch_alone();
            case 2: return copy_and_let_go();
            case 3: return order_by_events();
            case 4: return look();
            case 5: return wait();
            case 6: return allocate_in_order();
            case 7: return capture();
            default: return replay_together();
        }
    }
    void finish() {
        Buffer<std::int32_t> result = device_.allocate_shared<std::int32_t>(count).value();
        stream_.launch(scale_into, count, result, data_, 2).value();
        expect_all(result, 2 * expected_);
    }

private:
    void launch_together() {
        if (shared_.happened(shared_.stream.launch(add_one, count, shared_.counter))) ++shared_.launches;
    }
    void launch_alone() {
        stream_.launch(add_one, count, data_).value();
        ++expected_;
    }
    void copy_and_let_go() {
        Buffer<std::int32_t> passing = device_.allocate<std::int32_t>(count).value();
        stream_.copy(passing, data_).value();
        stream_.launch(add_one, count, passing).value();
        stream_.copy(data_, passing).value();  // and the buffer is released after it
        ++expected_;
    }
    void order_by_events() {
        Event event = shared_.stream.record().value();
        stream_.wait(event).value();
        shared_.stream.wait(stream_.record().value()).value();
        EXPECT_TRUE(worked(event.finished()));
    }
    GraphInstance recorded() {
        Capture capture = stream_.begin_capture().value();
        stream_.launch(add_one, count, data_).value();
        stream_.launch(add_one, count, data_).value();
        return capture.end().value().instantiate().value();
    }
    void capture() {
        const GraphInstance graph = recorded();
        stream_.launch(graph).value();
        stream_.launch(graph).value();
        expected_ += 4;
    }
    void replay_together() {
        Capture capture = stream_.begin_capture().value();
        stream_.launch(add_one, count, shared_.counter).value();
        const GraphInstance graph = capture.end().value().instantiate().value();
        if (shared_.happened(shared_.stream.launch(graph))) ++shared_.launches;
    }
    void look() {
        auto view = shared_.constant.read_on_host().value();  // any number may be open at a time
        EXPECT_EQ(view[count - 1], 7);
    }
    void wait() {
        if (random_() % 2 == 0) {
            stream_.synchronize().value();
        } else {
            device_.synchronize().value();
        }
    }
    void allocate_in_order() {
        if (!device_.capabilities().has(Feature::pools)) return;
        Buffer<std::int32_t> pooled = stream_.allocate<std::int32_t>(count).value();
        stream_.copy(pooled, data_).value();
        shared_.stream.wait(stream_.record().value()).value();
        shared_.stream.launch(add_one, count, pooled).value();
        EXPECT_TRUE(worked(pooled.release()));
    }

    Everybodys& shared_;
    Device& device_;
    std::minstd_rand random_;
    Stream stream_;
    Buffer<std::int32_t> data_;
    std::int32_t expected_ = 0;
};

// keeps S2, S19, K12
TEST(Threads, SixteenOnAllDevicesDisturbNobody) {
    std::vector<std::unique_ptr<Everybodys>> shared;
    for (std::size_t at = 0; at < runtime().device_count(); ++at) {
        shared.push_back(std::make_unique<Everybodys>(*runtime().device(at).value()));
    }
    std::vector<std::unique_ptr<Thread>> threads;
    for (int at = 0; at < rounds(thread_count); ++at) {
        Everybodys& part = *shared[static_cast<std::size_t>(at) % shared.size()];
        threads.push_back(std::make_unique<Thread>([&part, at] {
            Worker worker(part, static_cast<unsigned>(at) + 1);
            for (int step = 0; step < 30; ++step) worker.step();
            worker.finish();
        }));
    }
    for (auto& thread : threads) thread->join();
    for (const auto& part : shared) {
        Buffer<std::int32_t> result = part->device.allocate_shared<std::int32_t>(count).value();
        part->stream.launch(scale_into, count, result, part->counter, 1).value();
        expect_all(result, part->launches);
    }
}

// keeps K12, R1: the same few streams and buffers, used and let go by whoever comes
TEST(Threads, HandlesAreCopiedUsedAndDroppedByAll) {
    Device& device = runtime().default_device();
    const auto stream = std::make_shared<Stream>(device.create_stream().value());
    Buffer<std::int32_t> first = device.allocate<std::int32_t>(count).value();
    stream->fill(first, 1).value();
    std::vector<std::unique_ptr<Thread>> threads;
    for (int at = 0; at < rounds(thread_count); ++at) {
        threads.push_back(std::make_unique<Thread>([&device, stream, at] {
            Stream mine = *stream;
            for (int step = 0; step < 10; ++step) {
                Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
                mine.fill(data, at).value();
                Event event = mine.record().value();
                Stream passing = device.create_stream().value();
                passing.wait(event).value();
                passing.launch(add_one, count, data).value();
            }  // stream, event and buffer are destroyed while the work may still run
        }));
    }
    for (auto& thread : threads) thread->join();
    Buffer<std::int32_t> result = device.allocate_shared<std::int32_t>(count).value();
    stream->launch(scale_into, count, result, first, 3).value();
    expect_all(result, 3);
}

// A view opens and closes with one atomic operation where nothing is in flight, and launches claim what they use: the
// later of the two waits, or is refused as in_use.
TEST(Threads, ViewsAndLaunchesOfOneBufferNeverMeet) {  // keeps G8, G9
    on_every_device([](Device& device) {
        for (const MemoryKind kind : {MemoryKind::unknown, MemoryKind::managed}) {
            Result<Buffer<std::int32_t>> made = device.allocate_shared<std::int32_t>(count, {.kind = kind});
            if (!made) continue;  // no managed memory here
            Buffer<std::int32_t>& shared = *made;
            for (std::int32_t& one : shared.write_on_host().value()) one = 0;
            Stream stream = device.create_stream().value();
            std::atomic<std::int32_t> added{0};
            const auto happened = [](const auto& result) {
                EXPECT_TRUE(result.ok() || refused_as(result, Code::in_use));
                return result.ok();
            };
            const auto launch = [&] {
                if (happened(stream.launch(add_one, count, shared))) ++added;
            };
            const auto read = [&] {
                const auto view = shared.read_on_host();
                EXPECT_TRUE(!happened(view) || (*view)[0] == (*view)[count - 1]);
            };
            const auto write = [&] {
                auto view = shared.read_write_on_host();
                if (!happened(view)) return;
                for (std::int32_t& one : *view) ++one;
                ++added;
            };
            std::vector<std::unique_ptr<Thread>> threads;
            for (int at = 0; at < 4; ++at) {
                threads.push_back(std::make_unique<Thread>([&, at] {
                    for (int step = 0; step < rounds(200); ++step) {
                        // Each operation several times in a row, so that views find nothing in flight.
                        const int what = (step / 8 + at) % 4;
                        what == 0 ? launch() : what == 1 ? write() : read();
                    }
                }));
            }
            for (auto& thread : threads) thread->join();
            expect_all(shared, added);
        }
    });
}

}  // namespace
}  // namespace conformance
