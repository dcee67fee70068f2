// SPDX-License-Identifier: Apache-2.0
// Mailboxes: messages to and from a running kernel by loads and stores only, on every machine.
#include "scenario.hpp"
#include "mailbox_kernels.hpp"

#include <isthmus/concurrent/mailbox.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace conformance {
namespace {

using Mail = Mailbox<Question, Answer>;

void expect_answer(const Answer& answer, std::uint32_t number) {
    EXPECT_EQ(answer.number, number);
    EXPECT_EQ(answer.square, std::uint64_t{number} * number);
}
constexpr std::uint32_t waits = 1, waits_not = 0;

// keeps G10
TEST(Mailbox, WhatWasSentBeforeALaunchIsAnsweredByIt) {
    on_every_device([](Device& device) {
        Mail mailbox = Mail::create(device, 4).value();
        for (std::uint32_t number = 1; number <= 4; ++number) EXPECT_TRUE(worked(mailbox.send(question_of(number))));
        device.stream().launch(answer_some, 1, mailbox.device_end(), 4u, waits_not).value();
        device.stream().synchronize().value();
        for (std::uint32_t number = 1; number <= 4; ++number) expect_answer(mailbox.receive().value(), number);
        EXPECT_FALSE(mailbox.try_receive().value().has_value());
        EXPECT_EQ(mailbox.state(), protocol::ServiceState::ended);
    });
}

// keeps G10
TEST(Mailbox, MessagesGoBothWaysWhileTheKernelRuns) {
    if (!work_runs_by_itself()) GTEST_SKIP() << "a kernel waits for the host";
    on_every_device([](Device& device) {
        constexpr std::uint32_t messages = 200;
        Mail mailbox = Mail::create(device, 4).value();
        Thread launcher([&] {
            device.stream().launch(answer_some, 1, mailbox.device_end(), messages, waits).value();
            device.stream().synchronize().value();
        });
        std::uint32_t sent = 0, received = 0;
        while (received < messages) {
            if (sent < messages && mailbox.try_send(question_of(sent)).value()) ++sent;
            // If the launch failed, no kernel answers: the wait ends the scenario.
            const bool full = sent == messages || sent - received == 4;
            if (full) {
                expect_answer(mailbox.receive(Wait::at_most(std::chrono::seconds(15))).value(), received++);
            } else if (const std::optional<Answer> answer = mailbox.try_receive().value()) {
                expect_answer(*answer, received++);
            }
        }
        launcher.join();
    });
}

// keeps G10
TEST(Mailbox, AFullMailboxRefusesAndWaitsNoLongerThanAsked) {
    on_every_device([](Device& device) {
        Mail mailbox = Mail::create(device, 2).value();
        EXPECT_TRUE(mailbox.try_send(question_of(1)).value());
        EXPECT_TRUE(mailbox.try_send(question_of(2)).value());
        EXPECT_FALSE(mailbox.try_send(question_of(3)).value());
        EXPECT_TRUE(refused_as(mailbox.send(question_of(3), Wait::never()), Code::not_ready));
        EXPECT_TRUE(
            refused_as(mailbox.send(question_of(3), Wait::at_most(std::chrono::milliseconds(2))), Code::timed_out));
        EXPECT_TRUE(refused_as(mailbox.receive(Wait::at_most(std::chrono::milliseconds(2))), Code::timed_out));
        EXPECT_TRUE(refused_as(mailbox.receive(Wait::never()), Code::not_ready));
        // A kernel makes room and answers what had arrived.
        device.stream().launch(answer_some, 1, mailbox.device_end(), 2u, waits_not).value();
        device.stream().synchronize().value();
        EXPECT_TRUE(worked(mailbox.send(question_of(3), Wait::at_most(std::chrono::seconds(20)))));
        expect_answer(mailbox.receive(Wait::at_most(std::chrono::seconds(20))).value(), 1);
    });
}

// keeps G10
TEST(Mailbox, ACapacityThatIsNoPowerOfTwoIsRefused) {
    on_every_device([](Device& device) {
        for (const std::uint32_t capacity : {0u, 3u, 1u << 21}) {
            EXPECT_TRUE(refused_as(Mail::create(device, capacity), Code::invalid_argument));
        }
        EXPECT_TRUE(worked(Mail::create(device, 1)));
    });
}

// keeps G10, G14
TEST(Mailbox, ItsMemoryIsOpenForNothingElse) {
    on_every_device([](Device& device) {
        Mail mailbox = Mail::create(device, 2).value();
        EXPECT_TRUE(refused_as(mailbox.device_end().read_on_host(), Code::in_use));
        EXPECT_TRUE(refused_as(mailbox.device_end().write_on_host(), Code::in_use));
        EXPECT_TRUE(refused_as(mailbox.device_end().release(), Code::in_use));
        EXPECT_TRUE(worked(mailbox.device_end().concurrent_on_host()));
    });
}

// keeps G10
TEST(Mailbox, CountersAndStampsThatWereWrittenOverAreAnErrorOnBothSides) {
    on_every_device([](Device& device) {
        Mail mailbox = Mail::create(device, 2).value();
        auto words = mailbox.device_end().concurrent_on_host().value();
        const protocol::SystemAtomics atomics{};
        const auto place = isthmus::detail::MailboxShape{3, 4, 2}.place(&words.data()->value);
        atomics.store_release(place.replies.slots + 1, 77);  // the stamp of the first word
        EXPECT_TRUE(refused_as(mailbox.try_receive(), Code::invalid_handle));
        EXPECT_TRUE(refused_as(mailbox.receive(), Code::invalid_handle));
        atomics.store_release(place.requests.consumed, 77);
        EXPECT_TRUE(refused_as(mailbox.try_send(question_of(1)), Code::invalid_handle));
        atomics.store_release(place.requests.consumed, 0);
        atomics.store_release(place.requests.slots + 1, 999);
        device.stream().launch(answer_some, 1, mailbox.device_end(), 9u, waits).value();
        device.stream().synchronize().value();
        EXPECT_EQ(mailbox.state(), protocol::ServiceState::ended);
    });
}

// keeps G10
TEST(Mailbox, KernelsTakeManyAtOnceAndWhatAReplyPublishesIsThere) {
    on_every_device([](Device& device) {
        constexpr std::uint32_t messages = 16;
        Mail mailbox = Mail::create(device, messages).value();
        auto numbers = device.allocate<std::uint32_t>(messages, MemoryKind::pinned).value();
        for (std::uint32_t number = 0; number < messages; ++number) {
            EXPECT_TRUE(worked(mailbox.send(question_of(number))));
        }
        auto seen = numbers.concurrent_on_host().value();
        const protocol::SystemAtomics atomics{};
        device.stream().launch(answer_batches, 1, mailbox.device_end(), messages, numbers).value();
        device.stream().synchronize().value();
        for (std::uint32_t number = 0; number < messages; ++number) {
            expect_answer(mailbox.receive().value(), number);
            EXPECT_EQ(atomics.load_relaxed(seen.data() + number), number + 1);
        }
    });
}

// keeps G10
TEST(Mailbox, EveryWriterHasALineOfItsOwn) {
    on_every_device([](Device& device) {
        Mail mailbox = Mail::create(device, 4).value();
        auto words = mailbox.device_end().concurrent_on_host().value();
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(words.data()) % 128, 0u);
        EXPECT_EQ(mailbox.device_end().device_address() % 128, 0u);
        const isthmus::detail::MailboxShape shape{3, 4, 4};
        const auto place = shape.place(std::uint64_t{0});
        for (const std::uint64_t cell :
             {place.command, place.state, place.requests.published, place.requests.consumed, place.replies.published,
              place.replies.consumed, place.requests.slots, place.replies.slots}) {
            EXPECT_EQ(cell % protocol::line_words, 0u);
        }
        EXPECT_EQ(words.size(), shape.words());
    });
}

// keeps G10
TEST(Mailbox, AKernelKnowsTheCapacityFromTheLength) {
    using isthmus::detail::MailboxShape;
    for (std::uint32_t request_words = 1; request_words < 40; request_words += 3) {
        for (std::uint32_t reply_words = 1; reply_words < 40; reply_words += 3) {
            for (std::uint32_t capacity = 1; capacity <= 1024; capacity *= 2) {
                const MailboxShape shape{request_words, reply_words, capacity};
                EXPECT_EQ(MailboxShape::of(request_words, reply_words, shape.words()).capacity, capacity);
            }
        }
    }
}

}  // namespace
}  // namespace conformance
