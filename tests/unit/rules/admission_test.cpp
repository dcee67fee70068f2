// SPDX-License-Identifier: Apache-2.0
// Which public calls a runtime admits: every call under every combination of circumstances, against the promises.
#include "admission_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace {

using namespace isthmus::rules;
using C = PublicCall;

// The promises, written separately from the table: a call in none of these lists is refused after a fork, in a host
// function and on a lost device, and is independent of captures and services. R2, S20: calls answered from the host's
// own records, and destructors.
constexpr C without_the_driver[] = {C::admit_ring_reader, C::ask_known_event,     C::begin_ring_frame,
                                    C::end_buffer,        C::end_capture,         C::finish_ring_frame,
                                    C::free_memory,       C::read_back_host_side, C::read_known_elapsed_time,
                                    C::stop_service,      C::take_ring_frame,     C::wait_for_known_event};
// R2: host memory stays readable and can be allocated and freed. Waiting for it could hang a host function (S20).
constexpr C on_a_lost_device[] = {C::allocate_host,   C::export_host_memory, C::grow_host_memory, C::open_view,
                                  C::release_buffer,  C::release_memory,     C::release_module,   C::salvage,
                                  C::trim_host_memory};
// K13, S12: refused while the thread has a capture open.
constexpr C ends_a_capture[] = {C::change_mapping, C::read_back_host_side};
// K13: as above, on a GPU; on the CPU device the memory is the system's.
constexpr C ends_a_capture_on_a_gpu[] = {C::adopt, C::adopt_descriptor, C::create_pool, C::create_growable,
                                         C::create_mirrored};
// K10: refused while any thread has a capture open, because its graph may be about to use the memory.
constexpr C takes_memory_from_graphs[] = {C::release_module, C::trim_host_memory, C::trim_mapped_memory, C::unbind,
                                          C::unmap};
// Calls that would wait for every kernel of the device, and so for a service.
constexpr C waits_for_the_device[] = {C::synchronize_device};

// T2: what a sealed scope refuses, because the call always makes, maps, loads or asks for something. The others are
// taken, or judged by their steps.
constexpr C makes_something[] = {C::admit_ring_reader,
                                 C::adopt,
                                 C::adopt_descriptor,
                                 C::advise,
                                 C::append_to_capture,
                                 C::ask_advice,
                                 C::ask_mapping_access,
                                 C::ask_memory_properties,
                                 C::ask_peer_access,
                                 C::begin_capture,
                                 C::call_on_host,
                                 C::change_mapping,
                                 C::create_pool,
                                 C::create_stream,
                                 C::create_growable,
                                 C::create_mirrored,
                                 C::export_dma_buf,
                                 C::export_event,
                                 C::export_host_memory,
                                 C::export_legacy_memory,
                                 C::export_memory,
                                 C::export_physical_memory,
                                 C::grow_host_memory,
                                 C::import_event,
                                 C::load_module,
                                 C::pool_access,
                                 C::release_module,
                                 C::start_service,
                                 C::switch_peer_access,
                                 C::take_pool,
                                 C::trim_host_memory,
                                 C::trim_mapped_memory,
                                 C::unbind,
                                 C::unmap,
                                 C::update_graph,
                                 C::use_module,
                                 C::use_pool,
                                 C::wrap_stream};

bool is_in(std::span<const C> list, C call) {
    return std::find(list.begin(), list.end(), call) != list.end();
}

// In the order of the reasons: an earlier reason makes the later ones meaningless.
Bar promised(C call, const Circumstances& now) {
    const bool without_driver = is_in(without_the_driver, call);
    const bool takes_memory = is_in(takes_memory_from_graphs, call);
    const bool minds_own_capture =
        is_in(ends_a_capture, call) || takes_memory || (!now.cpu_device && is_in(ends_a_capture_on_a_gpu, call));
    if (now.after_fork) return Bar::forked;
    // W5: work of other code is refused every call.
    if (now.in_native_work || (now.in_host_function && !without_driver)) return Bar::host_function;
    if (now.holds_stream && !without_driver) return Bar::inside_call;
    if (now.device_lost && !without_driver && !is_in(on_a_lost_device, call)) return Bar::lost;
    if (now.capture_here && minds_own_capture) return Bar::capture;
    if (now.capture_elsewhere && takes_memory) return Bar::capture_elsewhere;
    if (now.service_runs && is_in(waits_for_the_device, call)) return Bar::service;
    if (now.in_sealed_scope && is_in(makes_something, call)) return Bar::sealed;
    return Bar::none;
}

Circumstances combination(unsigned bits) {
    const auto bit = [bits](unsigned at) { return ((bits >> at) & 1u) != 0; };
    return {bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7), bit(8), bit(9)};
}
constexpr unsigned combinations = 1u << 10;

// keeps R2, R3, S12, S20, S21, K10, K13, T2, W5
TEST(Admission, EveryCallUnderEveryCombinationOfCircumstances) {
    for (std::size_t at = 0; at < call_rules.size(); ++at) {
        const auto call = static_cast<C>(at);
        ASSERT_EQ(rule_of(call).call, call) << "row " << at;
        for (unsigned bits = 0; bits < combinations; ++bits) {
            EXPECT_EQ(bar_of(call, combination(bits)), promised(call, combination(bits)))
                << "row " << at << ", " << rule_of(call).subject << ", circumstances " << bits;
        }
        EXPECT_EQ(bar_of(call, Circumstances{}), Bar::none) << rule_of(call).subject;
    }
}

// Counts the questions that it gets.
struct Asked {
    int& captures;
    int& services;
    int& seals;
    bool forked() const { return false; }
    bool host_function() const { return false; }
    bool native_work() const { return false; }
    bool taken_thread() const { return false; }
    bool lost() const { return false; }
    bool on_cpu() const { return false; }
    bool captured_here() const { return ++captures, false; }
    bool captured() const { return ++captures, false; }
    bool serving() const { return ++services, false; }
    bool sealed(const CallRule&) const { return ++seals, false; }
};

// keeps L7
TEST(Admission, ACallAsksForNoCaptureAndNoServiceThatItsRuleDoesNotRefuse) {
    for (const CallRule& rule : call_rules) {
        int captures = 0;
        int services = 0;
        int seals = 0;
        EXPECT_EQ(bar_of(rule.call, Asked{captures, services, seals}), Bar::none) << rule.subject;
        const bool minds_captures = is_in(ends_a_capture, rule.call) || is_in(ends_a_capture_on_a_gpu, rule.call) ||
                                    is_in(takes_memory_from_graphs, rule.call);
        EXPECT_EQ(captures > 0, minds_captures) << rule.subject;
        EXPECT_EQ(services > 0, is_in(waits_for_the_device, rule.call)) << rule.subject;
        EXPECT_EQ(seals > 0, is_in(makes_something, rule.call)) << rule.subject;
    }
}

// A column means the same in every row: a service counts for its whole device.
TEST(Admission, NoRowSaysWhatItsColumnDoesNotKnow) {
    for (const CallRule& rule : call_rules) {
        const Ruling service = rule.while_service_runs;
        EXPECT_TRUE(service == Ruling::taken || service == Ruling::refused || service == Ruling::judged)
            << rule.subject;
    }
}

// keeps R2, R3, S20
TEST(Admission, CallsThatAreBarredAlikeAreSoUnderEveryCombination) {
    std::vector<std::vector<Bar>> bars;
    for (const CallRule& rule : call_rules) {
        std::vector<Bar>& of_call = bars.emplace_back();
        for (unsigned bits = 0; bits < combinations; ++bits) of_call.push_back(bar_of(rule.call, combination(bits)));
    }
    for (std::size_t one = 0; one < bars.size(); ++one) {
        for (std::size_t other = 0; other < bars.size(); ++other) {
            EXPECT_EQ(barred_alike(static_cast<C>(one), static_cast<C>(other)), bars[one] == bars[other])
                << call_rules[one].subject << ", " << call_rules[other].subject;
        }
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
