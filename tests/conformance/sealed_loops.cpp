// SPDX-License-Identifier: Apache-2.0
#include "sealed_loops.hpp"

#include "counting.hpp"
#include "gate.hpp"
#ifdef CONFORMANCE_HAS_CAMERA
#include "ioctl_camera.hpp"

#include "camera/camera_frames.hpp"
#endif
#include "mailbox_kernels.hpp"
#include "ring_ends.hpp"
#include "scenario.hpp"
#include "traced_calls.hpp"
#include "two_processes.hpp"

#include <isthmus/concurrent/service.hpp>
#include <isthmus/graph.hpp>

#include <linux/futex.h>
#include <linux/videodev2.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace conformance {

using namespace std::chrono_literals;

namespace {

void note(LoopReport& report, Code code, const char* text) {
    report.answer = code;
    std::snprintf(report.error.data(), report.error.size(), "%s", text);
}

void plant(const LoopPlan& plan) {
    static std::mutex mutex;
    static std::uint32_t word = 0;
    void* volatile kept = nullptr;  // so that no pair of calls is left out
    switch (plan.plant) {
        case Plant::nothing: return;
        case Plant::heap:
            kept = std::malloc(24);
            std::free(kept);
            return;
        case Plant::operator_new:
            kept = ::operator new(24);
            ::operator delete(kept);
            return;
        case Plant::aligned_heap:
            kept = std::aligned_alloc(64, 64);
            std::free(kept);
            return;
        case Plant::locks:
            for (long at = 0; at < plan.planted_locks; ++at) const std::lock_guard lock(mutex);
            return;
        case Plant::mapping:
            kept = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            ::munmap(kept, 4096);
            return;
        case Plant::breaks: kept = ::sbrk(0); return;
        case Plant::camera: (void)::ioctl(-1, VIDIOC_STREAMOFF, nullptr); return;
        case Plant::system_call: (void)::syscall(SYS_getpid); return;
        case Plant::futex: (void)::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); return;
    }
}

}  // namespace

struct LoopThread {
    LoopReport& report;
    const LoopPlan& plan;
    const std::function<Result<void>()>& turn;

    static void rest() {
        const timespec pause{0, 30'000};
        (void)::clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
    }
    bool well() {
        const Result<void> answer = turn();
        if (!answer) note(report, answer.code(), std::string(answer.error().text()).c_str());
        return answer.ok();
    }
    void watched_turns() {
        for (int at = 0; at < plan.watched; ++at) {
            const long locked = Counting::so_far().mutexes;
            if (!well()) return;
            if (at == plan.watched / 2) plant(plan);
            report.most_mutexes = std::max(report.most_mutexes, Counting::so_far().mutexes - locked);
            ++report.turns;
            rest();
        }
    }
    void play() {
        for (int at = 0; at < plan.warm; ++at) {
            if (!well()) return;
            rest();
        }
        report.code = find_code();
        if (plan.watcher == Watcher::filter && !filter_this_thread()) {
            return note(report, Code::not_permitted, "the filter could not be set");
        }
        if (plan.watcher == Watcher::tracer) wait_for_tracer(report);
        Counting counting;
        {
            std::optional<CallWatch> watch;
            if (plan.watcher == Watcher::filter) watch.emplace(report, plan.allowed, plan.lists);
            if (plan.watcher == Watcher::tracer) mark_traced(true);
            watched_turns();
            if (plan.watcher == Watcher::tracer) mark_traced(false);
        }
        const Counts counts = counting.end();
        report.allocations = counts.allocations;
        report.frees = counts.frees;
        report.mappings = counts.mappings;
        std::snprintf(report.where.data(), report.where.size(), "%s", counts.where.c_str());
    }
    static void* begin(void* self) {
        auto& thread = *static_cast<LoopThread*>(self);
        try {
            thread.play();
        } catch (const std::exception& thrown) {
            note(thread.report, Code::driver_error, thrown.what());
        }
        // At once, because the C library's own end of a thread blocks the signal of the filter.
        if (thread.plan.watcher == Watcher::filter) (void)::syscall(SYS_exit, 0);
        return nullptr;
    }
};

void LoopPlayer::operator()(const std::function<Result<void>()>& turn) {
    LoopThread thread{report_, plan_, turn};
    pthread_t made{};
    if (pthread_create(&made, nullptr, LoopThread::begin, &thread) != 0) {
        return note(report_, Code::out_of_memory, "no thread could be started");
    }
    pthread_join(made, nullptr);
    report_.phase.store(LoopReport::over, std::memory_order_release);  // pairs with the load in trace()
}

namespace {

constexpr std::size_t items = 64;

Wait soon() {
    return Wait::at_most(20s);
}

// What the simulator takes from the heap on the loop's thread comes from memory that the process has already, and goes
// back to it: otherwise the C library would enter the system for it now and then.
void keep_the_heap() {
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TOP_PAD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

// The simulator starts a thread where more kernels are ready than threads wait: enough of them wait from now on, and
// stay for as long as a loop may take.
void start_threads_of_the_simulator(Device& device) {
    std::vector<Stream> streams;
    std::vector<Buffer<std::int32_t>> buffers;
    Gate gate(device);  // they run at the same time
    for (int at = 0; at < 8; ++at) {
        streams.push_back(device.create_stream().value());
        buffers.push_back(pinned(device, 1, 1));
        streams.back().launch(when_raised, 1, gate.words(), buffers.back(), 1).value();
    }
    gate.raise();
    for (Stream& stream : streams) stream.synchronize(soon()).value();
}

// Opens a runtime and plays the body on the device with this number.
template <class Body>
void on_device(LoopReport& report, const LoopPlan& plan, std::size_t index, WaitPolicy waiting, Body body) {
    keep_the_heap();
    ::setenv("ISTHMUS_SIM_IDLE_THREADS_MS", "60000", 1);
    RuntimeOptions options;
    options.launch_mode = LaunchMode::checked;
    options.wait_policy = waiting;
    Runtime runtime = Runtime::open(options).value();
    if (index >= runtime.device_count()) return;
    Device& device = *runtime.device(index).value();
    report.device = device.is_cpu() ? LoopReport::cpu : LoopReport::gpu;
    if (!device.is_cpu()) start_threads_of_the_simulator(device);
    body(device, LoopPlayer(report, plan));
}

Result<void> wrong() {
    throw std::runtime_error("a turn had another result than the one before it");
}
Result<void> holds(const Buffer<std::int32_t>& buffer, std::int32_t value) {
    const auto view = buffer.read_on_host(soon());
    if (!view) return view.error();
    return (*view)[0] == value && (*view)[items - 1] == value ? Result<void>() : wrong();
}

template <class Frame>
Result<void> fill(Frame& frame, std::int32_t value) {
    auto view = frame.buffer().write_on_host(soon());
    if (!view) return view.error();
    for (std::int32_t& one : *view) one = value;
    return {};
}

// A frame from the CPU, a kernel on it, a view of the answer.
void camera(LoopReport& report, const LoopPlan& plan, std::size_t index, WaitPolicy waiting) {
    on_device(report, plan, index, waiting, [](Device& device, LoopPlayer play) {
        auto ring = FrameRing<std::int32_t>::create(device, items, {.frames = 4}).value();
        Buffer<std::int32_t> out = device.allocate_shared<std::int32_t>(items).value();
        Stream stream = device.create_stream().value();
        std::int32_t number = 0;
        play([&]() -> Result<void> {
            ++number;
            {
                auto filled = ring.begin_frame(soon());
                if (!filled) return filled.error();
                if (auto done = fill(*filled, number); !done) return done;
                filled->publish();
            }
            {
                auto frame = ring.next_frame(soon());
                if (!frame) return frame.error();
                if (auto given = stream.launch(scale_into, items, out, frame->buffer(), 3); !given) {
                    return given.error();
                }
            }
            return holds(out, 3 * number);
        });
    });
}
void camera_that_waits(LoopReport& report, const LoopPlan& plan, std::size_t index) {
    camera(report, plan, index, WaitPolicy::adaptive);
}
void camera_that_spins(LoopReport& report, const LoopPlan& plan, std::size_t index) {
    camera(report, plan, index, WaitPolicy::spin);
}

#ifdef CONFORMANCE_HAS_CAMERA
// Frames of a V4L2 camera where its driver wrote them, a kernel on each, a view of the answer.
void camera_device(LoopReport& report, const LoopPlan& plan, std::size_t index) {
    on_device(report, plan, index, WaitPolicy::adaptive, [&](Device& device, LoopPlayer play) {
        using namespace tools::camera;
        const std::string path = camera_of_this_machine();
        auto opened = VideoDevice::open(path, CameraWish{}, calls_of(path)).value();
        const FrameShape shape = opened->frames().shape;
        auto frames = CameraFrames::create(device, std::move(opened), 4, std::nullopt).value();
        const kernels::Plane plane{shape.width, shape.height, shape.width};
        Buffer<std::uint8_t> gray = device.allocate_shared<std::uint8_t>(kernels::size_of(plane)).value();
        Stream stream = device.create_stream().value();
        frames.start().value();
        unsigned number = 0;
        play([&]() -> Result<void> {
            const auto next = frames.next(-1, 20000);
            if (!next) return next.error();
            const std::uint32_t at = **next;
            if (auto given = stream.launch(kernels::to_gray, Extent2{plane.width, plane.height}, gray, plane,
                                           frames.buffer(at), kernels::luma_layout(shape.format, shape.pitch_bytes));
                !given) {
                return given.error();
            }
            {
                const auto view = gray.read_on_host(soon());
                if (!view) return view.error();
                if (!is_frame(path, (*view)[0], number)) return wrong();
            }
            ++number;
            return frames.give_back(at);
        });
    });
}
#endif

// Work whose end the host waits for: a stream's and an event's.
void synchronized(LoopReport& report, const LoopPlan& plan, std::size_t index) {
    on_device(report, plan, index, WaitPolicy::adaptive, [](Device& device, LoopPlayer play) {
        Buffer<std::int32_t> data = pinned(device, items, 0);
        Stream stream = device.create_stream().value();
        Event event = device.create_event().value();
        play([&]() -> Result<void> {
            if (auto given = stream.launch(add_one, items, data); !given) return given.error();
            if (auto recorded = stream.record(event); !recorded) return recorded.error();
            if (auto waited = event.synchronize(soon()); !waited) return waited;
            if (auto given = stream.launch(add_one, items, data); !given) return given.error();
            return stream.synchronize(soon());
        });
    });
}

// A recorded kernel that gets another buffer and another number in each turn.
void graph(LoopReport& report, const LoopPlan& plan, std::size_t index) {
    on_device(report, plan, index, WaitPolicy::adaptive, [](Device& device, LoopPlayer play) {
        Buffer<std::int32_t> out = pinned(device, items, 0);
        Buffer<std::int32_t> one = pinned(device, items, 1), two = pinned(device, items, 2);
        Stream stream = device.create_stream().value();
        Capture capture = stream.begin_capture().value();
        const auto node = capture.launch(scale_into, items, out, one, 3).value();
        GraphInstance instance = capture.end().value().instantiate().value();
        std::int32_t number = 0;
        play([&]() -> Result<void> {
            ++number;
            Buffer<std::int32_t>& in = number % 2 == 0 ? two : one;
            if (auto set = instance.set_arguments(node, items, out, in, number); !set) return set;
            if (auto given = stream.launch(instance); !given) return given.error();
            return holds(out, number % 2 == 0 ? 2 * number : number);
        });
    });
}

// Questions to a kernel that runs all the time. On the CPU device, where none can, a launch answers each.
void service(LoopReport& report, const LoopPlan& plan, std::size_t index) {
    on_device(report, plan, index, WaitPolicy::adaptive, [&](Device& device, LoopPlayer play) {
        std::uint32_t number = 0;
        const auto right = [&](const Result<Answer>& answer) -> Result<void> {
            if (!answer) return answer.error();
            return answer->number == number && answer->square == std::uint64_t{number} * number ? Result<void>()
                                                                                                : wrong();
        };
        if (device.is_cpu()) {
            auto mailbox = Mailbox<Question, Answer>::create(device).value();
            Stream stream = device.create_stream().value();
            return play([&]() -> Result<void> {
                if (auto sent = mailbox.send(question_of(++number), soon()); !sent) return sent;
                if (auto given = stream.launch(answer_some, 1, mailbox.device_end(), 1u, 0u); !given) {
                    return given.error();
                }
                return right(mailbox.receive(soon()));
            });
        }
        auto made = Service<Question, Answer>::start(device, answer_until_stopped);
        if (made.code() == Code::unsupported) {
            report.unsupported = true;
            return;
        }
        play([&] { return right(made.value().call(question_of(++number), soon())); });
        (void)made.value().stop(soon());
    });
}

// The other end of a ring is now slower and now faster than the loop, so that either waits for the other.
void rest_now_and_then(std::int32_t frame) {
    if (frame % 8 == 0) std::this_thread::sleep_for(1ms);
}

// One end of a ring of frames; another thread, which nothing watches, has the other end.
void ring_consumed(LoopReport& report, const LoopPlan& plan, std::size_t index) {
    on_device(report, plan, index, WaitPolicy::adaptive, [](Device& device, LoopPlayer play) {
        auto ring = FrameRing<std::int32_t>::create(device, items, {.frames = 4}).value();
        std::thread producer([&] {
            for (std::int32_t number = 1;; ++number) {
                auto frame = ring.begin_frame(soon());
                if (!frame || !fill(*frame, number)) return;
                frame->publish();
                rest_now_and_then(number);
            }
        });
        std::int32_t number = 0;
        play([&]() -> Result<void> {
            auto frame = ring.next_frame(soon());
            if (!frame) return frame.error();
            return holds(frame->buffer(), ++number);
        });
        ring.close();
        producer.join();
    });
}
void ring_filled(LoopReport& report, const LoopPlan& plan, std::size_t index) {
    on_device(report, plan, index, WaitPolicy::adaptive, [](Device& device, LoopPlayer play) {
        auto ring = FrameRing<std::int32_t>::create(device, items, {.frames = 4}).value();
        std::thread consumer([&] {
            for (std::int32_t number = 1;; ++number) {
                auto frame = ring.next_frame(soon());
                if (!frame || !frame->buffer().read_on_host()) return;
                rest_now_and_then(number);
            }
        });
        std::int32_t number = 0;
        play([&]() -> Result<void> {
            auto frame = ring.begin_frame(soon());
            if (!frame) return frame.error();
            if (auto done = fill(*frame, ++number); !done) return done;
            frame->publish();
            return {};
        });
        ring.close();
        consumer.join();
    });
}

// Runs the other end of a shared ring in a process of its own, which is forked before a runtime is opened.
template <class Other, class Body>
void beside(LoopReport& report, Other other, Body body) {
    with_another_process(other, body, [&](pid_t) { report.enough.store(true, std::memory_order_relaxed); });
}
void shared_filled(LoopReport& report, const LoopPlan& plan, std::size_t index, WaitPolicy waiting) {
    const auto reads = [&](Device& device, Channel channel) {
        SharedReader reader = taken(device, std::move(channel), WaitPolicy::adaptive);
        for (std::int32_t number = 1;; ++number) {
            auto frame = reader.next_frame(soon());
            if (!frame) return;
            rest_now_and_then(number);
            if (!frame->finish()) return;
        }
    };
    beside(report, reads, [&](FileDescriptor socket) {
        on_device(report, plan, index, WaitPolicy::adaptive, [&](Device& device, LoopPlayer play) {
            SharedRing ring = ring_for(device, items, waiting, 20s);
            give(ring, opened(std::move(socket), ChannelSide::offering));
            std::int32_t number = 0;
            play([&]() -> Result<void> {
                auto frame = ring.begin_frame(soon());
                if (!frame) return frame.error();
                if (auto done = fill(*frame, ++number); !done) return done;
                return frame->publish(soon());
            });
            ring.close();
        });
    });
}
void shared_read(LoopReport& report, const LoopPlan& plan, std::size_t index, WaitPolicy waiting) {
    const auto fills = [&](Device& device, Channel channel) {
        SharedRing ring = ring_for(device, items, WaitPolicy::adaptive, 20s);
        give(ring, std::move(channel));
        for (std::int32_t number = 1; !report.enough.load(std::memory_order_relaxed); ++number) {
            auto frame = ring.begin_frame(Wait::at_most(20s));
            if (!frame || !fill(*frame, number) || !frame->publish()) return;
            rest_now_and_then(number);
        }
    };
    beside(report, fills, [&](FileDescriptor socket) {
        on_device(report, plan, index, WaitPolicy::adaptive, [&](Device& device, LoopPlayer play) {
            SharedReader reader = taken(device, opened(std::move(socket), ChannelSide::offering), waiting);
            std::int32_t number = 0;
            play([&]() -> Result<void> {
                auto frame = reader.next_frame(soon());
                if (!frame) return frame.error();
                if (auto done = holds(frame->buffer(), ++number); !done) return done;
                return frame->finish(soon());
            });
            report.enough.store(true, std::memory_order_relaxed);
        });
    });
}

constexpr SealedLoop loops[] = {
    {"camera, waiting", camera_that_waits, 2, 6},
    {"camera, spinning", camera_that_spins, 2, 6},
#ifdef CONFORMANCE_HAS_CAMERA
    {"camera device", camera_device, 2, 6},
#endif
    {"synchronized work", synchronized, 9, 11},
    {"graph replay", graph, 12, 10},
    {"mailbox service", service, 2, uncounted},
    {"frame ring, consumer", ring_consumed, 0, 0},
    {"frame ring, producer", ring_filled, 0, 0},
    {"shared ring, waiting producer",
     [](LoopReport& r, const LoopPlan& p, std::size_t at) { shared_filled(r, p, at, WaitPolicy::adaptive); }, 0, 0},
    {"shared ring, waiting reader",
     [](LoopReport& r, const LoopPlan& p, std::size_t at) { shared_read(r, p, at, WaitPolicy::adaptive); }, 0, 0},
    {"shared ring, spinning producer",
     [](LoopReport& r, const LoopPlan& p, std::size_t at) { shared_filled(r, p, at, WaitPolicy::spin); }, 0, 0},
    {"shared ring, spinning reader",
     [](LoopReport& r, const LoopPlan& p, std::size_t at) { shared_read(r, p, at, WaitPolicy::spin); }, 0, 0},
};

}  // namespace

std::span<const SealedLoop> sealed_loops() noexcept {
    return loops;
}

}  // namespace conformance
