// SPDX-License-Identifier: Apache-2.0
// Draws sequences from seeds: a step is redrawn until the model has the objects that it names.
#include "draw.hpp"

#include <array>
#include <numeric>

namespace exploration {
namespace {

struct Weight {
    Act act;
    unsigned weight;
};
// How often each act is tried; the objects that it names may not exist.
constexpr std::array<Weight, act_count> weights = {{
    {Act::open_stream, 4},    {Act::close_stream, 2}, {Act::record, 7},
    {Act::drop_event, 2},     {Act::wait_event, 7},   {Act::wait_stream, 6},
    {Act::event_finished, 3}, {Act::event_sync, 2},   {Act::stream_finished, 3},
    {Act::stream_sync, 2},    {Act::device_sync, 1},  {Act::allocate, 6},
    {Act::release, 3},        {Act::drop_buffer, 3},  {Act::bump, 14},
    {Act::bump_half, 10},     {Act::mix, 12},         {Act::join, 12},
    {Act::look, 8},           {Act::fill, 6},         {Act::copy, 8},
    {Act::copy_half, 5},      {Act::open_view, 8},    {Act::close_view, 10},
    {Act::begin_capture, 4},  {Act::end_capture, 5},  {Act::drop_capture, 1},
    {Act::instantiate, 6},    {Act::drop_graph, 3},   {Act::drop_instance, 3},
    {Act::launch_graph, 14},
}};
constexpr unsigned total_weight() {
    unsigned sum = 0;
    for (const Weight& one : weights) sum += one.weight;
    return sum;
}

Act draw_act(Numbers& numbers) {
    std::size_t left = numbers.below(total_weight());
    for (const Weight& one : weights) {
        if (left < one.weight) return one.act;
        left -= one.weight;
    }
    return Act::look;
}

struct Bounds {
    std::size_t at, with, other;
};
Bounds bounds_of(Act act, const MachineFacts& machine) {
    switch (act) {
        case Act::open_stream: return {max_streams, machine.gpus, 1};
        case Act::wait_stream: return {max_streams, max_streams, 1};
        case Act::record: return {max_events, max_streams, 1};
        case Act::wait_event: return {max_streams, max_events, 1};
        case Act::drop_event:
        case Act::event_finished:
        case Act::event_sync: return {max_events, 1, 1};
        case Act::device_sync: return {machine.gpus, 1, 1};
        case Act::allocate: return {max_buffers, machine.gpus, kind_count};
        case Act::release:
        case Act::drop_buffer: return {max_buffers, 1, 1};
        case Act::open_view: return {max_views, max_buffers, view_ways};
        case Act::close_view: return {max_views, 1, 1};
        case Act::begin_capture: return {max_captures, max_streams, 1};
        case Act::end_capture: return {max_captures, max_graphs, 1};
        case Act::drop_capture: return {max_captures, 1, 1};
        case Act::instantiate: return {max_instances, max_graphs, 1};
        case Act::drop_graph: return {max_graphs, 1, 1};
        case Act::drop_instance: return {max_instances, 1, 1};
        case Act::launch_graph: return {max_streams, max_instances, 1};
        default: return {max_streams, max_buffers, max_buffers};
    }
}

std::int32_t draw_value(Act act, Numbers& numbers) {
    if (act == Act::record) return static_cast<std::int32_t>(numbers.below(2));
    if (act == Act::allocate) return static_cast<std::int32_t>(numbers.below(max_streams));
    return static_cast<std::int32_t>(numbers.below(1000));
}

class Drawing {
public:
    Drawing(std::uint64_t seed, const MachineFacts& machine) : numbers_(seed), machine_(machine), model_(machine) {}

    Sequence all() {
        const std::size_t length = 10 + numbers_.below(50);
        for (std::size_t slot = 0; slot < 3; ++slot) give_buffer(slot);
        while (sequence_.size() < length && tries_ < 2000) step();
        return std::move(sequence_);
    }

private:
    void give_buffer(std::size_t slot) {
        add({Act::allocate, static_cast<std::uint8_t>(slot), static_cast<std::uint8_t>(numbers_.below(machine_.gpus)),
             static_cast<std::uint8_t>(numbers_.below(kind_count)), 0});
        if (!model_.has_buffer(slot)) return;
        add({Act::fill, static_cast<std::uint8_t>(model_.buffer_device(slot)), static_cast<std::uint8_t>(slot), 0,
             draw_value(Act::fill, numbers_)});
    }

    // Appends the step and applies the best answer that the model allows.
    void add(const Step& step) {
        const Expectation expected = model_.expect(step);
        if (expected.skip) return;
        Answer answer;
        if (!expected.may(isthmus::Code::ok) || expected.race) answer.code = isthmus::Code::in_use;
        model_.apply(step, expected, answer);
        sequence_.push_back(step);
    }

    void step() {
        ++tries_;
        Step step;
        step.act = draw_act(numbers_);
        Expectation expected;
        expected.skip = true;
        for (int attempt = 0; attempt < 10 && expected.skip && !expected.race; ++attempt) {
            const Bounds bounds = bounds_of(step.act, machine_);
            step.at = static_cast<std::uint8_t>(numbers_.below(bounds.at));
            step.with = static_cast<std::uint8_t>(numbers_.below(bounds.with));
            step.other = static_cast<std::uint8_t>(numbers_.below(bounds.other));
            step.value = draw_value(step.act, numbers_);
            expected = model_.expect(step);
        }
        if (expected.skip && !expected.race) return;
        // Keeps few refused steps: they exercise less than steps that succeed.
        if (!expected.may(isthmus::Code::ok) && numbers_.below(4) != 0) return;
        const bool left = machine_.order_checked && numbers_.below(2) == 0;
        for (int mended = 0; mended < 4 && expected.race && !left; ++mended) {
            order(step);
            expected = model_.expect(step);
        }
        add(step);
    }

    void order(const Step& step) {
        const std::optional<Step> wait = model_.mend(step);
        if (!wait) {
            add({Act::device_sync, static_cast<std::uint8_t>(numbers_.below(machine_.gpus)), 0, 0, 0});
            return;
        }
        const auto event = static_cast<std::uint8_t>(numbers_.below(max_events));
        const Step record{Act::record, event, wait->with, 0, 0};
        if (numbers_.below(2) == 0 && !model_.expect(record).skip && model_.expect(record).may(isthmus::Code::ok)) {
            add(record);
            add({Act::wait_event, wait->at, event, 0, 0});
        } else {
            add(*wait);
        }
    }

    Numbers numbers_;
    const MachineFacts& machine_;
    Model model_;
    Sequence sequence_;
    int tries_ = 0;
};

}  // namespace

Sequence draw(std::uint64_t seed, const MachineFacts& machine) {
    return Drawing(seed, machine).all();
}

}  // namespace exploration
