// SPDX-License-Identifier: Apache-2.0
// Requests, replies and the stop of a service, in every execution.
#include "model_atomics.hpp"

#include <isthmus/concurrent/protocol/service.hpp>

#include <gtest/gtest.h>

namespace {

using namespace protocols;
using isthmus::protocol::RingStatus;
using isthmus::protocol::ServiceClient;
using isthmus::protocol::ServiceCommand;
using isthmus::protocol::ServicePlace;
using isthmus::protocol::ServiceServer;
using isthmus::protocol::ServiceState;
using Kind = Weakening::Kind;

constexpr std::uint32_t command = 0, state = 1, requests_published = 2, requests_consumed = 3, replies_published = 4,
                        replies_consumed = 5, request_slots = 6;

ServicePlace<std::uint32_t> place_of(std::uint32_t capacity) {
    return {command,
            state,
            {requests_published, requests_consumed, request_slots, capacity, 1},
            {replies_published, replies_consumed, request_slots + capacity, capacity, 1}};
}

// Answers each request with ten times its value, and notes how many it answered.
void serve(Memory& memory, std::uint32_t capacity, Weakening weakening) {
    ServiceServer<ModelAtomics> server(ModelAtomics(memory, weakening), place_of(capacity));
    std::uint32_t request = 0;
    std::uint32_t answered = 0;
    while (server.receive(&request)) {
        const std::uint32_t reply = request * 10;
        if (!server.reply(&reply)) break;
        ++answered;
    }
    memory.note(answered);
}

// The same, two at once where two are there.
void serve_some(Memory& memory, std::uint32_t capacity, Weakening weakening) {
    ServiceServer<ModelAtomics> server(ModelAtomics(memory, weakening), place_of(capacity));
    std::uint32_t requests[2][1] = {};
    std::uint32_t received = 0;
    std::uint32_t answered = 0;
    while (server.receive_some(requests, received)) {
        for (std::uint32_t at = 0; at < received; ++at) {
            const std::uint32_t reply = requests[at][0] * 10;
            if (!server.reply(&reply)) return memory.note(99);
            ++answered;
        }
    }
    memory.note(answered);
}

// Calls: each request waits for its reply; then stops the service and takes what is left.
void call(Memory& memory, std::uint32_t capacity, std::uint32_t calls, Weakening weakening) {
    ServiceClient<ModelAtomics> client(ModelAtomics(memory, weakening), place_of(capacity));
    std::uint32_t reply = 0;
    for (std::uint32_t request = 1; request <= calls; ++request) {
        if (client.try_send(&request) != RingStatus::done) memory.give_up();
        if (client.try_receive(&reply) != RingStatus::done) memory.give_up();
        memory.note(reply);
    }
    client.command(ServiceCommand::finish);
    if (client.state() != ServiceState::ended) memory.give_up();
    while (client.try_receive(&reply) == RingStatus::done) memory.note(100 + reply);
}

// Sends everything, commands the service to finish, and takes the replies only when it has ended.
void send_and_stop(Memory& memory, std::uint32_t capacity, std::uint32_t messages, Weakening weakening) {
    ServiceClient<ModelAtomics> client(ModelAtomics(memory, weakening), place_of(capacity));
    for (std::uint32_t request = 1; request <= messages; ++request) {
        if (client.try_send(&request) != RingStatus::done) memory.give_up();
    }
    client.command(ServiceCommand::finish);
    if (client.state() != ServiceState::ended) memory.give_up();
    std::uint32_t reply = 0;
    while (client.try_receive(&reply) == RingStatus::done) memory.note(reply);
}

Exploration explore_calls(std::uint32_t capacity, std::uint32_t calls, Weakening weakening = {}) {
    return explore(request_slots + 2 * capacity,
                   {{Side::device, [=](Memory& memory) { serve(memory, capacity, weakening); }},
                    {Side::host, [=](Memory& memory) { call(memory, capacity, calls, weakening); }}});
}
using Serving = void (*)(Memory&, std::uint32_t, Weakening);
Exploration explore_stop(std::uint32_t capacity, std::uint32_t messages, Weakening weakening = {},
                         Serving serving = serve) {
    return explore(request_slots + 2 * capacity,
                   {{Side::device, [=](Memory& memory) { serving(memory, capacity, weakening); }},
                    {Side::host, [=](Memory& memory) { send_and_stop(memory, capacity, messages, weakening); }}});
}

// keeps G10
TEST(Service, EveryExecutionOfCallsAnswersEachOnceAndEnds) {
    EXPECT_TRUE(only(explore_calls(1, 3), {{{3}, {10, 20, 30}}}));
    EXPECT_TRUE(only(explore_calls(2, 3), {{{3}, {10, 20, 30}}}));
}

// keeps G10
TEST(Service, WhatWasSentBeforeFinishIsAnsweredBeforeTheEnd) {
    EXPECT_TRUE(only(explore_stop(1, 1), {{{1}, {10}}}));
    EXPECT_TRUE(only(explore_stop(2, 2), {{{2}, {10, 20}}}));
    EXPECT_TRUE(only(explore_stop(1, 1, {}, serve_some), {{{1}, {10}}}));
    EXPECT_TRUE(only(explore_stop(2, 2, {}, serve_some), {{{2}, {10, 20}}}));
    EXPECT_FALSE(only(explore_stop(1, 1, {Kind::relaxed_store, command}, serve_some), {{{1}, {10}}}));
}

// keeps G10
TEST(Service, AnAbandonedServiceEndsWhateverItHasAnswered) {
    const Exploration ended =
        explore(request_slots + 2, {{Side::device, [](Memory& memory) { serve(memory, 1, {}); }},
                                    {Side::host, [](Memory& memory) {
                                         ServiceClient<ModelAtomics> client(ModelAtomics(memory), place_of(1));
                                         std::uint32_t request = 1;
                                         if (client.try_send(&request) != RingStatus::done) memory.give_up();
                                         request = 2;
                                         if (client.try_send(&request) != RingStatus::done) memory.give_up();
                                         // The replies are not taken: there is no room for two.
                                         client.command(ServiceCommand::abandon);
                                         if (client.state() != ServiceState::ended) memory.give_up();
                                     }}});
    EXPECT_TRUE(only(ended, {{{1}, {}}}));
}

// keeps G10
TEST(Service, EveryWeakenedOrderOfTheHandshakeIsCaught) {
    const auto stop_is_right = [](Weakening weakening) { return only(explore_stop(1, 1, weakening), {{{1}, {10}}}); };
    const auto calls_are_right = [](Weakening weakening) {
        return only(explore_calls(1, 2, weakening), {{{2}, {10, 20}}});
    };
    for (const Kind kind :
         {Kind::relaxed_store, Kind::relaxed_load, Kind::device_scope_store, Kind::device_scope_load}) {
        SCOPED_TRACE(static_cast<int>(kind));
        EXPECT_FALSE(stop_is_right({kind, command}));
        EXPECT_FALSE(stop_is_right({kind, state}));
        EXPECT_TRUE(calls_are_right({kind, request_slots}));  // the words themselves show that they have arrived
    }
}

}  // namespace
