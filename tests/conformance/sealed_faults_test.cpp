// SPDX-License-Identifier: Apache-2.0
// Sealed loops that lose their device, their service or the other process of a ring: each wait ends with a typed error
// within its deadline, and nothing is taken from the heap, mapped or refused by the scope on the way. Each loop runs in
// a process of its own, because a lost device stays lost.
#include "counting.hpp"
#include "mailbox_kernels.hpp"
#include "ring_ends.hpp"
#include "scenario.hpp"
#include "simulator_control.hpp"
#include "two_processes.hpp"

#include <isthmus/concurrent/service.hpp>
#include <isthmus/graph.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace conformance {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t items = 16;
constexpr auto patient = 20s;  // the deadline of waits that end before it

// What was seen of a loop, in memory that its process shares with the test.
struct Ending {
    enum Device : int { none, cpu, gpu };
    int device = none;  // none: the machine has no device with this number
    enum Skipped : int { no, for_gpus, no_services, no_plan };
    int skipped = no;
    long good = 0;            // watched turns that worked
    Code answer = Code::ok;   // of the first that did not
    long bad = 0;             // turns that did not work
    Code later = Code::ok;    // of those behind the first, where they differ from it
    bool other_gone = false;  // the process at the other end was seen to be gone
    std::uint64_t said = 0;   // bytes that the log callback got in a watched turn
    std::chrono::nanoseconds longest{};
    std::uint64_t refused = 0;  // steps that the scope refused
    long allocations = 0;
    long frees = 0;
    long mappings = 0;
    std::array<char, 2048> where{};
    std::array<char, 512> thrown{};
};

struct Unmap {
    void operator()(Ending* ending) const noexcept {
        ending->~Ending();
        ::munmap(ending, sizeof *ending);
    }
};
using Shared = std::unique_ptr<Ending, Unmap>;
Shared shared_ending() {
    void* const memory = ::mmap(nullptr, sizeof(Ending), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return Shared(new (memory) Ending);
}

Wait within(std::chrono::nanoseconds deadline) {
    return Wait::at_most(deadline);
}
// Makes the calls of a turn one after the other, whatever they answer; keeps the first error.
class Calls {
public:
    template <class T>
    void made(const Result<T>& result) {
        if (code_ == Code::ok) code_ = result.code();
    }
    Code code() const noexcept { return code_; }

private:
    Code code_ = Code::ok;
};

// Plays turns in a sealed scope: until `most` worked, or `bad` did not. Turn: Code().
template <class Turn>
void watch(Ending& ending, Runtime& runtime, long most, long bad, Turn turn) {
    Seal seal = runtime.seal().value();
    Counting counting;
    while (ending.good < most && ending.bad < bad) {
        const Clock::time_point begin = Clock::now();
        const Code code = turn();
        ending.longest = std::max<std::chrono::nanoseconds>(ending.longest, Clock::now() - begin);
        if (code == Code::ok) {
            ++ending.good;
            continue;
        }
        if (ending.bad++ == 0) ending.answer = code;
        if (code != ending.answer) ending.later = code;
    }
    const Counts counts = counting.end();
    ending.refused = seal.count();
    ending.allocations = counts.allocations;
    ending.frees = counts.frees;
    ending.mappings = counts.mappings;
    std::snprintf(ending.where.data(), ending.where.size(), "%s", counts.where.c_str());
    (void)seal.end();
}

// Opens a runtime and plays the body on the device with this number. Body: void(Runtime&, Device&).
template <class Body>
void on_device(Ending& ending, std::size_t index, Body body) {
    RuntimeOptions options;
    options.launch_mode = LaunchMode::checked;
    options.log = [&ending](Severity, std::string_view line) { ending.said += line.size(); };
    Runtime runtime = Runtime::open(options).value();
    if (index >= runtime.device_count()) return;
    Device& device = *runtime.device(index).value();
    ending.device = device.is_cpu() ? Ending::cpu : Ending::gpu;
    ending.said = 0;
    body(runtime, device);
}

bool planned(const char* plan) {
    const auto set = control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan");
    return set != nullptr && set(plan) == 0;
}

// add_one under a name that is longer than the texts which the library keeps without the heap.
const std::string long_name = std::string(2000, 'n');
KernelInfo with_long_name(KernelInfo info) {
    info.name = long_name.c_str();
    return info;
}
const std::remove_cvref_t<decltype(add_one)> add_one_with_a_long_name{with_long_name(add_one.info())};

// All calls of a loop, on a device that is lost in one of them. `fault`: a plan of the simulator; nullptr: a kernel
// that accesses an address that nothing is mapped at.
void loses_device(Ending& ending, std::size_t index, const char* fault) {
    on_device(ending, index, [&](Runtime& runtime, Device& device) {
        if (device.is_cpu()) {
            ending.skipped = Ending::for_gpus;
            return;
        }
        Buffer<std::int32_t> data = pinned(device, items, 0), out = pinned(device, items, 0);
        Stream stream = device.create_stream().value();
        Event event = device.create_event().value();
        Capture capture = stream.begin_capture().value();
        const auto node = capture.launch(scale_into, items, out, data, 3).value();
        GraphInstance instance = capture.end().value().instantiate().value();
        auto address = static_cast<std::uintptr_t>(data.device_address());
        const LaunchOptions unchecked{LaunchMode::relaxed};
        const auto turn = [&] {
            const View<std::int32_t> raw{reinterpret_cast<std::int32_t*>(address), items};
            Calls calls;
            calls.made(stream.launch(unchecked, add_one, items, raw));
            calls.made(stream.launch(add_one_with_a_long_name, items, data));
            calls.made(stream.record(event));
            calls.made(event.synchronize(within(patient)));
            calls.made(instance.set_arguments(node, items, out, data, 2));
            calls.made(stream.launch(instance));
            calls.made(data.read_on_host(within(patient)));
            calls.made(out.read_on_host(within(patient)));
            calls.made(stream.synchronize(within(patient)));
            return calls.code();
        };
        for (int warm = 0; warm < 200; ++warm) {
            if (turn() != Code::ok) throw std::runtime_error("a turn before the fault did not work");
        }
        if (fault == nullptr) {
            address = 0x10;
        } else if (!planned(fault)) {
            ending.skipped = Ending::no_plan;
            return;
        }
        watch(ending, runtime, 100, 100, turn);
    });
}
void loses_device_by_a_kernel(Ending& ending, std::size_t index) {
    loses_device(ending, index, nullptr);
}
void loses_device_in_a_launch(Ending& ending, std::size_t index) {
    loses_device(ending, index, "call=cuLaunchKernel:n=1:code=719:sticky");
}
void loses_device_in_a_record(Ending& ending, std::size_t index) {
    loses_device(ending, index, "call=cuEventRecord:n=1:code=714:sticky");
}
void loses_device_in_a_query(Ending& ending, std::size_t index) {
    loses_device(ending, index, "call=cuEventQuery:n=1:code=700:sticky");
}
void loses_device_in_a_graph(Ending& ending, std::size_t index) {
    loses_device(ending, index, "call=cuGraphLaunch:n=1:code=700:sticky");
}
void loses_device_by_a_memory_error(Ending& ending, std::size_t index) {
    loses_device(ending, index, "call=cuEventRecord:n=1:code=214:sticky");
}

// The destructor of a native scope finds that the device is lost, and has the log alone to tell it.
void loses_device_in_a_destructor(Ending& ending, std::size_t index) {
    on_device(ending, index, [&](Runtime& runtime, Device& device) {
        if (device.is_cpu()) {
            ending.skipped = Ending::for_gpus;
            return;
        }
        Buffer<std::int32_t> data = pinned(device, items, 0);
        Stream stream = device.create_stream().value();
        const auto turn = [&] {
            Calls calls;
            calls.made(stream.open_native_scope("work", updates(data)));  // ends at once
            calls.made(stream.synchronize(within(patient)));
            return calls.code();
        };
        for (int warm = 0; warm < 200; ++warm) {
            if (turn() != Code::ok) throw std::runtime_error("a turn before the fault did not work");
        }
        if (planned("call=cuEventRecord:n=1:code=714:sticky")) {
            watch(ending, runtime, 100, 100, turn);
        } else {
            ending.skipped = Ending::no_plan;
        }
    });
}

struct Flag {
    Buffer<std::uint32_t> word;
    ConcurrentView<std::uint32_t> view;
    static Flag on(Device& device, std::uint32_t value) {
        auto word = device.allocate<std::uint32_t>(1, MemoryKind::pinned).value();
        word.write_on_host().value()[0] = value;
        auto view = word.concurrent_on_host().value();
        return {std::move(word), std::move(view)};
    }
    void set(std::uint32_t value) { protocol::SystemAtomics{}.store_release(view.data(), value); }
};

// Questions to a service whose kernel stops answering. On the CPU device, where no kernel can stay, none answers the
// mailbox.
void asks_a_service_that_hangs(Ending& ending, std::size_t index) {
    on_device(ending, index, [&](Runtime& runtime, Device& device) {
        constexpr auto deadline = 20ms;
        std::uint32_t number = 0;
        if (device.is_cpu()) {
            auto mailbox = Mailbox<Question, Answer>::create(device).value();
            watch(ending, runtime, 1, 30, [&] {  // more than the mailbox has room for
                Calls calls;
                calls.made(mailbox.send(question_of(++number), within(deadline)));
                calls.made(mailbox.receive(within(deadline)));
                return calls.code();
            });
            return;
        }
        Flag flag = Flag::on(device, 1);
        auto service = Service<Question, Answer>::start(device, answer_when_raised, flag.word);
        if (service.code() == Code::unsupported) {
            ending.skipped = Ending::no_services;
            return;
        }
        const auto turn = [&](std::chrono::nanoseconds most) {
            return service->call(question_of(++number), within(most)).code();
        };
        for (int warm = 0; warm < 50; ++warm) {
            if (turn(patient) != Code::ok) throw std::runtime_error("the service does not answer");
        }
        flag.set(0);
        watch(ending, runtime, 1, 30, [&] {
            const Code asked = turn(deadline);
            return ending.bad < 25 || asked != Code::timed_out ? asked : service->stop(within(deadline)).code();
        });
        flag.set(1);
        if (!service->stop(within(patient))) throw std::runtime_error("the service does not end");
    });
}
// The device is lost while a service owes an answer.
void asks_a_service_of_a_lost_device(Ending& ending, std::size_t index) {
    on_device(ending, index, [&](Runtime& runtime, Device& device) {
        if (device.is_cpu()) {
            ending.skipped = Ending::for_gpus;
            return;
        }
        Flag flag = Flag::on(device, 1);
        auto service = Service<Question, Answer>::start(device, answer_when_raised, flag.word);
        if (service.code() == Code::unsupported) {
            ending.skipped = Ending::no_services;
            return;
        }
        std::uint32_t number = 0;
        const auto turn = [&] { return service->call(question_of(++number), within(patient)).code(); };
        for (int warm = 0; warm < 50; ++warm) {
            if (turn() != Code::ok) throw std::runtime_error("the service does not answer");
        }
        flag.set(0);
        if (planned("call=cuEventQuery:n=1:code=719:sticky")) {
            watch(ending, runtime, 1, 20, turn);
        } else {
            ending.skipped = Ending::no_plan;
        }
        flag.set(1);
    });
}

// A ring between threads, whose other end does nothing.
void fills_a_ring_that_nobody_reads(Ending& ending, std::size_t index) {
    on_device(ending, index, [&](Runtime& runtime, Device& device) {
        auto ring = FrameRing<std::int32_t>::create(device, items, {.frames = 4}).value();
        watch(ending, runtime, 100, 20, [&] {
            auto frame = ring.begin_frame(within(5ms));
            if (!frame) return frame.code();
            frame->publish();
            return Code::ok;
        });
    });
}
void reads_a_ring_that_nobody_fills(Ending& ending, std::size_t index) {
    on_device(ending, index, [&](Runtime& runtime, Device& device) {
        auto ring = FrameRing<std::int32_t>::create(device, items, {.frames = 4}).value();
        watch(ending, runtime, 1, 20, [&] { return ring.next_frame(within(5ms)).code(); });
    });
}

void kill_it(pid_t child) {
    ::kill(child, SIGKILL);
}

// The consumer dies while it has a frame, and the producer comes to need that slot.
void fills_a_ring_whose_reader_dies(Ending& ending, std::size_t index) {
    const auto dies = [](Device& device, Channel channel) {
        SharedReader reader = taken(device, std::move(channel), WaitPolicy::adaptive);
        for (int at = 0; at < 40; ++at) {
            auto frame = reader.next_frame(within(patient));
            if (!frame || !frame->finish()) return;
        }
        const auto kept = reader.next_frame(within(patient));
        ::kill(::getpid(), SIGKILL);
    };
    with_another_process(
        dies,
        [&](FileDescriptor socket) {
            on_device(ending, index, [&](Runtime& runtime, Device& device) {
                SharedRing ring = ring_for(device, items, WaitPolicy::adaptive, 60s);  // longer than a turn may take
                give(ring, opened(std::move(socket), ChannelSide::offering));
                const auto turn = [&]() -> Code {
                    auto frame = ring.begin_frame(within(patient));
                    if (!frame) return frame.code();
                    Calls calls;
                    if (auto view = frame->buffer().write_on_host(within(patient)); view) {
                        for (std::int32_t& one : *view) one = 1;
                    }
                    calls.made(frame->publish(within(patient)));
                    return calls.code();
                };
                for (int warm = 0; warm < 20; ++warm) {
                    if (turn() != Code::ok) throw std::runtime_error("a turn before the death did not work");
                }
                watch(ending, runtime, 200, 10, turn);
                ending.other_gone = ring.readers().front().state == ReaderState::gone;
            });
        },
        kill_it);
}
// The producer dies while it fills a frame.
void reads_a_ring_whose_producer_dies(Ending& ending, std::size_t index) {
    const auto dies = [](Device& device, Channel channel) {
        SharedRing ring = ring_for(device, items, WaitPolicy::adaptive, 60s);
        give(ring, std::move(channel));
        for (int at = 0; at < 40; ++at) {
            auto frame = ring.begin_frame(within(patient));
            if (!frame || !frame->publish()) return;
        }
        const auto begun = ring.begin_frame(within(patient));
        ::kill(::getpid(), SIGKILL);
    };
    with_another_process(
        dies,
        [&](FileDescriptor socket) {
            on_device(ending, index, [&](Runtime& runtime, Device& device) {
                SharedReader reader =
                    taken(device, opened(std::move(socket), ChannelSide::offering), WaitPolicy::adaptive);
                const auto turn = [&]() -> Code {
                    auto frame = reader.next_frame(within(patient));
                    if (!frame) return frame.code();
                    Calls calls;
                    calls.made(frame->buffer().read_on_host(within(patient)));
                    calls.made(frame->finish(within(patient)));
                    return calls.code();
                };
                for (int warm = 0; warm < 20; ++warm) {
                    if (turn() != Code::ok) throw std::runtime_error("a turn before the death did not work");
                }
                watch(ending, runtime, 100, 20, turn);
            });
        },
        kill_it);
}

struct Failing {
    const char* name;
    void (*play)(Ending& ending, std::size_t index);
    Code answer;                // of the turn that fails; ok: none does
    std::chrono::seconds most;  // that a turn takes: its deadline, and time for a busy machine where that is short
};
constexpr Failing lost_devices[] = {
    {"a kernel's fault", loses_device_by_a_kernel, Code::device_lost, patient},
    {"a fault found by a launch", loses_device_in_a_launch, Code::device_lost, patient},
    {"a fault found by a record", loses_device_in_a_record, Code::device_lost, patient},
    {"a fault found by a query", loses_device_in_a_query, Code::device_lost, patient},
    {"a fault found by a graph", loses_device_in_a_graph, Code::device_lost, patient},
    {"an error of the GPU's memory", loses_device_by_a_memory_error, Code::device_lost, patient},
    {"a fault found by a destructor", loses_device_in_a_destructor, Code::device_lost, patient},
    {"a service on a lost device", asks_a_service_of_a_lost_device, Code::device_lost, patient},
};
constexpr Failing hung_services[] = {
    {"a service that hangs", asks_a_service_that_hangs, Code::timed_out, 20s},
    {"a ring that nobody reads", fills_a_ring_that_nobody_reads, Code::timed_out, 20s},
    {"a ring that nobody fills", reads_a_ring_that_nobody_fills, Code::timed_out, 20s},
};
constexpr Failing dead_processes[] = {
    {"a reader that dies", fills_a_ring_whose_reader_dies, Code::ok, patient},
    {"a producer that dies", reads_a_ring_whose_producer_dies, Code::peer_lost, patient},
};

Shared play(const Failing& loop, std::size_t index, int& status) {
    Shared ending = shared_ending();
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(100);
        try {
            loop.play(*ending, index);
        } catch (const std::exception& thrown) {
            std::snprintf(ending->thrown.data(), ending->thrown.size(), "%s", thrown.what());
        }
        ::_exit(0);
    }
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return ending;
}

void judge(const Failing& loop, const Ending& ending) {
    if (loop.answer == Code::ok) {
        EXPECT_EQ(ending.bad, 0) << name(ending.answer);
        EXPECT_TRUE(ending.other_gone) << "nothing failed";
    } else {
        EXPECT_EQ(ending.answer, loop.answer) << name(ending.answer) << " after " << ending.good << " turns";
        EXPECT_EQ(ending.later, Code::ok) << name(ending.later);
    }
    EXPECT_LT(ending.longest, loop.most);
    EXPECT_EQ(ending.allocations, 0) << ending.where.data();
    EXPECT_LE(ending.frees, 0);
    EXPECT_EQ(ending.mappings, 0);
    EXPECT_EQ(ending.refused, 0u);
    if (loop.answer == Code::device_lost) {
        EXPECT_GT(ending.said, 0u) << "the log tells of it";
    }
}

class SealedFaults : public testing::Test {
protected:
    void SetUp() override {
        if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
        if (!work_runs_by_itself()) GTEST_SKIP() << "this simulator does its work inside driver calls";
    }
    // On the first device of each kind. The simulator plays every loop on a GPU, but for services where the machine has
    // none.
    template <std::size_t count>
    static void expect_all_end(const Failing (&loops)[count]) {
        const bool simulated = std::getenv("ISTHMUS_SIM") != nullptr;
        int judged = 0;
        for (const Failing& loop : loops) {
            std::array<bool, 3> seen{};
            bool possible = true;
            for (std::size_t index = 0;; ++index) {
                SCOPED_TRACE(std::string(loop.name) + " on device " + std::to_string(index));
                int status = -1;
                const Shared ending = play(loop, index, status);
                EXPECT_EQ(status, 0);
                EXPECT_STREQ(ending->thrown.data(), "");
                if (status != 0 || ending->device == Ending::none) break;
                if (ending->skipped == Ending::no_services) possible = false;
                if (ending->skipped != Ending::no || seen[static_cast<std::size_t>(ending->device)]) continue;
                judge(loop, *ending);
                seen[static_cast<std::size_t>(ending->device)] = true;
                ++judged;
            }
            if (simulated && possible) {
                EXPECT_TRUE(seen[Ending::gpu]) << loop.name << " was judged on no GPU";
            }
        }
        if (judged == 0) GTEST_SKIP() << "no loop can be played here";
    }
};

// GoogleTest runs suites of this ending first: the children start in a process that has opened no driver.
using SealedFaultsDeathTest = SealedFaults;

TEST_F(SealedFaultsDeathTest, ALostDeviceEndsEachWaitWithoutTheHeap) {  // keeps T2, R2
    expect_all_end(lost_devices);
}
TEST_F(SealedFaultsDeathTest, AServiceThatHangsEndsEachWaitAtItsDeadlineWithoutTheHeap) {  // keeps T2, R5
    expect_all_end(hung_services);
}
TEST_F(SealedFaultsDeathTest, AnotherProcessThatDiesEndsEachWaitWithoutTheHeap) {  // keeps T2, I6
    expect_all_end(dead_processes);
}

// keeps T2: a scope begins while the errors of other threads have all places that errors have without the heap
TEST_F(SealedFaults, AScopeThatBeginsTakesNoPlaceOfAnError) {
    Runtime runtime = Runtime::open({}).value();
    const auto begun = [&] {
        Counting counting;
        { const Seal seal = runtime.seal({.scope = SealScope::thread}).value(); }
        return counting.end();
    };
    const Counts before = begun();
    std::vector<Error> held;
    while (held.size() < 64) held.emplace_back(Code::in_use, "held");
    const Counts counts = begun();
    EXPECT_EQ(counts.allocations, before.allocations) << counts.where;
    EXPECT_LT(counts.allocations, 8) << counts.where;
    for (const Error& error : held) EXPECT_EQ(error.message(), "held");
}

}  // namespace
}  // namespace conformance
