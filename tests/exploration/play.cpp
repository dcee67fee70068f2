// SPDX-License-Identifier: Apache-2.0
// Plays and shrinks sequences.
#include "play.hpp"

#include "kernels.hpp"
#include "world.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace exploration {

using isthmus::Code;

namespace {

class Game {
public:
    Game(isthmus::Runtime& runtime, const MachineFacts& machine) : machine_(machine), model_(machine), world_(runtime) {
        runs().clear();
    }

    // Returns what is wrong with the step's answer, or nothing.
    std::string step(const Step& step) {
        const Expectation expected = model_.expect(step);
        if (expected.skip) return {};
        ++verdict.steps;
        const Answer answer = world_.carry_out(step, model_.next_mark());
        if (!expected.may(answer.code)) return unexpected(expected, answer);
        verdict.refusals += answer.code != Code::ok;
        std::string wrong = model_.judge(step, expected, answer, runs());
        if (wrong.empty()) model_.apply(step, expected, answer);
        return wrong;
    }

    std::string close() {
        for (std::size_t slot = 0; slot < max_views; ++slot) {
            if (std::string wrong = step(of(Act::close_view, slot)); !wrong.empty()) return wrong;
        }
        for (std::size_t slot = 0; slot < max_captures; ++slot) {
            if (std::string wrong = step(of(Act::drop_capture, slot)); !wrong.empty()) return wrong;
        }
        for (std::size_t gpu = 0; gpu < machine_.gpus; ++gpu) {
            if (std::string wrong = step(of(Act::device_sync, gpu)); !wrong.empty()) return wrong;
        }
        if (std::string wrong = model_.judge_runs(runs()); !wrong.empty()) return wrong;
        for (std::size_t slot = 0; slot < max_buffers; ++slot) {
            const std::optional<Values> expected = model_.contents(slot);
            if (!expected) continue;
            const isthmus::Result<Values> found = world_.contents(slot, model_.buffer_device(slot));
            if (!found) return "reading buffer" + std::to_string(slot) + ": " + found.error().text();
            if (*found != *expected) return "buffer" + std::to_string(slot) + " holds other values";
        }
        return {};
    }

    std::string let_go(std::uint64_t ending) {
        std::vector<Step> all;
        const auto add = [&](Act act, std::size_t count) {
            for (std::size_t slot = 0; slot < count; ++slot) all.push_back(of(act, slot));
        };
        add(Act::drop_event, max_events);
        add(Act::close_stream, max_streams);
        add(Act::drop_buffer, max_buffers);
        add(Act::drop_graph, max_graphs);
        add(Act::drop_instance, max_instances);
        Numbers numbers(ending);
        for (std::size_t left = all.size(); left > 1; --left) std::swap(all[left - 1], all[numbers.below(left)]);
        for (const Step& one : all) {
            if (std::string wrong = step(one); !wrong.empty()) return wrong;
        }
        return {};
    }

    Verdict verdict;

private:
    static Step of(Act act, std::size_t slot) { return {act, static_cast<std::uint8_t>(slot), 0, 0, 0}; }

    static std::string unexpected(const Expectation& expected, const Answer& answer) {
        std::string text = "answered " + std::string(isthmus::name(answer.code)) + " where it had to answer";
        for (int code = 0; code < 64; ++code) {
            if (expected.may(static_cast<Code>(code))) {
                text += ' ' + std::string(isthmus::name(static_cast<Code>(code)));
            }
        }
        return answer.text.empty() ? text : text + ": " + answer.text;
    }

    const MachineFacts& machine_;
    Model model_;
    World world_;
};

}  // namespace

Verdict play(isthmus::Runtime& runtime, const MachineFacts& machine, const Sequence& sequence, std::uint64_t ending) {
    Game game(runtime, machine);
    Verdict& verdict = game.verdict;
    for (verdict.step = 0; verdict.step < sequence.size(); ++verdict.step) {
        verdict.complaint = game.step(sequence[verdict.step]);
        if (!verdict.complaint.empty()) return verdict;
    }
    verdict.complaint = game.close();
    if (verdict.complaint.empty()) verdict.complaint = game.let_go(ending);
    return verdict;
}

Sequence shrink(const Sequence& sequence, const std::function<bool(const Sequence&)>& fails) {
    Sequence left = sequence;
    for (std::size_t length = std::max<std::size_t>(left.size() / 2, 1);;
         length = std::max<std::size_t>(length / 2, 1)) {
        bool shorter = false;
        for (std::size_t at = 0; at < left.size();) {
            Sequence without = left;
            const auto begin = without.begin() + static_cast<std::ptrdiff_t>(at);
            without.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(length, left.size() - at)));
            if (fails(without)) {
                left = std::move(without);
                shorter = true;
            } else {
                at += length;
            }
        }
        if (length == 1 && !shorter) return left;
    }
}

}  // namespace exploration
