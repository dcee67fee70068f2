// Which public calls a runtime takes when: every call under every combination of circumstances.
#include "admission_rules.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace {

using namespace isthmus::rules;

// keeps R2, R3, S20
TEST(Admission, EveryCallUnderEveryCombinationOfCircumstances) {
    for (int at = 0; at < public_call_count; ++at) {
        const auto call = static_cast<PublicCall>(at);
        const CallRule& rule = rule_of(call);
        ASSERT_EQ(rule.call, call) << "row " << at;
        EXPECT_EQ(bar_of(call, {}), Bar::none) << rule.subject;
        for (int bits = 1; bits < 8; ++bits) {
            const Circumstances now{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
            const Bar bar = bar_of(call, now);
            if (now.forked) {
                EXPECT_EQ(bar, Bar::forked) << rule.subject << ": a forked child is told nothing else";
            } else if (bar == Bar::host_function) {
                EXPECT_TRUE(now.host_function && !rule.in_host_function) << rule.subject;
            } else if (bar == Bar::lost) {
                EXPECT_TRUE(now.lost && !rule.on_lost_device) << rule.subject;
                EXPECT_TRUE(!now.host_function || rule.in_host_function) << rule.subject;
            } else {
                EXPECT_EQ(bar, Bar::none) << rule.subject;
                EXPECT_TRUE(!now.host_function || rule.in_host_function) << rule.subject;
                EXPECT_TRUE(!now.lost || rule.on_lost_device) << rule.subject;
            }
        }
    }
}

// keeps R2, R3, S20
TEST(Admission, WhatNeedsNoDriverIsTakenOnALostDeviceAndWhatNeedsOneIsNot) {
    const Circumstances lost{false, false, true};
    for (const PublicCall taken : {PublicCall::allocate_host, PublicCall::open_view, PublicCall::salvage,
                                   PublicCall::release_buffer, PublicCall::release_memory, PublicCall::make_growable,
                                   PublicCall::begin_ring_frame, PublicCall::ask_known_event}) {
        EXPECT_EQ(bar_of(taken, lost), Bar::none) << rule_of(taken).subject;
    }
    for (const PublicCall refused : {PublicCall::allocate, PublicCall::launch, PublicCall::copy, PublicCall::fill,
                                     PublicCall::record_event, PublicCall::begin_capture, PublicCall::adopt,
                                     PublicCall::export_memory, PublicCall::synchronize, PublicCall::ask_event}) {
        EXPECT_EQ(bar_of(refused, lost), Bar::lost) << rule_of(refused).subject;
    }
}

// keeps S20
TEST(Admission, AHostFunctionIsRefusedAllButWhatNeitherWaitsNorAsksTheDriver) {
    const Circumstances inside{false, true, false};
    for (const PublicCall taken :
         {PublicCall::ask_known_event, PublicCall::begin_ring_frame, PublicCall::stop_service}) {
        EXPECT_EQ(bar_of(taken, inside), Bar::none) << rule_of(taken).subject;
    }
    for (const PublicCall refused : {PublicCall::allocate, PublicCall::allocate_host, PublicCall::launch,
                                     PublicCall::release_buffer, PublicCall::open_view, PublicCall::synchronize}) {
        EXPECT_EQ(bar_of(refused, inside), Bar::host_function) << rule_of(refused).subject;
    }
}

// keeps R1
TEST(Admission, EverySubjectBeginsASentence) {
    for (const CallRule& rule : call_rules) {
        EXPECT_GE(rule.subject.size(), 6u);
        EXPECT_TRUE(rule.subject.front() >= 'a' && rule.subject.front() <= 'z') << rule.subject;
        EXPECT_NE(rule.subject.back(), '.') << rule.subject;
    }
}

}  // namespace
