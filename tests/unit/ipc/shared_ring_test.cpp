// SPDX-License-Identifier: Apache-2.0
// Both halves of a shared ring when the other end writes false words, is killed, floods its socket or sleeps.
#include "ipc_errors.hpp"
#include "refused_with.hpp"
#include "ring_files.hpp"

#include <isthmus/ipc/shared_frame_ring.hpp>
#include <isthmus/runtime.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

// Takes the place of the C library's: counts how often the library looks at a socket.
static std::atomic<long> looks_at_sockets{0};
extern "C" ssize_t recvmsg(int socket, msghdr* message, int flags) {
    ++looks_at_sockets;
    return ::syscall(SYS_recvmsg, socket, message, flags);
}

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using namespace std::chrono_literals;
using protocol::max_frames;
using protocol::ring_closed;
using protocol::stamp_whole;
using protocol::stamp_writing;

constexpr std::size_t elements = 16;

Runtime& runtime() {
    static Runtime open = [] {
        RuntimeOptions options;
        options.cuda_library = "/nonexistent/libcuda.so.1";
        return Runtime::open(options).value();
    }();
    return open;
}
Device& device() {
    return runtime().default_device();
}

// A producer with its frames, and readers of it.
struct Producer {
    explicit Producer(const SharedRingOptions& options)
        : core(RingProducerCore::create(device(), elements, sizeof(std::uint32_t), options).value()),
          buffers(adopt_slots<std::uint32_t>(device(), *core, options.slots, elements, {}).value()) {}
    Result<void> produce(std::uint32_t value, Wait wait = Wait::at_most(5s)) {
        Result<std::uint64_t> number = core->begin(wait);
        if (!number) return std::move(number).error();
        Buffer<std::uint32_t>& buffer = buffers[*number % buffers.size()];
        {
            auto view = buffer.write_on_host().value();
            for (std::uint32_t& element : view) element = value;
        }
        return core->publish(*number, *buffer.state(), {});
    }
    void word(std::uint32_t* at, std::uint64_t value) const {
        protocol::ProcessAtomics{}.store_stamped_release(at, value);
    }
    std::shared_ptr<RingProducerCore> core;
    std::vector<Buffer<std::uint32_t>> buffers;
};
struct Consumer {
    explicit Consumer(Producer& of, SharedReaderOptions options = {})
        : core(RingReaderCore::open(device(), of.core->admit().value(), sizeof(std::uint32_t), options).value()),
          buffers(adopt_slots<std::uint32_t>(device(), *core, core->slots(), elements,
                                             {.host = Use::reads_once, .device = Use::reads_once})
                      .value()) {}
    Result<RingReaderCore::Taken> take(Wait wait = Wait::at_most(1ms)) { return core->take(wait); }
    Result<void> finish(const RingReaderCore::Taken& taken) {
        return core->finish(taken.frame, *buffers[taken.slot].state(), {});
    }
    std::uint32_t value(const RingReaderCore::Taken& taken) {
        return (*buffers[taken.slot].read_on_host())[elements - 1];
    }
    std::shared_ptr<RingReaderCore> core;
    std::vector<Buffer<std::uint32_t>> buffers;
};

SharedRingOptions options_of(SlowReaderPolicy policy, std::size_t slots = 4) {
    SharedRingOptions options;
    options.slots = slots;
    options.policy = policy;
    options.reader_deadline = 20ms;
    return options;
}

// A refusal that names the word, and that stays.
template <class T>
void expect_broken(const Result<T>& answer, const char* word) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.code(), Code::peer_broke_rules);
    EXPECT_NE(answer.error().message().find(word), std::string::npos) << answer.error().message();
}

// keeps I6
TEST(SharedRingWords, ACountThatNobodyPublishesIsATypedErrorThatNamesIt) {
    for (const std::uint64_t lie :
         {std::uint64_t{0}, std::uint64_t{1}, max_frames + 1, ~std::uint64_t{0}, ring_closed - 1, std::uint64_t{1}}) {
        SCOPED_TRACE(lie);
        Producer producer(options_of(SlowReaderPolicy::overwrite));
        Consumer reader(producer);
        for (std::uint32_t value = 0; value < 2; ++value) ASSERT_TRUE(producer.produce(value));
        const RingReaderCore::Taken taken = reader.take().value();
        EXPECT_TRUE(reader.finish(taken));
        producer.word(producer.core->files()->published(), lie);
        expect_broken(reader.take(), "published");
        producer.word(producer.core->files()->published(), 2);
        expect_broken(reader.take(), "published");  // nothing is accepted any more
    }
}

// A possible but too large count is detected by the stamps.
// keeps I6
TEST(SharedRingWords, AStampThatNoProducerWritesIsATypedErrorThatNamesIt) {
    struct Lie {
        std::uint64_t published;
        std::uint64_t stamp;
    };
    // The next frame is number 2, in slot 2.
    for (const Lie lie : {Lie{3, 0}, Lie{3, ~std::uint64_t{0}}, Lie{3, stamp_writing(2)}, Lie{3, stamp_whole(1)},
                          Lie{3, stamp_whole(3)}, Lie{3, stamp_whole(2) + 1}, Lie{max_frames, 0}}) {
        SCOPED_TRACE(lie.stamp);
        Producer producer(options_of(SlowReaderPolicy::overwrite));
        Consumer reader(producer);
        for (std::uint32_t value = 0; value < 2; ++value) {
            ASSERT_TRUE(producer.produce(value));
            ASSERT_TRUE(reader.finish(reader.take().value()));
        }
        for (std::uint64_t slot = 0; slot < 4; ++slot) {
            producer.word(producer.core->files()->stamp(slot), lie.stamp);
        }
        producer.word(producer.core->files()->published(), lie.published);
        expect_broken(reader.take(), "stamp");
        expect_broken(reader.take(), "stamp");
    }
}

// keeps I6
TEST(SharedRingWords, AStampThatChangesUnderAReaderIsOvertakenOrALie) {
    for (const bool lie : {false, true}) {
        Producer producer(options_of(SlowReaderPolicy::wait));
        Consumer reader(producer);
        ASSERT_TRUE(producer.produce(1));
        const RingReaderCore::Taken taken = reader.take().value();
        producer.word(producer.core->files()->stamp(0), lie ? stamp_whole(5) : stamp_writing(4));
        const Result<void> finished = reader.finish(taken);
        ASSERT_FALSE(finished);
        EXPECT_EQ(finished.code(), lie ? Code::peer_broke_rules : Code::overtaken);
    }
}

// A producer that runs ahead without end, with counts and stamps that are each possible.
// keeps I6
TEST(SharedRingWords, AReaderIsNotKeptBusyByAProducerThatOvertakesForEver) {
    Producer producer(options_of(SlowReaderPolicy::overwrite));
    Consumer reader(producer);
    const std::uint64_t far = max_frames / 2;
    for (std::uint64_t slot = 0; slot < 4; ++slot) {
        producer.word(producer.core->files()->stamp(slot), stamp_writing(far * 2 - 4 + slot));
    }
    producer.word(producer.core->files()->published(), far);
    EXPECT_EQ(reader.take(Wait::never()).code(), Code::not_ready);
    EXPECT_EQ(reader.take(Wait::at_most(1ms)).code(), Code::timed_out);
}

// keeps I6
TEST(SharedRingWords, ACursorThatNoReaderWritesEndsThatReaderAndNobodyElse) {
    for (const std::uint64_t lie : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{6}, max_frames, ~std::uint64_t{0},
                                    std::uint64_t{1} << 63}) {
        SCOPED_TRACE(lie);
        Producer producer(options_of(SlowReaderPolicy::wait, 2));
        Consumer honest(producer);
        SharedRingDescriptor descriptor = producer.core->admit().value();
        auto fds = descriptor.release_fds();
        SealedMemory page = SealedMemory::accept(std::move(fds[1]), 4096).value();
        // The false reader returns two frames, then writes the false cursor, at which the producer has to look.
        for (std::uint32_t value = 0; value < 9; ++value) {
            if (value == 2) producer.word(RingFiles::cursor(page), 2);
            if (value == 4) producer.word(RingFiles::cursor(page), lie);
            ASSERT_TRUE(producer.produce(value)) << value;
            const RingReaderCore::Taken taken = honest.take().value();
            EXPECT_EQ(honest.value(taken), value);
            ASSERT_TRUE(honest.finish(taken));
        }
        const std::vector<SharedReaderInfo> readers = producer.core->readers();
        ASSERT_EQ(readers.size(), 2u);
        EXPECT_EQ(readers[0].state, ReaderState::live);
        EXPECT_EQ(readers[1].state, ReaderState::broke_rules);
        EXPECT_NE(readers[1].why.find("cursor"), std::string::npos);
    }
}

// keeps I6
TEST(SharedRingWords, AReaderWhoseCursorLiedIsToldWhyItWasGivenUp) {
    Producer producer(options_of(SlowReaderPolicy::wait, 2));
    SharedRingDescriptor descriptor = producer.core->admit().value();
    SealedMemory page = SealedMemory::accept(FileDescriptor(::dup(descriptor.fds()[1])), 4096).value();
    const auto reader = RingReaderCore::open(device(), std::move(descriptor), sizeof(std::uint32_t), {}).value();
    producer.word(RingFiles::cursor(page), max_frames);
    for (std::uint32_t value = 0; value < 4; ++value) ASSERT_TRUE(producer.produce(value)) << value;
    EXPECT_EQ(producer.core->readers().at(0).state, ReaderState::broke_rules);
    for (int again = 0; again < 2; ++again) {
        const auto next = reader->take(Wait::at_most(5s));
        EXPECT_TRUE(isthmus::testing::refused_with<errors::ring_reader_broke_rules>(next));
    }
}

// Sizes and places are read from the descriptor, once.
// keeps I5
TEST(SharedRingWords, WhatBecomesOfTheHeaderAfterTheHandOverIsNothingToAReader) {
    Producer producer(options_of(SlowReaderPolicy::overwrite));
    Consumer reader(producer);
    std::memset(producer.core->files()->header(), 0xff, rules::ring_header_bytes);
    ASSERT_TRUE(producer.produce(77));
    const RingReaderCore::Taken taken = reader.take().value();
    EXPECT_EQ(reader.value(taken), 77u);
    const auto late =
        RingReaderCore::open(device(), producer.core->admit().value(), sizeof(std::uint32_t), SharedReaderOptions{});
    expect_broken(late, "header");
}

std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
}

// keeps I4, I5
TEST(SharedRingDescriptors, FilesThatAreNotWhatTheBytesSayAreRefusedAndClosed) {
    Producer producer(options_of(SlowReaderPolicy::overwrite));
    const std::size_t before = open_descriptors();
    const auto memfd = [](std::size_t bytes, int seals) {
        FileDescriptor fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
        if (seals != 0) {
            EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
        }
        return fd;
    };
    const auto size = static_cast<std::size_t>(producer.core->files()->shape().file_bytes);
    const auto pipe_end = [] {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        ::close(ends[1]);
        return FileDescriptor(ends[0]);
    };
    const auto datagrams = [] {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
        ::close(ends[1]);
        return FileDescriptor(ends[0]);
    };
    constexpr int sealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    const std::vector<std::function<void(std::array<FileDescriptor, 3>&)>> changes = {
        [&](auto& fds) { fds[0] = memfd(size, 0); },                          // could shrink later
        [&](auto& fds) { fds[0] = memfd(size, F_SEAL_GROW | F_SEAL_SEAL); },  // likewise
        [&](auto& fds) { fds[0] = memfd(size - 4096, sealed); },              // shorter than declared
        [&](auto& fds) { fds[0] = memfd(size, sealed); },                     // another file: no header
        [&](auto& fds) { fds[0] = pipe_end(); },                              //
        [&](auto& fds) { fds[0].close(); },                                   //
        [&](auto& fds) { fds[1] = memfd(4096, 0); },                          //
        [&](auto& fds) { std::swap(fds[0], fds[1]); },                        //
        [&](auto& fds) { fds[1] = FileDescriptor(::open("/dev/null", O_RDWR | O_CLOEXEC)); },
        [&](auto& fds) { fds[2] = pipe_end(); },
        [&](auto& fds) { fds[2] = datagrams(); },
        [&](auto& fds) { fds[2] = memfd(4096, sealed); },
        [&](auto& fds) { fds[2].close(); },
    };
    for (std::size_t at = 0; at < changes.size(); ++at) {
        SCOPED_TRACE(at);
        SharedRingDescriptor good = producer.core->admit().value();
        SharedRingDescriptor::Bytes bytes{};
        std::copy(good.bytes().begin(), good.bytes().end(), bytes.begin());
        std::array<FileDescriptor, 3> fds = good.release_fds();
        changes[at](fds);
        const auto opened = RingReaderCore::open(device(), SharedRingDescriptor(bytes, std::move(fds)),
                                                 sizeof(std::uint32_t), SharedReaderOptions{});
        ASSERT_FALSE(opened);
        EXPECT_EQ(opened.code(), Code::peer_broke_rules) << opened.error().text();
    }
    (void)producer.core->readers();  // notices that the readers are gone
    EXPECT_EQ(open_descriptors(), before);
}

// keeps I4
TEST(SharedRingDescriptors, ARingThatIsNotWhatTheReaderWantsIsRefusedBeforeItsFilesAreLookedAt) {
    Producer producer(options_of(SlowReaderPolicy::overwrite));
    const std::uint64_t bytes = producer.core->files()->shape().file_bytes;
    const auto opened = [&](const SharedReaderOptions& options, bool broken) {
        SharedRingDescriptor good = producer.core->admit().value();
        SharedRingDescriptor::Bytes words{};
        std::copy(good.bytes().begin(), good.bytes().end(), words.begin());
        std::array<FileDescriptor, 3> fds = good.release_fds();
        if (broken) fds[0].close();
        return RingReaderCore::open(device(), SharedRingDescriptor(words, std::move(fds)), sizeof(std::uint32_t),
                                    options)
            .code();
    };
    SharedReaderOptions options;
    options.elements = elements;
    options.max_bytes = bytes;
    EXPECT_EQ(opened(options, false), Code::ok);
    EXPECT_EQ(opened(options, true), Code::peer_broke_rules);
    options.max_bytes = bytes - 1;
    EXPECT_EQ(opened(options, true), Code::out_of_memory);
    options.max_bytes = bytes;
    options.elements = elements + 1;
    EXPECT_EQ(opened(options, true), Code::invalid_argument);
}

// keeps I5
TEST(SharedRingDescriptors, NobodyButTheProducerWritesFramesUnlessItSaysSo) {
    for (const ReaderRights rights : {ReaderRights::read_only, ReaderRights::read_write}) {
        SharedRingOptions options = options_of(SlowReaderPolicy::overwrite);
        options.rights = rights;
        Producer producer(options);
        const SharedRingDescriptor descriptor = producer.core->admit().value();
        const int frames = descriptor.fds()[0];
        const auto bytes = static_cast<std::size_t>(producer.core->files()->shape().file_bytes);
        const bool may = rights == ReaderRights::read_write;
        void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, frames, 0);
        EXPECT_EQ(mapped != MAP_FAILED, may);
        if (mapped != MAP_FAILED) ::munmap(mapped, bytes);
        const char byte = 1;
        EXPECT_EQ(::pwrite(frames, &byte, 1, 8192), may ? 1 : -1);
        EXPECT_EQ(::fallocate(frames, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), may ? 0 : -1);
        EXPECT_EQ(::ftruncate(frames, 4096), -1);
        EXPECT_EQ(::ftruncate(frames, static_cast<off_t>(bytes) * 2), -1);
        EXPECT_EQ(::fcntl(frames, F_ADD_SEALS, F_SEAL_WRITE), -1);
    }
}

// Accesses of a process that is killed at the n-th of them.
struct DeadlyAtomics : protocol::ProcessAtomics {
    explicit DeadlyAtomics(int at) : left(std::make_shared<int>(at)) {}
    void step() const {
        if (--*left == 0) ::raise(SIGKILL);
    }
    std::uint64_t load_stamped_acquire(Cell cell) const { return step(), ProcessAtomics::load_stamped_acquire(cell); }
    std::uint64_t load_stamped_relaxed(Cell cell) const { return step(), ProcessAtomics::load_stamped_relaxed(cell); }
    void store_stamped_release(Cell cell, std::uint64_t value) const {
        step();
        ProcessAtomics::store_stamped_release(cell, value);
    }
    std::uint32_t load_relaxed(Cell cell) const { return step(), ProcessAtomics::load_relaxed(cell); }
    void store_relaxed(Cell cell, std::uint32_t value) const { step(), ProcessAtomics::store_relaxed(cell, value); }
    void fence_sequential(Cell cell) const { step(), ProcessAtomics::fence_sequential(cell); }
    void fence_acquire(Cell cell) const { step(), ProcessAtomics::fence_acquire(cell); }
    std::shared_ptr<int> left;
};

// A reader of three frames, by the protocol itself, in a process that ends at its n-th access.
[[noreturn]] void read_until_killed(std::byte* frames, std::byte* page, const rules::RingShape& shape, int at) {
    const DeadlyAtomics atomics(at);
    const auto word = [](std::byte* base, std::size_t offset) {
        return reinterpret_cast<std::uint32_t*>(base + offset);
    };
    const protocol::FrameFollower<DeadlyAtomics> follower(atomics, word(frames, rules::ring_published_at),
                                                          word(page, rules::cursor_at));
    for (std::uint64_t frame = 0; frame < 3; ++frame) {
        while ((follower.published() & ~ring_closed) <= frame) {
            protocol::announce_sleep(atomics, word(page, rules::reader_asleep_at));
            atomics.store_relaxed(word(page, rules::reader_asleep_at), 0);
        }
        (void)follower.stamp(word(frames, shape.stamp_at(frame)));
        (void)follower.stamp_again(word(frames, shape.stamp_at(frame)));
        follower.let_go(frame + 1);
        (void)protocol::sleeper_to_wake(atomics, word(frames, rules::ring_producer_asleep_at));
    }
    ::raise(SIGKILL);
    ::_exit(1);
}

// keeps I6
TEST(SharedRingDeaths, AReaderKilledAtAnyAccessNeitherStopsTheProducerNorHarmsAnotherReader) {
    for (int at = 1; at <= 24; ++at) {
        SCOPED_TRACE(at);
        SharedRingOptions options = options_of(SlowReaderPolicy::wait, 2);
        options.reader_deadline = 30s;  // long, so that only its death ends it
        options.waiting = at % 2 == 0 ? WaitPolicy::sleep : WaitPolicy::adaptive;
        Producer producer(options);
        Consumer other(producer);
        SharedRingDescriptor descriptor = producer.core->admit().value();
        const rules::RingShape shape = producer.core->files()->shape();
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            const auto map = [&](int fd, std::uint64_t bytes, int protection) {
                return static_cast<std::byte*>(
                    ::mmap(nullptr, static_cast<std::size_t>(bytes), protection, MAP_SHARED, fd, 0));
            };
            std::byte* const frames = map(descriptor.fds()[0], shape.file_bytes, PROT_READ);
            std::byte* const page = map(descriptor.fds()[1], shape.page_bytes, PROT_READ | PROT_WRITE);
            // The parent's own ends, inherited by fork, would hide the death: only sent ones count.
            read_until_killed(frames, page, shape, at);
        }
        for (FileDescriptor& fd : descriptor.release_fds()) fd.close();
        for (std::uint32_t value = 0; value < 8; ++value) {
            ASSERT_TRUE(producer.produce(value, Wait::at_most(25s))) << value;
            const RingReaderCore::Taken taken = other.take(Wait::at_most(25s)).value();
            EXPECT_EQ(other.value(taken), value);
            ASSERT_TRUE(other.finish(taken));
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFSIGNALED(status));
        EXPECT_EQ(producer.core->readers().at(1).state, ReaderState::gone);
    }
}

// Frames continue, so that one is always available.
// keeps I6
TEST(SharedRingDeaths, AReaderThatWasGivenUpIsToldSoThoughFramesGoOn) {
    for (const bool holds_one : {false, true}) {
        Producer producer(options_of(SlowReaderPolicy::wait, 2));
        Consumer slow(producer);
        ASSERT_TRUE(producer.produce(0));
        std::optional<RingReaderCore::Taken> held;
        if (holds_one) held = slow.take().value();
        for (std::uint32_t value = 1; value < 5; ++value) ASSERT_TRUE(producer.produce(value));
        if (held) {
            EXPECT_EQ(slow.finish(*held).code(), Code::overtaken);
        }
        for (int again = 0; again < 3; ++again) {
            const auto next = slow.take(Wait::at_most(5s));
            ASSERT_FALSE(next) << "frame " << next->frame;
            EXPECT_EQ(next.code(), Code::peer_lost);
            EXPECT_NE(next.error().message().find("gave this reader up"), std::string::npos);
            ASSERT_TRUE(producer.produce(9));
        }
    }
}

// keeps G8, I6
TEST(SharedRingDeaths, AFrameThatGoesWhileAViewOfItIsOpenIsFinishedLater) {
    for (const bool by_finishing : {false, true}) {
        SharedRingOptions options = options_of(SlowReaderPolicy::wait, 2);
        options.reader_deadline = 30s;
        SharedFrameRing<std::uint32_t> ring =
            SharedFrameRing<std::uint32_t>::create(device(), elements, options).value();
        SharedFrameReader<std::uint32_t> reader =
            SharedFrameReader<std::uint32_t>::open(device(), ring.admit().value()).value();
        const auto produce = [&](Wait wait) {
            auto frame = ring.begin_frame(wait);
            return frame ? frame->publish() : Result<void>(frame.error());
        };
        ASSERT_TRUE(produce({}));
        ASSERT_TRUE(produce({}));
        {
            auto view = reader.next_frame(Wait::at_most(1ms))->buffer().read_on_host().value();
            EXPECT_EQ(produce(Wait::never()).code(), Code::not_ready) << "the view is still open";
        }
        auto next = reader.next_frame(Wait::at_most(1ms)).value();
        EXPECT_EQ(next.number(), 1u);
        if (by_finishing) {
            EXPECT_TRUE(next.finish());
        }
        for (int more = 0; more < (by_finishing ? 2 : 1); ++more) ASSERT_TRUE(produce(Wait::never())) << more;
        EXPECT_EQ(reader.next_frame(Wait::at_most(1ms)).value().number(), 2u) << "its slot is free again";
    }
}

// keeps I6
TEST(SharedRingFrames, ASlotWhoseFrameIsStillHeldIsNotGivenOutAgain) {
    Producer producer(options_of(SlowReaderPolicy::overwrite, 2));
    Consumer consumer(producer);
    ASSERT_TRUE(producer.produce(1));
    const RingReaderCore::Taken first = consumer.take().value();
    ASSERT_TRUE(producer.produce(2));
    ASSERT_TRUE(producer.produce(3));
    const auto refused = consumer.take();
    EXPECT_EQ(refused.code(), Code::in_use);
    if (!refused) {
        EXPECT_NE(refused.error().message().find("still holds"), std::string::npos);
    }
    EXPECT_EQ(consumer.finish(first).code(), Code::overtaken);
    EXPECT_EQ(consumer.take().value().frame, 2u);
}

// keeps I1
TEST(SharedRingFrames, ThatAreBegunAheadAreShownInTheirOrderEachWholeOrNotAtAll) {
    for (const SlowReaderPolicy policy : {SlowReaderPolicy::wait, SlowReaderPolicy::overwrite}) {
        Producer producer(options_of(policy, 5));
        Consumer consumer(producer);
        const auto begin = [&] { return producer.core->begin(Wait::never()).value(); };
        const auto publish = [&](std::uint64_t frame) {
            {
                auto view = producer.buffers[frame % 5].write_on_host().value();
                for (std::uint32_t& element : view) element = static_cast<std::uint32_t>(frame);
            }
            EXPECT_TRUE(producer.core->publish(frame, *producer.buffers[frame % 5].state(), {}));
        };
        const auto expect_next = [&](std::uint64_t frame, std::uint64_t missed) {
            const RingReaderCore::Taken taken = consumer.take().value();
            EXPECT_EQ(taken.frame, frame);
            EXPECT_EQ(taken.missed, missed);
            EXPECT_EQ(consumer.buffers[taken.slot].read_on_host().value()[0], frame);
            EXPECT_TRUE(consumer.finish(taken));
        };
        for (std::uint64_t frame = 0; frame < 3; ++frame) EXPECT_EQ(begin(), frame);
        const auto refused = producer.core->begin(Wait::never());
        ASSERT_EQ(refused.code(), Code::in_use) << "two slots stay for readers";
        EXPECT_EQ(refused.error().id(), "I060");
        publish(2);
        publish(1);
        EXPECT_EQ(consumer.take(Wait::never()).code(), Code::not_ready) << "frame 0 is not whole";
        EXPECT_EQ(producer.core->published(), 0u);
        publish(0);
        EXPECT_EQ(producer.core->published(), 3u);
        for (std::uint64_t frame = 0; frame < 3; ++frame) expect_next(frame, 0);
        // Behind one that is abandoned, another was begun: its number is missed. Behind the last one none was.
        for (std::uint64_t frame = 3; frame < 6; ++frame) EXPECT_EQ(begin(), frame);
        producer.core->abandon(3);
        EXPECT_EQ(begin(), 6u) << "it counts no longer";
        producer.core->abandon(6);
        producer.core->abandon(5);
        EXPECT_EQ(begin(), 5u) << "nobody has seen it";
        publish(5);
        EXPECT_EQ(consumer.take(Wait::never()).code(), Code::not_ready) << "frame 4 is not whole";
        publish(4);
        expect_next(4, 1);
        expect_next(5, 0);
        // The end: what is not whole is left out, and what is whole behind it stays.
        EXPECT_EQ(begin(), 6u);
        EXPECT_EQ(begin(), 7u);
        EXPECT_EQ(begin(), 8u);
        publish(7);
        producer.core->close();
        publish(6);
        producer.core->abandon(8);
        expect_next(7, 1);
        EXPECT_EQ(consumer.take().code(), Code::ended);
        EXPECT_EQ(producer.core->readers().front().state, ReaderState::live);
    }
}

// keeps I1, I6
TEST(SharedRingFrames, ThatAreBegunAheadNeverTakeTheNewestFrameFromItsReader) {
    Producer producer(options_of(SlowReaderPolicy::wait, 4));
    Consumer consumer(producer);
    ASSERT_TRUE(producer.produce(1));
    const RingReaderCore::Taken held = consumer.take().value();
    EXPECT_EQ(producer.core->begin(Wait::never()).value(), 1u);
    EXPECT_EQ(producer.core->begin(Wait::never()).value(), 2u) << "not in the way of those that may be begun";
    EXPECT_EQ(consumer.buffers[held.slot].read_on_host().value()[0], 1u);
    EXPECT_TRUE(consumer.finish(held));
}

// A reader's time does not run while the producer fills what it holds and only asks whether there is room for more.
// keeps I6
TEST(SharedRingFrames, ThatAreAskedForAheadGiveNoReaderUpThatNobodyWaitsFor) {
    SharedRingOptions options = options_of(SlowReaderPolicy::wait, 5);
    options.reader_deadline = 400ms;
    Producer producer(options);
    Consumer consumer(producer);
    std::vector<RingReaderCore::Taken> held;
    for (std::uint32_t value = 0; value < 3; ++value) {
        ASSERT_TRUE(producer.produce(value));
        held.push_back(consumer.take().value());
    }
    EXPECT_EQ(producer.core->begin(Wait::never()).value(), 3u);
    EXPECT_EQ(producer.core->begin(Wait::never()).value(), 4u);
    for (int again = 0; again < 4; ++again) {
        EXPECT_EQ(producer.core->begin(Wait::never()).code(), Code::not_ready);
        std::this_thread::sleep_for(150ms);  // together more than the deadline
    }
    EXPECT_EQ(producer.core->readers().front().state, ReaderState::live);
    // Nothing is held any more: the time runs from here on.
    for (const std::uint64_t frame : {3u, 4u}) {
        EXPECT_TRUE(producer.core->publish(frame, *producer.buffers[frame].state(), {}));
    }
    EXPECT_EQ(producer.core->begin(Wait::never()).code(), Code::not_ready);
    EXPECT_EQ(producer.core->readers().front().state, ReaderState::live);
    std::this_thread::sleep_for(450ms);
    EXPECT_EQ(producer.core->begin(Wait::never()).value(), 5u);
    EXPECT_EQ(producer.core->readers().front().state, ReaderState::too_slow);
}

// keeps I6
TEST(SharedRingFrames, AreShownOnceAndFinishedOnce) {
    SharedFrameRing<std::uint32_t> ring =
        SharedFrameRing<std::uint32_t>::create(device(), elements, options_of(SlowReaderPolicy::overwrite)).value();
    SharedFrameReader<std::uint32_t> reader =
        SharedFrameReader<std::uint32_t>::open(device(), ring.admit().value()).value();
    auto filled = ring.begin_frame().value();
    EXPECT_TRUE(filled.publish());
    const auto again = filled.publish();
    ASSERT_EQ(again.code(), Code::invalid_handle);
    EXPECT_EQ(again.error().message(), "the frame was published before");
    auto frame = reader.next_frame(Wait::at_most(1ms)).value();
    EXPECT_TRUE(frame.finish());
    const auto finished = frame.finish();
    ASSERT_EQ(finished.code(), Code::invalid_handle);
    EXPECT_EQ(finished.error().message(), "the frame was finished before");
}

// keeps I6
TEST(SharedRingDeaths, AnEndIsSeenThoughAForkedChildHoldsCopiesOfTheLine) {
    std::optional<Producer> producer(options_of(SlowReaderPolicy::wait, 2));
    std::optional<Consumer> leaves(*producer);
    Consumer slow(*producer);
    int hold[2];
    ASSERT_EQ(::pipe2(hold, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        ::close(hold[1]);
        char byte = 0;
        (void)!::read(hold[0], &byte, 1);
        ::_exit(0);
    }
    leaves.reset();
    EXPECT_EQ(producer->core->readers().at(0).state, ReaderState::gone);
    for (std::uint32_t value = 0; value < 3; ++value) ASSERT_TRUE(producer->produce(value));
    EXPECT_EQ(producer->core->readers().at(1).state, ReaderState::too_slow);
    EXPECT_EQ(slow.take().code(), Code::peer_lost);
    ::close(hold[0]);
    ::close(hold[1]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
}

// keeps R3
TEST(SharedRingDeaths, AForkedChildEndsNobodysRing) {
    Producer producer(options_of(SlowReaderPolicy::wait));
    Consumer reader(producer);
    ASSERT_TRUE(producer.produce(1));
    const RingReaderCore::Taken taken = reader.take().value();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const bool refused = producer.core->begin({}).code() == Code::forked &&
                             producer.core->admit().code() == Code::forked && reader.take().code() == Code::forked &&
                             reader.finish(taken).code() == Code::forked;
        producer.core.reset();
        reader.core.reset();
        ::_exit(refused ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_TRUE(reader.finish(taken));
    ASSERT_TRUE(producer.produce(2));
    EXPECT_EQ(reader.value(reader.take().value()), 2u) << "neither closed nor let go by the child";
}

// keeps I6
TEST(SharedRingDeaths, ALineThatIsFullOrFloodedOrBlockingStopsNobody) {
    Producer producer(options_of(SlowReaderPolicy::wait, 2));
    SharedRingDescriptor descriptor = producer.core->admit().value();
    auto fds = descriptor.release_fds();
    SealedMemory page = SealedMemory::accept(std::move(fds[1]), 4096).value();
    ASSERT_EQ(::fcntl(fds[2].get(), F_SETFL, 0), 0);
    // Marks itself asleep forever, never takes its wake-ups, and sends as much as it can.
    protocol::ProcessAtomics{}.store_relaxed(RingFiles::asleep(page), 1);
    const std::vector<char> flood(1 << 16, 'w');
    for (std::uint32_t value = 0; value < 3000; ++value) {
        (void)::send(fds[2].get(), flood.data(), flood.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        producer.word(RingFiles::cursor(page), value);
        ASSERT_TRUE(producer.produce(value)) << value;
    }
    EXPECT_EQ(producer.core->readers().at(0).state, ReaderState::live);
}

// A reader whose socket leads to `line` instead of to the producer: closing it looks like the producer's death. The
// ring itself is not closed.
std::shared_ptr<RingReaderCore> reader_by_another_line(Producer& producer, WaitPolicy waiting, int& line) {
    SharedRingDescriptor descriptor = producer.core->admit().value();
    SharedRingDescriptor::Bytes bytes{};
    std::copy(descriptor.bytes().begin(), descriptor.bytes().end(), bytes.begin());
    auto fds = descriptor.release_fds();
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    fds[2] = FileDescriptor(ends[0]);
    line = ends[1];
    return RingReaderCore::open(device(), SharedRingDescriptor(bytes, std::move(fds)), sizeof(std::uint32_t),
                                {.use = {}, .waiting = waiting})
        .value();
}

// keeps I6
TEST(SharedRingDeaths, AProducersEndIsKnownAtOnceAndBehindItsLastFrame) {
    for (const WaitPolicy waiting : {WaitPolicy::spin, WaitPolicy::sleep}) {
        Producer producer(options_of(SlowReaderPolicy::wait));
        int line = -1;
        const auto core = reader_by_another_line(producer, waiting, line);
        ASSERT_TRUE(producer.produce(1));
        EXPECT_TRUE(core->take(Wait::at_most(1ms)));
        EXPECT_EQ(core->take(Wait::at_most(1ms)).code(), Code::timed_out);
        ASSERT_TRUE(producer.produce(2));
        ::close(line);
        EXPECT_TRUE(core->take(Wait::never())) << "what was published before counts";
        EXPECT_EQ(core->take(Wait::at_most(30s)).code(), Code::peer_lost);
        EXPECT_EQ(core->take(Wait::never()).code(), Code::peer_lost);
    }
}

// A thread that polls makes one system call in a millisecond, and hears of the producer's death all the same.
// keeps I6, I7
TEST(SharedRingDeaths, APollLooksForItsProducerOnceInAMillisecond) {
    Producer producer(options_of(SlowReaderPolicy::wait));
    int line = -1;
    const auto reader = reader_by_another_line(producer, WaitPolicy::adaptive, line);
    constexpr long polls = 20000;
    const auto begin = std::chrono::steady_clock::now();
    const long before = looks_at_sockets;
    for (long poll = 0; poll < polls; ++poll) ASSERT_EQ(reader->take(Wait::never()).code(), Code::not_ready);
    const long looks = looks_at_sockets - before;
    const auto passed = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(looks, 1);
    EXPECT_LE(looks, passed / 1ms + 1);
    ::close(line);
    Code code = Code::not_ready;
    for (const auto until = std::chrono::steady_clock::now() + 30s;
         code == Code::not_ready && std::chrono::steady_clock::now() < until;) {
        code = reader->take(Wait::never()).code();
    }
    EXPECT_EQ(code, Code::peer_lost);
}

// A gap that the producer left is no sign that it gave its reader up: frames behind it stay.
// keeps I1, I6
TEST(SharedRingDeaths, AProducerThatEndsBehindAGapLeavesItsFramesToItsReaders) {
    for (const bool killed : {false, true}) {
        SCOPED_TRACE(killed);
        Producer producer(options_of(SlowReaderPolicy::wait));
        SharedRingDescriptor descriptor = producer.core->admit().value();
        SharedRingDescriptor::Bytes bytes{};
        std::copy(descriptor.bytes().begin(), descriptor.bytes().end(), bytes.begin());
        auto fds = descriptor.release_fds();
        int ends[2] = {-1, -1};
        if (killed) {  // the line ends, and the ring is not closed
            ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
            fds[2] = FileDescriptor(ends[0]);
        }
        const auto core =
            RingReaderCore::open(device(), SharedRingDescriptor(bytes, std::move(fds)), sizeof(std::uint32_t), {})
                .value();
        EXPECT_EQ(producer.core->begin(Wait::never()).value(), 0u);
        EXPECT_EQ(producer.core->begin(Wait::never()).value(), 1u);
        producer.core->abandon(0);
        EXPECT_TRUE(producer.core->publish(1, *producer.buffers[1].state(), {}));
        ASSERT_TRUE(producer.produce(2));
        if (killed) {
            ::close(ends[1]);
        } else {
            producer.core.reset();
        }
        const auto first = core->take(Wait::at_most(5s));
        ASSERT_TRUE(first) << first.error().message();
        EXPECT_EQ(first->frame, 1u);
        EXPECT_EQ(first->missed, 1u);
        const auto second = core->take(Wait::at_most(5s));
        ASSERT_TRUE(second) << second.error().message();
        EXPECT_EQ(second->frame, 2u);
        EXPECT_EQ(second->missed, 0u);
        EXPECT_EQ(core->take(Wait::at_most(5s)).code(), killed ? Code::peer_lost : Code::ended);
    }
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace isthmus
