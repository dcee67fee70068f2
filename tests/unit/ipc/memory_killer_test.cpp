// SPDX-License-Identifier: Apache-2.0
// One of two processes that share memory is killed, with a real SIGKILL, before and after each system call from making
// or receiving the memory to its release, at which the test stops it by tracing. The other one gets a typed error
// within 100 ms (ten times that under sanitizers) and has nothing left: no descriptor, no mapping, no driver object.
// Host memory everywhere; memory of a GPU, by a file descriptor, where the simulated machine has it (ISTHMUS_SIM).
#include "kills.hpp"
#include "process_state.hpp"

#include <isthmus/ipc/channel.hpp>
#include <isthmus/ipc/shared_memory.hpp>
#include <isthmus/runtime.hpp>

#include <driver_abi/sim_control.h>

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace isthmus;

using Numbers = ExportableBuffer<std::int32_t>;
constexpr std::size_t count = 1000;
enum Kind : std::uint32_t { memory, your_turn };
constexpr int cannot_be_traced = 77;

// The survivor's results.
struct Outcome {
    std::atomic<std::int64_t> over_at_ns{0};
    Code code = Code::ok;
    char text[1000] = {};
};

struct Way {
    SeenBy seen_by;
    bool exporting;  // the victim's role
};
constexpr Way ways[] = {{SeenBy::cpus_and_gpus, true},
                        {SeenBy::cpus_and_gpus, false},
                        {SeenBy::gpus_only, true},
                        {SeenBy::gpus_only, false}};

// One process's half, with what it had before.
struct Half {
    Device& device;
    SeenBy seen_by;
    Buffer<std::int32_t> own;  // receives the contents of the shared memory
};

Result<void> expect_all(Half& half, const TypedBuffer<std::int32_t>& buffer, std::int32_t value) {
    if (Result<void> copied = half.device.copy(half.own, buffer); !copied) return copied;
    auto seen = half.own.read_on_host();
    if (!seen) return std::move(seen).error();
    EXPECT_TRUE(std::all_of(seen->begin(), seen->end(), [value](std::int32_t each) { return each == value; }))
        << (*seen)[0] << " instead of " << value;
    return {};
}
// Writes on the host where it can access the memory, else on the device; and sends it.
Result<void> write_all(Half& half, TypedBuffer<std::int32_t>& buffer, std::int32_t value) {
    if (half.seen_by == SeenBy::cpus_and_gpus) {
        auto view = buffer.write_on_host();
        if (!view) return std::move(view).error();
        std::fill(view->begin(), view->end(), value);
    } else if (Result<void> filled = half.device.stream().fill(buffer, value); !filled) {
        return filled;
    }
    return flush_shared(buffer);
}
Result<void> hand_over(Channel& line) {
    if (Result<void> sent = line.send(your_turn, {}); !sent) return sent;
    return line.wait_received();
}
Result<void> take_turn(Channel& line, TypedBuffer<std::int32_t>& buffer) {
    Result<ChannelMessage> message = line.receive();
    if (!message) return std::move(message).error();
    EXPECT_EQ(message->kind, your_turn);
    return invalidate_shared(buffer);
}

Result<void> play_exporting(Half& half, Channel& line) {
    Result<Numbers> made = Numbers::create(half.device, count, {.seen_by = half.seen_by});
    if (!made) return std::move(made).error();
    if (Result<void> done = expect_all(half, *made, 0); !done) return done;
    if (Result<void> done = write_all(half, *made, 7); !done) return done;
    {
        const Result<SharedMemoryDescriptor> descriptor = export_memory(*made);
        if (!descriptor) return descriptor.error();
        if (Result<void> sent = line.send(memory, descriptor->bytes(), descriptor->fds()); !sent) return sent;
    }
    if (Result<void> done = take_turn(line, *made); !done) return done;
    if (Result<void> done = expect_all(half, *made, 8); !done) return done;
    if (Result<void> done = hand_over(line); !done) return done;
    if (Result<void> done = made->release(); !done) return done;
    return hand_over(line);
}

Result<void> play_importing(Half& half, Channel& line) {
    Result<ChannelMessage> message = line.receive();
    if (!message) return std::move(message).error();
    EXPECT_EQ(message->kind, memory);
    Result<SharedMemoryDescriptor> descriptor =
        SharedMemoryDescriptor::received(message->bytes, std::move(message->fds));
    if (!descriptor) return std::move(descriptor).error();
    Result<Buffer<std::int32_t>> theirs = import_memory<std::int32_t>(half.device, std::move(descriptor).value());
    if (!theirs) return std::move(theirs).error();
    if (Result<void> done = expect_all(half, *theirs, 7); !done) return done;
    if (Result<void> done = write_all(half, *theirs, 8); !done) return done;
    if (Result<void> done = hand_over(line); !done) return done;
    if (Result<void> done = take_turn(line, *theirs); !done) return done;
    if (Result<void> done = theirs->release(); !done) return done;
    Result<ChannelMessage> end = line.receive();
    return end ? Result<void>() : std::move(end).error();
}

// Plays both roles once within this process, so that everything that is opened once is open.
void warm_up(Half& half) {
    Numbers made = Numbers::create(half.device, count, {.seen_by = half.seen_by}).value();
    write_all(half, made, 7).value();
    Buffer<std::int32_t> taken = import_memory<std::int32_t>(half.device, export_memory(made).value()).value();
    expect_all(half, taken, 7).value();
    write_all(half, taken, 8).value();
    expect_all(half, made, 8).value();
}

// Shared memory that the simulator counts; 0 without it.
std::int64_t live_in_driver() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return 0;
    const auto live = reinterpret_cast<isthmus_sim_live_fn>(::dlsym(library, "isthmus_sim_live"));
    std::int64_t sum = 0;
    for (const char* what : {"physical", "mappings", "reservations", "registered", "streams"}) sum += live(what);
    ::dlclose(library);
    return sum;
}

// Runs in a process of its own, which exits with the result of its expectations. `outcome`: the survivor's; null: this
// is the victim, which asks to be traced.
[[noreturn]] void be(const Way& way, bool exporting, FileDescriptor end, Outcome* outcome) noexcept {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    {
        Runtime runtime = Runtime::open().value();
        Device& device = runtime.default_device();
        Half half{device, way.seen_by, device.allocate_shared<std::int32_t>(count).value()};
        if (outcome != nullptr) warm_up(half);
        const int files = open_files(), memfds = mapped_memfds();
        const std::int64_t live = live_in_driver();
        {
            ChannelOptions options;
            options.step_timeout = survivors_step;
            Channel line =
                Channel::adopt(std::move(end), exporting ? ChannelSide::offering : ChannelSide::receiving, options)
                    .value();
            if (outcome == nullptr) {
                if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(cannot_be_traced);
                (void)::raise(SIGSTOP);
            }
            const Result<void> result = exporting ? play_exporting(half, line) : play_importing(half, line);
            if (outcome == nullptr) ::_exit(result && !testing::Test::HasFailure() ? 0 : 1);
            outcome->over_at_ns = now_ns();
            outcome->code = result ? Code::ok : result.code();
            if (!result) std::strncpy(outcome->text, result.error().text().c_str(), sizeof outcome->text - 1);
        }
        EXPECT_EQ(open_files(), files - 1) << "but for the end of the line, descriptors are left open";
        EXPECT_EQ(mapped_memfds(), memfds) << "shared memory is left mapped";
        EXPECT_EQ(live_in_driver(), live) << "the driver still holds shared memory";
        EXPECT_TRUE(device.healthy());
    }
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

struct Traced {
    long points = 0;
    std::int64_t killed_at_ns = 0;
    int status = 0;  // how it ended
};
// Runs it from system call to system call, and kills it at the kill's point.
Traced trace(pid_t victim, const KillAt& kill) {
    Traced traced;
    std::minstd_rand random(kill.seed);
    EXPECT_EQ(::waitpid(victim, &traced.status, 0), victim);
    if (!WIFSTOPPED(traced.status)) return traced;
    EXPECT_EQ(::ptrace(PTRACE_SETOPTIONS, victim, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
    for (long signal = 0;;) {
        if (kill.dawdle_us != 0) ::usleep(static_cast<useconds_t>(random() % kill.dawdle_us));
        if (::ptrace(PTRACE_SYSCALL, victim, nullptr, signal) != 0 && errno != ESRCH) ADD_FAILURE() << errno;
        EXPECT_EQ(::waitpid(victim, &traced.status, 0), victim);
        if (!WIFSTOPPED(traced.status)) return traced;
        constexpr int at_system_call = SIGTRAP | 0x80;
        const bool at_call = WSTOPSIG(traced.status) == at_system_call;
        signal = at_call ? 0 : WSTOPSIG(traced.status);
        if (!at_call || ++traced.points != kill.point) continue;
        traced.killed_at_ns = now_ns();
        ::kill(victim, SIGKILL);
        EXPECT_EQ(::waitpid(victim, &traced.status, 0), victim);
        return traced;
    }
}

Seen play(std::size_t number, const KillAt& kill) {
    const Way& way = ways[number];
    const NothingLeft nothing_left;
    const SharedPage<Outcome> outcome;
    ChannelPair pair = create_channel_pair().value();
    const auto fork = [&](bool victim) {
        const pid_t child = ::fork();
        if (child != 0) return child;
        (victim ? pair.ours : pair.childs).close();
        be(way, way.exporting == victim, std::move(victim ? pair.childs : pair.ours),
           victim ? nullptr : outcome.operator->());
    };
    const pid_t victim = fork(true);
    const pid_t survivor = fork(false);
    pair.ours.close();
    pair.childs.close();
    const Traced traced = trace(victim, kill);
    int status = 0;
    EXPECT_EQ(::waitpid(survivor, &status, 0), survivor);
    Seen seen;
    seen.points = traced.points;
    seen.killed = WIFSIGNALED(traced.status) && WTERMSIG(traced.status) == SIGKILL;
    if (WIFEXITED(traced.status) && WEXITSTATUS(traced.status) == cannot_be_traced) return seen;
    EXPECT_TRUE(seen.killed || (WIFEXITED(traced.status) && WEXITSTATUS(traced.status) == 0))
        << "the victim ended by itself: " << traced.status;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the survivor: " << status;
    if (outcome->code != Code::ok) seen.survivor = Error(outcome->code, outcome->text, "");
    if (seen.killed) seen.after_the_kill = std::chrono::nanoseconds(outcome->over_at_ns - traced.killed_at_ns);
    return seen;
}

std::string text(std::size_t number, const KillAt& kill) {
    const Way& way = ways[number];
    return std::string(way.seen_by == SeenBy::gpus_only ? "memory of a GPU" : "memory of the host") + ", the " +
           (way.exporting ? "exporter" : "importer") + " killed at point " + std::to_string(kill.point) +
           ", dawdling up to " + std::to_string(kill.dawdle_us) + " us, seed " + std::to_string(kill.seed);
}

// keeps I6
TEST(MemoryKiller, TheSurvivorKnowsAtOnceAndNothingIsLeft) {
    if (const pid_t child = ::fork(); child == 0) {
        ::_exit(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : cannot_be_traced);
    } else {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        if (WEXITSTATUS(status) != 0) GTEST_SKIP() << "this system lets no process trace its child";
    }
    const bool simulated = std::getenv("ISTHMUS_SIM") != nullptr;
    kill_at_every_point(simulated ? std::size(ways) : 2, 2, play, text);
}

}  // namespace
