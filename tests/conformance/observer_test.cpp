// SPDX-License-Identifier: Apache-2.0
// What an observer is told, call by call, on the CPU device and every simulated machine: names, nesting, bytes, and
// refusals. A program of its own: counting.cpp replaces malloc() in it.
#include "counting.hpp"
#include "ring_reader.hpp"
#include "scenario.hpp"

#include <isthmus/concurrent/frame_ring.hpp>
#include <isthmus/ipc/shared_frame_ring.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t items = 1 << 10;

struct Told {
    char phase;  // B, E or M
    std::uint32_t what;
    std::string name;
    ObservedFacts facts;  // its texts are no longer valid
    std::string error, reason;
    std::thread::id thread;

    bool is(Span span) const { return phase != 'M' && what == static_cast<std::uint32_t>(span); }
    bool is(Mark mark) const { return phase == 'M' && what == static_cast<std::uint32_t>(mark); }
};

// Keeps what it is told. Once one is there, it may run `inside` in every callback.
class Witness {
public:
    const ObserverCallbacks* callbacks() {
        calls_.context = this;
        calls_.begin = [](void* self, Span span, std::string_view name, const ObservedFacts& facts) noexcept {
            static_cast<Witness*>(self)->add('B', static_cast<std::uint32_t>(span), name, facts);
        };
        calls_.end = [](void* self, Span span, std::string_view name, const ObservedFacts& facts) noexcept {
            static_cast<Witness*>(self)->add('E', static_cast<std::uint32_t>(span), name, facts);
        };
        calls_.mark = [](void* self, Mark mark, std::string_view name, const ObservedFacts& facts) noexcept {
            static_cast<Witness*>(self)->add('M', static_cast<std::uint32_t>(mark), name, facts);
        };
        return &calls_;
    }
    std::vector<Told> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(told_, {});
    }
    std::function<void()> inside;

private:
    void add(char phase, std::uint32_t what, std::string_view name, const ObservedFacts& facts) {
        if (inside) inside();
        const std::lock_guard lock(mutex_);
        told_.push_back({phase, what, std::string(name), facts, std::string(facts.error), std::string(facts.reason),
                         std::this_thread::get_id()});
    }
    ObserverCallbacks calls_;
    std::mutex mutex_;
    std::vector<Told> told_;
};

Runtime observed(const ObserverCallbacks* callbacks, RuntimeOptions options = {}) {
    options.launch_mode = LaunchMode::checked;
    options.observer = callbacks;
    return Runtime::open(options).value();
}

std::string text(const Told& one) {
    std::string line = one.phase == 'B' ? "begin " : one.phase == 'E' ? "end " : "mark ";
    line += one.phase == 'M' ? name(static_cast<Mark>(one.what)) : name(static_cast<Span>(one.what));
    line += " " + one.name;
    if (one.facts.code != Code::ok) line += " " + std::string(name(one.facts.code));
    return line;
}
std::vector<std::string> lines(const std::vector<Told>& told) {
    std::vector<std::string> all;
    for (const Told& one : told) all.push_back(text(one));
    return all;
}

// On each thread, begins and ends nest; views and native scopes are opened as often as they are closed.
void expect_nested(const std::vector<Told>& told) {
    std::map<std::thread::id, std::vector<std::string>> open;
    std::map<std::uint32_t, int> scopes;
    for (const Told& one : told) {
        if (one.phase == 'M') continue;
        if (one.is(Span::host_view) || one.is(Span::native_scope)) {
            scopes[one.what] += one.phase == 'B' ? 1 : -1;
            continue;
        }
        std::vector<std::string>& of_thread = open[one.thread];
        const std::string which = std::string(name(static_cast<Span>(one.what))) + " " + one.name;
        if (one.phase == 'B') {
            of_thread.push_back(which);
            continue;
        }
        ASSERT_FALSE(of_thread.empty()) << which;
        EXPECT_EQ(of_thread.back(), which);
        of_thread.pop_back();
    }
    for (const auto& [thread, left] : open) EXPECT_TRUE(left.empty());
    for (const auto& [scope, left] : scopes) EXPECT_EQ(left, 0);
}

std::size_t count_of(const std::vector<Told>& told, Mark mark) {
    return static_cast<std::size_t>(
        std::count_if(told.begin(), told.end(), [&](const Told& one) { return one.is(mark); }));
}
std::uint64_t bytes_of(const std::vector<Told>& told, Mark mark) {
    std::uint64_t sum = 0;
    for (const Told& one : told) sum += one.is(mark) ? one.facts.bytes : 0;
    return sum;
}

std::map<std::string, std::uint64_t> values_of(const Runtime& runtime) {
    std::map<std::string, std::uint64_t> values;
    for (const Counter& counter : runtime.counters()) values[std::string(counter.name)] += counter.value;
    return values;
}

// The README's program. With `copied`, in memory of the device that has a host's side.
void brighten_a_picture(Device& device, bool copied = false) {
    Stream stream = device.create_stream().value();
    SharedUse use{.host = Use::writes_often, .device = Use::reads_and_writes};
    if (copied) use.kind = MemoryKind::device;
    auto picture = device.allocate_shared<std::int32_t>(items, use).value();
    set_all(picture, 7);
    ASSERT_TRUE(worked(stream.launch(add_one, items, picture)));
    expect_all(picture, 8);
}

std::vector<std::string> expected_of(const std::string& machine) {
    const auto view = [](const char* how) { return std::string("host_view a view for ") + how; };
    const std::string writes = "begin " + view("writing"), written = "end " + view("writing");
    const std::string reads = "begin " + view("reading"), read = "end " + view("reading");
    if (machine == "orin") {
        return {"begin allocate pinned",
                "end allocate pinned",
                "mark buffer shared",
                writes,
                "mark argument write",
                written,
                "begin launch add_one",
                "mark argument read_write",
                "end launch add_one",
                reads,
                "mark argument read",
                "mark fence an event behind the stream's work",
                "begin wait add_one",
                "end wait add_one",
                read,
                "mark buffer_end pinned",
                "begin release pinned",
                "end release pinned"};
    }
    if (machine == "h200") {
        return {"begin allocate device",
                "end allocate device",
                "begin allocate pinned",
                "end allocate pinned",
                "mark buffer shared",
                writes,
                "mark argument write",
                written,
                "begin launch add_one",
                "mark argument read_write",
                "mark upload add_one",
                "end launch add_one",
                reads,
                "mark argument read",
                "mark fence an event behind the stream's work",
                "begin wait add_one",
                "end wait add_one",
                "mark download the copy to the host's side",
                "mark fence an event behind the stream's work",
                "begin wait the copy to the host's side",
                "end wait the copy to the host's side",
                read,
                "mark buffer_end device",
                "begin release device",
                "end release device",
                "begin release pinned",
                "end release pinned"};
    }
    return {"begin allocate host",
            "end allocate host",
            "mark buffer shared",
            writes,
            "mark argument write",
            written,
            "begin launch add_one",
            "mark argument read_write",
            writes,
            "mark argument read_write",
            written,
            "end launch add_one",
            reads,
            "mark argument read",
            read,
            "mark buffer_end host",
            "begin release host",
            "end release host"};
}

// keeps O1
TEST(Observers, AreToldTheWholeOfASmallProgram) {
    Witness witness;
    Runtime runtime = observed(witness.callbacks());
    const auto play = [&](Device& device, const std::string& machine) {
        SCOPED_TRACE(machine);
        brighten_a_picture(device, machine == "h200");
        (void)witness.take();  // without what the first use of a device does
        brighten_a_picture(device, machine == "h200");
        const std::vector<Told> told = witness.take();
        expect_nested(told);
        EXPECT_EQ(lines(told), expected_of(machine));
        for (const Told& one : told) EXPECT_EQ(one.facts.device, device.index());
    };
    play(runtime.cpu(), "cpu");
    const char* const machine = std::getenv("ISTHMUS_SIM");
    for (const char* known : {"orin", "h200"}) {
        if (machine != nullptr && std::string_view(machine) == known) play(runtime.default_device(), known);
    }
}

// keeps O1
TEST(Observers, AreToldOfEachByteThatIsCopiedAndWhy) {
    Witness witness;
    Runtime runtime = observed(witness.callbacks());
    Device& device = runtime.default_device();
    Stream stream = device.create_stream().value();
    auto copied = shared_numbers(device, items, MemoryKind::device);
    const std::string why(copied.explain());
    for (int round = 0; round < 3; ++round) {
        set_all(copied, round);
        ASSERT_TRUE(worked(stream.launch(add_one, items, copied)));
        expect_all(copied, round + 1);
    }
    const std::uint64_t bytes = copied.staged_bytes();
    const std::vector<Told> told = witness.take();
    EXPECT_EQ(bytes_of(told, Mark::upload) + bytes_of(told, Mark::download), bytes);
    for (const Told& one : told) {
        if (!one.is(Mark::upload) && !one.is(Mark::download)) continue;
        EXPECT_EQ(one.facts.bytes, items * sizeof(std::int32_t));
        EXPECT_FALSE(one.reason.empty());
        EXPECT_NE(why.find(one.reason), std::string::npos) << why << " / " << one.reason;
        EXPECT_NE(one.facts.stream, 0u);
        EXPECT_NE(one.facts.position, 0u);
    }
    if (!device.is_cpu()) {
        EXPECT_EQ(count_of(told, Mark::upload), count_of(told, Mark::download));
    }
}

// keeps O1
TEST(Observers, AreToldOfEachRefusalOnce) {
    Witness witness;
    Runtime runtime = observed(witness.callbacks());
    for (std::size_t at = 0; at < runtime.device_count(); ++at) {
        Device& device = *runtime.device(at).value();
        Stream stream = device.create_stream().value();
        Buffer<std::int32_t> data = pinned(device, items, 1);
        const auto open = data.read_on_host().value();
        (void)witness.take();
        std::vector<std::string> errors;
        const auto refused = [&](const auto& result) {
            ASSERT_TRUE(refused_as(result, Code::in_use));
            errors.emplace_back(result.error().id());
        };
        refused(stream.launch(add_one, items, data));
        refused(data.write_on_host());
        refused(stream.fill(data, 3));
        refused(stream.enqueue_native(
            "another", [](void*, std::int32_t*) {}, updates(data)));
        const std::vector<Told> told = witness.take();
        expect_nested(told);
        std::vector<std::string> marked;
        for (const Told& one : told) {
            if (!one.is(Mark::refused)) continue;
            EXPECT_EQ(one.facts.code, Code::in_use);
            marked.push_back(one.error);
        }
        EXPECT_EQ(marked, errors) << device.name();
    }
}

// keeps O1
TEST(Observers, AreToldWhatTheBudgetRefuses) {
    Witness witness;
    RuntimeOptions options;
    options.host_reserve_bytes = std::uint64_t{1} << 60;
    Runtime runtime = observed(witness.callbacks(), options);
    Device& device = runtime.default_device();
    if (device.is_cpu() || device.capabilities().memory != MemoryModel::shared_dram) {
        GTEST_SKIP() << "the host's memory is not the device's";
    }
    EXPECT_TRUE(refused_as(device.allocate<std::int32_t>(items), Code::out_of_memory));
    const std::vector<Told> told = witness.take();
    expect_nested(told);
    ASSERT_GE(count_of(told, Mark::budget_refused), 1u);
    EXPECT_EQ(count_of(told, Mark::refused), 1u);
    for (const Told& one : told) {
        if (!one.is(Mark::budget_refused)) continue;
        EXPECT_GE(one.facts.bytes, items * sizeof(std::int32_t));
        EXPECT_FALSE(one.reason.empty());
    }
}

// Copies, fills, graphs, native work and frames: spans that nest, and name what they are.
// keeps O1
TEST(Observers, AreToldOfEverySortOfOperation) {
    Witness witness;
    Runtime runtime = observed(witness.callbacks());
    for (std::size_t at = 0; at < runtime.device_count(); ++at) {
        Device& device = *runtime.device(at).value();
        Stream stream = device.create_stream().value();
        {
            Buffer<std::int32_t> one = pinned(device, items, 1), other = pinned(device, items, 2);
            (void)witness.take();
            ASSERT_TRUE(worked(stream.copy(one, other)));
            ASSERT_TRUE(worked(stream.fill(other, 3)));
            ASSERT_TRUE(worked(stream.prefetch(one)));
            EXPECT_EQ(read_back(one).value().front(), 2);
            ASSERT_TRUE(worked(stream.enqueue_native(
                "foreign", [](void*, const std::int32_t*) {}, reads(one))));
            {
                auto scope = stream.open_native_scope("scope", reads(one)).value();
                ASSERT_TRUE(worked(scope.close()));
            }
            std::vector<std::int32_t> memory(items, 5);
            const Settled settled{device};
            auto adopted = device.adopt<std::int32_t>(memory.data(), memory.size());
            ASSERT_TRUE(worked(adopted));
            Capture capture = stream.begin_capture().value();
            ASSERT_TRUE(worked(capture.launch(add_one, items, one)));
            GraphInstance graph = capture.end().value().instantiate().value();
            ASSERT_TRUE(worked(stream.launch(graph)));
            FrameRing<std::int32_t> ring = FrameRing<std::int32_t>::create(device, items, {}).value();
            ring.begin_frame().value().publish();
            ASSERT_TRUE(worked(ring.next_frame()));
            ASSERT_TRUE(worked(stream.synchronize()));
        }
        const std::vector<Told> told = witness.take();
        expect_nested(told);
        for (const Span span : {Span::copy, Span::fill, Span::read_back, Span::native_work, Span::native_scope,
                                Span::adopt, Span::launch, Span::graph_launch, Span::ring_begin, Span::ring_publish,
                                Span::ring_next, Span::ring_finish, Span::release, Span::hint}) {
            const auto is_it = [&](const Told& one) { return one.is(span); };
            EXPECT_EQ(std::count_if(told.begin(), told.end(), is_it) % 2, 0) << name(span);
            EXPECT_TRUE(std::any_of(told.begin(), told.end(), is_it)) << name(span) << " on " << device.name();
        }
        EXPECT_EQ(count_of(told, Mark::refused), 0u);
    }
}

// A view that closes on another thread is closed there, and one that never opened is not closed at all.
// keeps O1
TEST(Observers, AreToldWhereAViewCloses) {
    Witness witness;
    Runtime runtime = observed(witness.callbacks());
    Buffer<std::int32_t> data = pinned(runtime.default_device(), items, 1);
    (void)witness.take();
    auto view = std::make_optional(data.read_on_host().value());
    EXPECT_TRUE(refused_as(data.write_on_host(), Code::in_use));
    std::thread([&] { view.reset(); }).join();
    const std::vector<Told> told = witness.take();
    ASSERT_EQ(lines(told),
              (std::vector<std::string>{
                  "begin host_view a view for reading", "mark argument read", "begin host_view a view for writing",
                  "mark argument write", "mark refused a view for writing in_use",
                  "end host_view a view for writing in_use", "end host_view a view for reading"}));
    EXPECT_NE(told.back().thread, told.front().thread);
    EXPECT_EQ(told.back().facts.address, told.front().facts.address);
}

// The arguments of the one span of this sort: "read_write 4096 checked".
std::vector<std::string> uses_of(const std::vector<Told>& told, Span span, const BufferBase& of) {
    const std::uint64_t begin = of.device_address();
    std::vector<std::string> uses;
    bool inside = false, opens = false;
    for (const Told& one : told) {
        if (one.is(span)) inside = one.phase == 'B';
        if (inside && one.is(Span::host_view)) opens = true;  // the CPU device opens the arguments as views
        if (!inside) opens = false;
        if (!inside || opens || !one.is(Mark::argument)) continue;
        EXPECT_EQ(one.facts.kind, of.kind());
        uses.push_back(one.name + " +" + std::to_string(one.facts.address - begin) + " " +
                       std::to_string(one.facts.bytes) + " " + one.reason);
    }
    return uses;
}

// What was asked for, and which memory each call uses: what a replay cannot do without.
// keeps O4
TEST(Observers, AreToldWhatAReplayNeeds) {
    using Lines = std::vector<std::string>;
    Witness witness;
    Runtime runtime = observed(witness.callbacks());
    for (std::size_t at = 0; at < runtime.device_count(); ++at) {
        Device& device = *runtime.device(at).value();
        SCOPED_TRACE(device.name());
        Stream stream = device.create_stream().value();
        (void)witness.take();
        SharedUse use{.host = Use::writes_often, .device = Use::reads_once, .kind = MemoryKind::pinned};
        use.device_passes = 3;
        use.alignment_bytes = 4096;
        {
            auto data = device.allocate_shared<std::int32_t>(items, use).value();
            const auto of_kind = device.allocate<std::int32_t>(items, MemoryKind::device).value();
        }
        std::vector<std::string> made;
        for (const Told& one : witness.take()) {
            if (one.is(Mark::buffer)) made.push_back(one.name + " " + one.reason);
            if (one.is(Mark::buffer)) {
                EXPECT_EQ(one.facts.bytes, items * sizeof(std::int32_t));
            }
            if (one.is(Mark::buffer_end)) made.push_back("end");
        }
        EXPECT_EQ(made, (Lines{"shared host=writes_often device=reads_once passes=3 kind=pinned alignment=4096",
                               "kind kind=device", "end", "end"}));
        auto data = pinned(device, items, 1);
        std::vector<std::int32_t> plain(items, 1);
        (void)witness.take();
        auto part = data.part(16, 32).value();
        ASSERT_TRUE(worked(stream.launch(add_one, 32, part)));
        EXPECT_EQ(uses_of(witness.take(), Span::launch, data), (Lines{"read_write +64 128 checked"}));
        ASSERT_TRUE(worked(stream.fill(data, 3)));
        EXPECT_EQ(uses_of(witness.take(), Span::fill, data), (Lines{"write +0 4096 "}));
        ASSERT_TRUE(worked(stream.enqueue_native(
            "foreign", [](void*, const std::int32_t*) {}, reads(data))));
        EXPECT_EQ(uses_of(witness.take(), Span::native_work, data), (Lines{"read +0 4096 checked"}));
        Capture capture = stream.begin_capture().value();
        ASSERT_TRUE(worked(capture.launch(add_one, items, data)));
        GraphInstance graph = capture.end().value().instantiate().value();
        EXPECT_EQ(uses_of(witness.take(), Span::launch, data), (Lines{"read_write +0 4096 captured"}));
        ASSERT_TRUE(worked(stream.launch(graph)));
        EXPECT_EQ(uses_of(witness.take(), Span::graph_launch, data), (Lines{"read_write +0 4096 "}));
        ASSERT_TRUE(worked(stream.synchronize()));
        // Memory that is no buffer has no kind.
        (void)stream.launch(add_one, items, View<std::int32_t>{plain.data(), plain.size()});
        const std::vector<Told> told = witness.take();
        const auto raw = std::find_if(told.begin(), told.end(), [](const Told& one) { return one.is(Mark::argument); });
        ASSERT_NE(raw, told.end());
        EXPECT_EQ(raw->facts.kind, MemoryKind::unknown);
        EXPECT_EQ(raw->facts.address, reinterpret_cast<std::uintptr_t>(plain.data()));
        EXPECT_EQ(raw->facts.bytes, items * sizeof(std::int32_t));
        ASSERT_TRUE(worked(stream.synchronize()));
    }
}

// A hint's span ends with the reason of its report, and with a position where the stream was given something: what a
// view waits for later. The refusal is marked as those of other calls.
// keeps O1, K21
TEST(Observers, AreToldOfHintsAndWhatBecameOfThem) {
    using Lines = std::vector<std::string>;
    Witness witness;
    Runtime runtime = observed(witness.callbacks());
    for (std::size_t at = 0; at < runtime.device_count(); ++at) {
        Device& device = *runtime.device(at).value();
        SCOPED_TRACE(device.name());
        Stream stream = device.create_stream().value();
        const bool managed = device.capabilities().has(Feature::managed);
        Buffer<std::int32_t> one = shared_numbers(device, items, managed ? MemoryKind::managed : MemoryKind::pinned);
        Buffer<std::int32_t> other = pinned(device, items, 2);
        set_all(one, 1);
        (void)witness.take();
        const auto hinted = [&](std::string_view name, std::uint64_t bytes, std::uint64_t address) {
            std::vector<Told> told = witness.take();
            expect_nested(told);
            std::erase_if(told, [](const Told& which) { return !which.is(Span::hint); });
            EXPECT_EQ(told.size(), 2u);
            for (const Told& side : told) {
                EXPECT_EQ(side.name, name);
                EXPECT_EQ(side.facts.bytes, bytes);
                EXPECT_EQ(side.facts.address, address);
            }
            EXPECT_EQ(told.front().reason, "");
            return told.back();
        };
        constexpr std::uint64_t bytes = items * sizeof(std::int32_t);
        const HintReport moved = stream.prefetch(one).value();
        Told last = hinted("a prefetch", bytes, one.device_address());
        EXPECT_EQ(last.reason, moved.reason);
        EXPECT_EQ(last.facts.kind, one.kind());
        EXPECT_EQ(last.facts.stream, stream.id());
        EXPECT_EQ(last.facts.position != 0, moved.outcome == HintOutcome::done) << moved.reason;
        const BufferBase* const both[] = {&one, &other};
        ASSERT_TRUE(worked(stream.prefetch(both)));
        EXPECT_EQ(hinted("a prefetch", 2 * bytes, 0).reason, "");  // each buffer has its own
        const HintReport advised = device.advise(other, Advice::read_mostly).value();
        last = hinted("advice", bytes, other.device_address());
        EXPECT_EQ(last.reason, advised.reason);
        EXPECT_EQ(last.facts.stream, 0u);
        EXPECT_EQ(last.facts.position, 0u);
        const HintReport dropped = stream.discard(other).value();
        EXPECT_EQ(hinted("a discard", bytes, other.device_address()).reason, dropped.reason);
        // What is refused is marked once, and given to no stream.
        ASSERT_TRUE(refused_as(device.advise(other, Advice::read_mostly, 0), Code::invalid_argument));
        ASSERT_TRUE(refused_as(stream.prefetch(one, HintPlace::on_host(4711)), Code::invalid_argument));
        ASSERT_TRUE(refused_as(stream.discard(other, HintPlace::on_host(4711)), Code::invalid_argument));
        const std::vector<Told> told = witness.take();
        EXPECT_EQ(
            lines(told),
            (Lines{"begin hint advice", "mark refused advice invalid_argument", "end hint advice invalid_argument",
                   "begin hint a prefetch", "mark refused a prefetch invalid_argument",
                   "end hint a prefetch invalid_argument", "begin hint a discard",
                   "mark refused a discard invalid_argument", "end hint a discard invalid_argument"}));
        for (const Told& side : told) EXPECT_EQ(side.facts.position, 0u);
        ASSERT_TRUE(worked(stream.synchronize()));
    }
}

// Asking whether work has ended is no wait, and the answer "not yet" no refusal.
// keeps O1, O3
TEST(Observers, AreNotToldOfQuestions) {
    Witness witness;
    Runtime runtime = observed(witness.callbacks());
    Device& device = runtime.default_device();
    Stream stream = device.create_stream().value();
    Buffer<std::int32_t> data = device.allocate<std::int32_t>(items).value();
    ASSERT_TRUE(worked(stream.fill(data, 1)));
    Event event = stream.record().value();
    (void)witness.take();
    const std::uint64_t before = values_of(runtime)["isthmus_waits_total"];
    for (int times = 0; times < 5; ++times) {
        EXPECT_TRUE(stream.finished().ok());
        EXPECT_TRUE(event.finished().ok());
    }
    EXPECT_EQ(count_of(witness.take(), Mark::refused), 0u);
    EXPECT_EQ(values_of(runtime)["isthmus_waits_total"], before);
    ASSERT_TRUE(worked(stream.synchronize()));
}

// keeps O1
TEST(Observers, MayNotCallTheRuntime) {
    Witness witness;
    Runtime runtime = observed(witness.callbacks());
    Device& device = runtime.default_device();
    Buffer<std::int32_t> data = pinned(device, items, 1);
    Stream stream = device.create_stream().value();
    std::atomic<int> asked{0};
    witness.inside = [&] {
        ++asked;
        EXPECT_EQ(device.create_stream().code(), Code::not_permitted);
        EXPECT_EQ(stream.launch(add_one, items, data).code(), Code::not_permitted);
    };
    ASSERT_TRUE(worked(stream.launch(add_one, items, data)));
    expect_all(data, 2);
    witness.inside = nullptr;
    EXPECT_GT(asked.load(), 3);
    EXPECT_TRUE(worked(device.create_stream()));
}

// Other runtimes of the process are not observed.
// keeps O1
TEST(Observers, AreOfOneRuntime) {
    Witness witness;
    Runtime one = observed(witness.callbacks());
    Runtime other = observed(nullptr);
    (void)witness.take();
    brighten_a_picture(other.default_device());
    EXPECT_TRUE(witness.take().empty());
    brighten_a_picture(one.default_device());
    EXPECT_FALSE(witness.take().empty());
}

// keeps O1
TEST(Observers, AreRefusedIfTheyAreTooSmall) {
    Witness witness;
    ObserverCallbacks callbacks = *witness.callbacks();
    callbacks.size -= 8;
    RuntimeOptions options;
    options.observer = &callbacks;
    const Result<Runtime> opened = Runtime::open(options);
    EXPECT_TRUE(refused_as(opened, Code::invalid_argument));
    EXPECT_EQ(opened.error().id(), "R007");
    callbacks.size += 16;  // a later version's
    EXPECT_TRUE(worked(Runtime::open(options)));
}

// keeps O1
TEST(Observers, AreToldFromManyThreads) {
    Witness witness;
    Runtime runtime = observed(witness.callbacks());
    Device& device = runtime.default_device();
    constexpr int threads = 8, rounds = 20;
    std::vector<std::thread> all;
    for (int at = 0; at < threads; ++at) {
        all.emplace_back([&] {
            Stream stream = device.create_stream().value();
            Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(items).value();
            set_all(data, 0);
            for (int round = 0; round < rounds; ++round) {
                EXPECT_TRUE(worked(stream.launch(add_one, items, data)));
                if (round % 5 == 4) expect_all(data, round + 1);
            }
        });
    }
    for (std::thread& thread : all) thread.join();
    const std::vector<Told> told = witness.take();
    expect_nested(told);
    const auto launches = std::count_if(told.begin(), told.end(), [](const Told& one) { return one.is(Span::launch); });
    EXPECT_EQ(launches, 2 * threads * rounds);
}

// An observer that counts and nothing else.
struct Tally {
    std::atomic<std::uint64_t> told{0};
    ObserverCallbacks callbacks;
    Tally() {
        callbacks.context = &told;
        callbacks.begin = [](void* to, Span, std::string_view, const ObservedFacts&) noexcept {
            static_cast<std::atomic<std::uint64_t>*>(to)->fetch_add(1, std::memory_order_relaxed);
        };
        callbacks.end = callbacks.begin;
        callbacks.mark = [](void* to, Mark, std::string_view, const ObservedFacts&) noexcept {
            static_cast<std::atomic<std::uint64_t>*>(to)->fetch_add(1, std::memory_order_relaxed);
        };
    }
};

// keeps O1, R9
TEST(Observers, CostTheLibraryNoHeapOnceALoopRuns) {
    if (!counts_allocations()) GTEST_SKIP() << "allocations cannot be counted in this build";
    Tally tally;
    Runtime runtime = observed(&tally.callbacks);
    Device& device = runtime.default_device();
    Stream stream = device.create_stream().value();
    Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(items).value();
    set_all(data, 0);
    const auto turn = [&] {
        const bool launched = stream.launch(add_one, items, data).ok();
        const bool read = data.read_on_host().ok();
        return launched && read && stream.launch(add_one, items, data).ok() && stream.synchronize().ok();
    };
    for (int warm = 0; warm < 32; ++warm) ASSERT_TRUE(turn());
    const std::uint64_t before = tally.told.load();
    Counting counting;
    bool all = true;
    for (int round = 0; round < 16; ++round) all = turn() && all;
    const Counts counts = counting.end();
    EXPECT_TRUE(all);
    EXPECT_EQ(counts.allocations, 0) << counts.where;
    EXPECT_EQ(counts.frees, 0);
    EXPECT_GT(tally.told.load(), before + 16 * 8);
    Seal seal = runtime.seal().value();
    for (int round = 0; round < 4; ++round) EXPECT_TRUE(turn());
    EXPECT_EQ(seal.count(), 0u);
}

// keeps O1, I1
TEST(Observer, IsToldOfAReaderThatIsGone) {
    Witness witness;
    Runtime runtime = observed(witness.callbacks());
    Device& device = runtime.default_device();
    auto made = SharedFrameRing<std::int32_t>::create(device, items, {.slots = 2});
    if (made.code() == Code::unsupported) GTEST_SKIP() << made.error().text();
    SharedFrameRing<std::int32_t> ring = std::move(made).value();
    {
        const SharedFrameReader<std::int32_t> reader = reader_of(device, ring);
        (void)ring.readers();
        EXPECT_EQ(count_of(witness.take(), Mark::reader_lost), 0u);
    }
    ASSERT_TRUE(worked(ring.begin_frame()));
    (void)ring.readers();
    const std::vector<Told> told = witness.take();
    EXPECT_EQ(count_of(told, Mark::reader_lost), 1u);
    for (const Told& one : told) {
        if (one.is(Mark::reader_lost)) {
            EXPECT_FALSE(one.reason.empty());
        }
    }
}

// keeps O3
TEST(Counters, CountWhatTheObserverIsTold) {
    Witness witness;
    Runtime runtime = observed(witness.callbacks());
    Device& device = runtime.default_device();
    Stream stream = device.create_stream().value();
    for (int round = 0; round < 3; ++round) {
        auto data = shared_numbers(device, items, MemoryKind::device);
        set_all(data, 1);
        ASSERT_TRUE(worked(stream.launch(add_one, items, data)));
        const auto view = data.read_on_host().value();
        EXPECT_TRUE(refused_as(stream.launch(add_one, items, data), Code::in_use));
        EXPECT_TRUE(refused_as(data.write_on_host(), Code::in_use));
    }
    const std::vector<Told> told = witness.take();
    std::map<std::string, std::uint64_t> values = values_of(runtime);
    EXPECT_EQ(values["isthmus_uploads_total"], count_of(told, Mark::upload));
    EXPECT_EQ(values["isthmus_uploaded_bytes_total"], bytes_of(told, Mark::upload));
    EXPECT_EQ(values["isthmus_downloads_total"], count_of(told, Mark::download));
    EXPECT_EQ(values["isthmus_downloaded_bytes_total"], bytes_of(told, Mark::download));
    EXPECT_EQ(values["isthmus_fences_total"], count_of(told, Mark::fence));
    EXPECT_EQ(values["isthmus_waits_total"],
              static_cast<std::uint64_t>(std::count_if(
                  told.begin(), told.end(), [](const Told& one) { return one.is(Span::wait) && one.phase == 'B'; })));
    EXPECT_GE(values["isthmus_refused_launches_total"], 3u);
    EXPECT_GE(values["isthmus_refused_views_total"], 3u);
    EXPECT_GE(values["isthmus_operations_total"], 3u);
    if (!device.is_cpu()) {
        EXPECT_EQ(values["isthmus_refused_launches_total"], 3u);
        EXPECT_EQ(values["isthmus_refused_views_total"], 3u);
        EXPECT_GT(values["isthmus_waited_nanoseconds_total"], 0u);
        EXPECT_GT(values["isthmus_cache_hits_total"], 0u);
    }
}

// A stream's operations still count when it is gone.
// keeps O3
TEST(Counters, KeepWhatEndedStreamsDid) {
    Runtime runtime = observed(nullptr);
    Device& device = runtime.default_device();
    Buffer<std::int32_t> data = device.allocate<std::int32_t>(items).value();
    std::uint64_t last = values_of(runtime)["isthmus_operations_total"];
    for (int round = 0; round < 3; ++round) {
        {
            Stream stream = device.create_stream().value();
            ASSERT_TRUE(worked(stream.fill(data, 1)));
            ASSERT_TRUE(worked(stream.synchronize()));
        }
        const std::uint64_t now = values_of(runtime)["isthmus_operations_total"];
        EXPECT_GE(now, last + (device.is_cpu() ? 0 : 1));
        last = now;
    }
    EXPECT_GT(last + (device.is_cpu() ? 1 : 0), 0u);
}

// keeps O3
TEST(Counters, AreTextThatPrometheusReads) {
    Runtime runtime = observed(nullptr);
    brighten_a_picture(runtime.default_device());
    const std::vector<Counter> all = runtime.counters();
    const std::string text = runtime.counters_text();
    std::size_t values = 0;
    std::string family, type;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        ASSERT_NE(end, std::string::npos) << "a line without its end";
        const std::string line = text.substr(begin, end - begin);
        begin = end + 1;
        if (line.starts_with("# HELP ")) {
            family = line.substr(7, line.find(' ', 7) - 7);
            type.clear();
            EXPECT_GT(line.size(), 8 + family.size()) << line;
        } else if (line.starts_with("# TYPE ")) {
            EXPECT_EQ(line.substr(7, family.size()), family);
            type = line.substr(8 + family.size());
            EXPECT_TRUE(type == "counter" || type == "gauge") << line;
            EXPECT_EQ(type == "counter", family.ends_with("_total")) << line;
        } else {
            ASSERT_LT(values, all.size());
            const Counter& counter = all[values++];
            EXPECT_EQ(counter.name, family);
            EXPECT_FALSE(type.empty());
            const std::string label = counter.device < 0 ? "" : "{device=\"" + std::to_string(counter.device) + "\"}";
            EXPECT_EQ(line.substr(0, family.size() + label.size() + 1), family + label + " ");
            EXPECT_EQ(line.find_first_not_of("0123456789", family.size() + label.size() + 1), std::string::npos);
        }
    }
    EXPECT_EQ(values, all.size());
    Runtime moved = std::move(runtime);
    EXPECT_TRUE(runtime.counters().empty());  // NOLINT(bugprone-use-after-move): what a moved-from runtime says
    EXPECT_TRUE(runtime.counters_text().empty());
    EXPECT_FALSE(moved.counters().empty());
}

}  // namespace
}  // namespace conformance
