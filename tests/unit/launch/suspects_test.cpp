// SPDX-License-Identifier: Apache-2.0
// The suspects of a fault: in words, and gathered from the buffers' records.
#include "components.hpp"
#include "fake_device.hpp"

#include "device_state.hpp"
#include "fault_suspects.hpp"

#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace isthmus;
using detail::Blame;
using detail::SuspectBuffer;
using detail::WorkInFlight;

ISTHMUS_KERNEL(brighten, Index i, View<int> data) {
    data[i] += 1;
}

bool says(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

TEST(Suspects, OnlyAKernelsCodesBlameWork) {  // keeps L14
    for (const int code : {700, 717, 719}) EXPECT_EQ(detail::blame_of(code), Blame::memory) << code;
    for (const int code : {702, 710, 714, 715, 716, 718}) EXPECT_EQ(detail::blame_of(code), Blame::kernel) << code;
    for (const int code : {-1, 0, 4, 201, 220, 226, 709, 999}) EXPECT_EQ(detail::blame_of(code), Blame::nobody) << code;
}

// keeps L14: every combination of blame, buffers, work, and what could not be asked
TEST(Suspects, TheWordsNameBuffersWorkAndWhatIsNotRecorded) {
    const WorkInFlight named{"brighten", 17, 3};
    const WorkInFlight forgotten{nullptr, 5, 3};
    const std::vector<SuspectBuffer> some{
        {named, 4096, worded("device memory of H200 (device {})", 1), "peer access to the owner is not enabled"}};
    const std::vector<SuspectBuffer> many(7, some.front());
    const std::vector<WorkInFlight> work{named, forgotten};
    const std::vector<WorkInFlight> much(6, named);
    for (const Blame blame : {Blame::nobody, Blame::kernel, Blame::memory}) {
        for (const std::vector<SuspectBuffer>& buffers : {std::vector<SuspectBuffer>{}, some, many}) {
            for (const std::vector<WorkInFlight>& flying : {std::vector<WorkInFlight>{}, work, much}) {
                for (const bool all : {true, false}) {
                    const std::string text(
                        fault_suspects(blame, {buffers, 0, flying, flying.empty() ? 0u : 2u, all}).view());
                    SCOPED_TRACE(text);
                    const bool silent = blame == Blame::nobody || (blame == Blame::kernel && flying.empty());
                    if (silent || (buffers.empty() && flying.empty())) {
                        EXPECT_EQ(text, "");
                        continue;
                    }
                    EXPECT_EQ(text.substr(0, 2), "; ") << "it goes on with a sentence";
                    const bool about_memory = blame == Blame::memory;
                    EXPECT_EQ(says(text,
                                   "; it may have been caused by a buffer of 4096 bytes, device memory of H200 "
                                   "(device 1), used by 'brighten' (operation 17 of stream 3): peer access to the "
                                   "owner is not enabled"),
                              about_memory && !buffers.empty());
                    EXPECT_EQ(says(text, "by 5 more buffers of this kind"), about_memory && buffers.size() == 7);
                    EXPECT_EQ(says(text, "within its reach"), about_memory && buffers.empty());
                    EXPECT_EQ(says(text, "; not known to have ended: 'brighten' (operation 17 of stream 3)"),
                              !flying.empty());
                    EXPECT_EQ(says(text, ", operation 5 of stream 3"), flying.size() == 2);
                    EXPECT_EQ(says(text, " and 2 more"), flying.size() == 2);
                    EXPECT_EQ(says(text, " and 4 more"), flying.size() == 6) << "two of them, and two not in the list";
                    EXPECT_EQ(says(text, "raw views and addresses that launches passed are not recorded"),
                              about_memory);
                    EXPECT_EQ(says(text, "not every buffer could be asked"), about_memory && !all);
                }
            }
        }
    }
}

// keeps L14: an error and the log have room for so much without the heap
TEST(Suspects, TheWordsHaveABoundWhateverTheKernelsAreCalled) {
    const std::string name(5000, 'n');
    const WorkInFlight work{name.c_str(), 1234567890123, 3};
    const SuspectBuffer buffer{work, 1ull << 40, worded("device memory of {}", std::string(100, 'd')),
                               "peer access to the owner is not enabled"};
    for (std::size_t buffers = 0; buffers < 4; ++buffers) {
        for (std::size_t works = 0; works < 8; ++works) {
            const std::vector<SuspectBuffer> used(buffers, buffer);
            const std::vector<WorkInFlight> flying(works, work);
            const std::string text(fault_suspects(Blame::memory, {used, ~0ull / 2, flying, ~0ull / 2, false}).view());
            EXPECT_LE(text.size(), 704u) << text;
            EXPECT_EQ(says(text, std::string(96, 'n') + "...' (operation"), buffers + works > 0) << text;
            EXPECT_FALSE(says(text, std::string(97, 'n'))) << text;
            EXPECT_TRUE(buffers + works == 0 || says(text, "not every buffer could be asked")) << text;
        }
    }
}

// Two GPUs without peer access; faults come when the test says so.
struct Pair {
    Pair() {
        world.reachable = {};
        runtime.config->log = [this](Severity, std::string_view line) { log.emplace_back(line); };
    }
    // The next driver call finds the fault.
    Error fault(Stream& stream, int code = 700) {
        world.fail_code = Code::device_lost;
        world.fail_driver_code = code;
        world.sticky = world.failing = true;
        const Result<void> waited = stream.synchronize();
        EXPECT_EQ(waited.code(), Code::device_lost);
        return waited.ok() ? Error(Code::ok, "no fault") : waited.error();
    }
    std::vector<std::string> log;
    isthmus::testing::FakeWorld world;
    isthmus::testing::FakeRuntime runtime;
    Device here{runtime.open(world, isthmus::testing::discrete_facts(0))};
    Device there{runtime.open(world, isthmus::testing::discrete_facts(1))};
};

// keeps L14
TEST(Suspects, ABufferOutOfReachIsNamedWithItsUseAndTheRule) {
    Pair pair;
    Stream stream = pair.here.create_stream().value();
    Buffer<int> own = pair.here.allocate<int>(8).value();
    Buffer<int> far = pair.there.allocate<int>(8).value();
    (void)stream.launch(brighten, 8, own).value();
    pair.world.calls.clear();
    const std::uint64_t position = stream.launch(brighten, 8, far).value().position;
    EXPECT_EQ(pair.world.calls, std::vector<std::string>{"launch brighten"}) << "the launch pays for nothing";
    const Error error = pair.fault(stream);
    const std::string use = "used by 'brighten' (operation " + std::to_string(position) + " of stream " +
                            std::to_string(stream.id()) + "): peer access to the owner is not enabled";
    EXPECT_TRUE(says(error.message(),
                     "; it may have been caused by a buffer of 32 bytes, device memory of fake GPU "
                     "(device 1), " +
                         use))
        << error.text();
    EXPECT_EQ(error.id(), "E009");
    EXPECT_EQ(error.driver_code(), 700);
    EXPECT_FALSE(error.remedy().empty());
    EXPECT_FALSE(says(error.message(), "device 0)")) << "its own buffer is no suspect";
    // What is refused from now on says it, too: the first error may have been somebody else's.
    const Result<LaunchReport> later = stream.launch(brighten, 8, own);
    ASSERT_EQ(later.code(), Code::device_lost);
    EXPECT_EQ(later.error().id(), "E003");
    EXPECT_TRUE(says(later.error().message(), use)) << later.error().text();
    ASSERT_EQ(pair.log.size(), 1u);
    EXPECT_TRUE(says(pair.log.front(), use)) << pair.log.front();
}

// keeps L14: the refusal beside the success
TEST(Suspects, BuffersWithinReachOrWhoseWorkHasEndedOrThatAreGoneAreNotNamed) {
    for (const std::string_view why : {"reachable", "ended", "gone", "raw view"}) {
        SCOPED_TRACE(why);
        Pair pair;
        if (why == "reachable") {
            pair.world.reachable = {0, 1};
            ASSERT_TRUE(pair.here.enable_peer_access(pair.there).ok());
        }
        Stream stream = pair.here.create_stream().value();
        Buffer<int> own = pair.here.allocate<int>(8).value();
        Buffer<int> far = pair.there.allocate<int>(8).value();
        if (why == "raw view") {
            const View<int> raw{reinterpret_cast<int*>(static_cast<std::uintptr_t>(far.device_address())), 8};
            (void)stream.launch(brighten, 8, raw).value();
        } else {
            (void)stream.launch(brighten, 8, far).value();
        }
        if (why == "ended" || why == "gone") {
            ASSERT_TRUE(stream.synchronize().ok());
        }
        if (why == "gone") far = {};
        (void)stream.launch(brighten, 8, own).value();
        const Error error = pair.fault(stream);
        EXPECT_FALSE(says(error.message(), "may have been caused by")) << error.text();
        EXPECT_TRUE(says(error.message(), "is within its reach; not known to have ended: 'brighten'")) << error.text();
        EXPECT_TRUE(says(error.message(), "raw views and addresses")) << error.text();
    }
}

// keeps L14: a context that other code destroyed is no kernel's fault
TEST(Suspects, NobodyIsBlamedForAContextThatOtherCodeDestroyed) {
    Pair pair;
    Stream stream = pair.here.create_stream().value();
    Buffer<int> far = pair.there.allocate<int>(8).value();
    (void)stream.launch(brighten, 8, far).value();
    const Error error = pair.fault(stream, 709);
    EXPECT_FALSE(says(error.message(), "may have been caused by")) << error.text();
    EXPECT_FALSE(says(error.message(), "not known to have ended")) << error.text();
}

}  // namespace
