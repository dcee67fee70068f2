// SPDX-License-Identifier: Apache-2.0
// The reference model (see model.hpp).
#include "model.hpp"

#include <algorithm>
#include <utility>

namespace exploration {

using isthmus::Code;

namespace {

constexpr std::uint64_t bit(Code code) {
    return std::uint64_t{1} << static_cast<int>(code);
}
Expectation skipped() {
    Expectation expected;
    expected.skip = true;
    return expected;
}
Expectation answers(std::uint64_t codes) {
    Expectation expected;
    expected.codes = codes;
    return expected;
}
bool is_kernel(Act act) {
    return act == Act::bump || act == Act::bump_half || act == Act::mix || act == Act::join || act == Act::look;
}
bool is_copy(Act act) {
    return act == Act::copy || act == Act::copy_half;
}

}  // namespace

Model::Model(const MachineFacts& machine) : machine_(machine) {
    for (std::size_t device = 0; device < machine.gpus; ++device) {
        streams_[device] = std::make_shared<Stream>(Stream{device, {}, nullptr, {}, false});
    }
}

// --- what a step names

std::optional<Model::Work> Model::work_of(const Step& step) const {
    const Act act = step.act;
    const bool of_two = act == Act::mix || act == Act::join || act == Act::copy || act == Act::copy_half;
    // For other acts these arguments have other meanings.
    if (!of_two && act != Act::bump && act != Act::bump_half && act != Act::fill && act != Act::look)
        return std::nullopt;
    if (!streams_[step.at] || !buffers_[step.with]) return std::nullopt;
    const std::shared_ptr<Buffer>& first = buffers_[step.with];
    Work work{step.act, step.value, next_mark_, {}, both_halves};
    switch (step.act) {
        case Act::bump:
        case Act::fill: work.uses = {{first, true}}; return work;
        case Act::bump_half:
            work.part = step.other % 2 == 0 ? 1 : 2;
            // Only the half that the kernel touches, even where the buffer migrates as a whole: only host access needs
            // the whole (opened_by), and kernels are as free as on other memory.
            work.uses = {{first, true, work.part}};
            return work;
        case Act::look: work.uses = {{first, false}}; return work;
        default: break;
    }
    if (!buffers_[step.other] || buffers_[step.other] == first) return std::nullopt;
    const bool halves = step.act == Act::copy_half;
    work.uses = {{first, true, halves ? 2u : both_halves}, {buffers_[step.other], false, halves ? 1u : both_halves}};
    return work;
}

bool Model::any_capture() const {
    return std::any_of(captures_.begin(), captures_.end(), [](const auto& capture) { return capture != nullptr; });
}

bool Model::held_by_graph(const Buffer& buffer) const {
    const auto uses = [&](const std::vector<Recorded>& recorded) {
        for (const Recorded& one : recorded) {
            for (const Use& use : one.work.uses) {
                if (use.buffer.get() == &buffer) return true;
            }
        }
        return false;
    };
    for (const auto& capture : captures_) {
        if (capture && uses(capture->recorded)) return true;
    }
    for (const auto& graph : graphs_) {
        if (graph && uses(graph->recorded)) return true;
    }
    for (const auto& instance : instances_) {
        if (instance && uses(instance->graph->recorded)) return true;
    }
    return false;
}

std::size_t Model::stream_device(std::size_t slot) const {
    return streams_[slot]->device;
}
std::size_t Model::buffer_device(std::size_t slot) const {
    return buffers_[slot]->device;
}

// --- order

Past Model::closure(const Past& nodes) const {
    Past all = nodes;
    for (Node node = 0; node < nodes_.size(); ++node) {
        if (nodes[node] && !nodes_[node].early) all |= nodes_[node].before;
    }
    return all;
}

// As closure(), but with everything before each node, also where the host may carry it out early.
Past Model::with_before(const Past& nodes) const {
    Past all = nodes;
    for (Node node = 0; node < nodes_.size(); ++node) {
        if (nodes[node]) all |= nodes_[node].before;
    }
    return all;
}

std::vector<std::shared_ptr<Model::Stream>> Model::streams_of(const Buffer& buffer) {
    std::vector<std::shared_ptr<Stream>> streams;
    if (buffer.maker) streams.push_back(buffer.maker);
    for (const Access& access : buffer.accesses) {
        if (std::find(streams.begin(), streams.end(), access.stream) == streams.end()) streams.push_back(access.stream);
    }
    return streams;
}

// Operations after which the runtime may have ordered a stream on its own (model.hpp).
Past Model::ordered_unasked() const {
    Past found;
    for (const std::shared_ptr<Buffer>& buffer : all_buffers_) {
        const bool orders = (buffer->facts.pooled && buffer->let_go) || buffer->facts.whole;
        if (!orders || streams_of(*buffer).size() < 2) continue;
        found |= conflicts(*buffer, true) | buffer->made;
    }
    return with_before(found) | between_;
}

// A stream that used the buffer may have been given its release, or a wait that the caller did not ask for.
void Model::may_wait_unasked(const Buffer& buffer) {
    for (const std::shared_ptr<Stream>& stream : streams_of(buffer)) {
        stream->works_unasked = stream->behind_unasked = true;
    }
}

// The step raced with these operations and was answered ok: the host has seen them end, or the runtime ordered the
// stream after them.
void Model::learn_from_race(const std::shared_ptr<Stream>& stream, const Past& unordered) {
    const Past unasked = unordered & ordered_unasked();
    host_ |= closure(unordered & ~unasked);
    stream->past |= closure(unasked);
}

Past Model::conflicts(const Buffer& buffer, bool writes, unsigned halves) const {
    Past found;
    for (const Access& access : buffer.accesses) {
        if ((writes || access.writes) && (access.halves & halves) != 0) found.set(access.node);
    }
    return found;
}

// Without copies that the host takes part in: one of their two buffers may be free while the other is not.
Past Model::wholly(const Past& nodes) const {
    Past whole = nodes;
    for (Node node = 0; node < nodes_.size(); ++node) {
        if (nodes_[node].early) whole.reset(node);
    }
    return whole;
}

Past Model::past_of(const Stream& stream, const Work& work) const {
    Past past = stream.past | host_;
    const bool by_host = is_copy(work.act) && copied_by_host(work);
    for (const Use& use : work.uses) {
        past |= use.buffer->made;
        if (!is_copy(work.act) || use.buffer->device == stream.device) continue;
        // The host waits for uses of the same bytes, a stream for all uses of the buffer.
        const unsigned halves = by_host || use.buffer->facts.pageable ? use.halves : both_halves;
        past |= closure(conflicts(*use.buffer, use.writes, halves));
    }
    return past;
}

Past Model::past_of_launch(const Stream& stream, const Instance& instance) const {
    Past past = stream.past | host_ | instance.launched;
    for (const Recorded& one : instance.graph->recorded) {
        for (const Use& use : one.work.uses) past |= use.buffer->made;
    }
    return past;
}

// An event of a capture may be waited for by streams of that capture, and by streams that join it by waiting; a
// captured stream waits for no other event.
bool Model::may_wait(const Stream& stream, const Event& event) const {
    if (!event.capture || !machine_.forks) return !event.capture && !stream.capture;
    return event.capture->open && (!stream.capture || stream.capture == event.capture);
}

Model::Event Model::event_of(const Stream& stream) const {
    return {stream.device,        stream.past | host_,  stream.capture,
            stream.recorded_past, stream.works_unasked, stream.behind_unasked};
}

void Model::wait(const std::shared_ptr<Stream>& stream, const Event& event) {
    if (!event.capture) {
        stream->past |= event.past;
        // The event may also come after a release on its stream, which the model does not count as a use: the wait may
        // last longer than everything that the model knows.
        if (event.works_unasked) stream->works_unasked = stream->behind_unasked = true;
        return;
    }
    if (!stream->capture) {
        stream->capture = event.capture;
        event.capture->members.push_back(stream);
    }
    stream->recorded_past |= event.recorded_past;
}

Past Model::race(const Past& past, const Work& work) const {
    Past unordered;
    for (const Use& use : work.uses) unordered |= conflicts(*use.buffer, use.writes, use.halves) & ~past;
    return unordered;
}

bool Model::recorded_race(const Stream& stream, const Work& work) const {
    for (std::size_t at = 0; at < stream.capture->recorded.size(); ++at) {
        if (stream.recorded_past[at]) continue;
        for (const Use& earlier : stream.capture->recorded[at].work.uses) {
            for (const Use& use : work.uses) {
                const bool meet = use.buffer == earlier.buffer && (use.halves & earlier.halves) != 0;
                if (meet && (use.writes || earlier.writes)) return true;
            }
        }
    }
    return false;
}

// Without the order check, the result of a race is undefined: the step is left out. With it, the step is refused,
// unless the earlier operation has ended, which only the runtime may know.
Expectation Model::with_race(Expectation expected, const Past& unordered, bool recorded) const {
    if (unordered.none() && !recorded) return expected;
    if (!expected.may(Code::ok)) {  // refused for several reasons: any of them may be reported
        if (machine_.order_checked) expected.codes |= bit(Code::not_ordered);
        return expected;
    }
    expected.race = true;
    expected.unordered = unordered;
    expected.skip = !machine_.order_checked;
    if (recorded) expected.codes &= ~bit(Code::ok);
    expected.codes |= bit(Code::not_ordered);
    return expected;
}

// The model carries out operations in issue order. That is one of the allowed orders: nothing comes before an operation
// issued earlier, and conflicting uses are ordered.
Model::Node Model::happen(const std::shared_ptr<Stream>& stream, const Work& work, const Past& before,
                          const std::shared_ptr<Graph>& graph) {
    const Node node = nodes_.size();
    Happened happened{stream->device, before, is_kernel(work.act), work.mark, 0, std::nullopt, graph, false};
    if (happened.kernel) happened.run = runs_of_[work.mark]++;
    change(work, happened.digest);
    const bool copy_call = is_copy(work.act) && !graph;
    const bool by_host = copy_call && copied_by_host(work);
    const bool between = copy_call && !by_host && std::any_of(work.uses.begin(), work.uses.end(), [&](const Use& use) {
                             return use.buffer->device != stream->device;
                         });
    for (const Use& use : work.uses) {
        happened.early |= !happened.kernel && !use.buffer->facts.plain;
        // A copy has read or written pageable memory when the call returns; so has a copy by the calling thread.
        const bool over = by_host || (copy_call && use.buffer->facts.pageable);
        if (!over) use.buffer->accesses.push_back({node, use.writes, use.halves, stream, between});
        stream->works_unasked |= use.buffer->facts.turns || use.buffer->facts.pooled;
        if (use.buffer->facts.turns) use.buffer->turn_of = stream;
        if (between || (use.buffer->let_go && use.buffer->facts.pooled)) may_wait_unasked(*use.buffer);
        if (!between) continue;
        // The copy waits for everything that these streams were given.
        for (const std::shared_ptr<Stream>& user : streams_of(*use.buffer)) between_ |= user->past;
    }
    if (between) between_ |= before, between_.set(node);
    nodes_.push_back(std::move(happened));
    return node;
}

void Model::change(const Work& work, std::optional<std::uint32_t>& digest) {
    if (work.uses.empty()) return;
    Buffer& first = *work.uses[0].buffer;
    const Buffer& second = *work.uses.back().buffer;
    const bool known = (work.act == Act::mix || first.known) && second.known;
    std::uint32_t read = 0;
    for (std::size_t i = first_of(work.part); i < end_of(work.part); ++i) {
        switch (work.act) {
            case Act::bump:
            case Act::bump_half:
                read = digest_step(read, first.values[i]);
                first.values[i] = bumped(first.values[i], work.value);
                break;
            case Act::mix:
                read = digest_step(read, second.values[i]);
                first.values[i] = mixed(second.values[i], work.value);
                break;
            case Act::join:
                first.values[i] = joined(first.values[i], second.values[i]);
                read = digest_step(read, first.values[i]);
                break;
            case Act::look: read = digest_step(read, first.values[i]); break;
            case Act::fill: first.values[i] = work.value; break;
            case Act::copy: first.values[i] = second.values[i]; break;
            case Act::copy_half:
                if (i >= elements / 2) first.values[i] = second.values[i - elements / 2];
                break;
            default: break;
        }
    }
    if (is_kernel(work.act) && known) digest = read;
    if (work.act == Act::fill) {
        first.known = true;
    } else if (work.act == Act::mix || work.act == Act::copy) {
        first.known = second.known;
    } else {
        first.known = known;
    }
}

// --- expectations

Expectation Model::expect(const Step& step) const {
    if (nodes_.size() + 64 > max_nodes) return skipped();
    switch (step.act) {
        case Act::open_stream:
        case Act::close_stream:
        case Act::stream_finished:
        case Act::stream_sync:
        case Act::device_sync:
        case Act::wait_stream: return expect_stream(step);
        case Act::record:
        case Act::drop_event:
        case Act::wait_event:
        case Act::event_finished:
        case Act::event_sync: return expect_event(step);
        case Act::allocate:
        case Act::release:
        case Act::drop_buffer: return expect_memory(step);
        case Act::open_view:
        case Act::close_view: return expect_view(step);
        case Act::begin_capture:
        case Act::end_capture:
        case Act::drop_capture:
        case Act::instantiate:
        case Act::drop_graph:
        case Act::drop_instance: return expect_capture(step);
        case Act::launch_graph: return expect_graph_launch(step);
        default: return expect_work(step);
    }
}

Expectation Model::expect_stream(const Step& step) const {
    if (step.act == Act::open_stream) {
        return streams_[step.at] || step.with >= machine_.gpus ? skipped() : Expectation();
    }
    if (step.act == Act::device_sync) return step.at < machine_.gpus ? Expectation() : skipped();
    if (!streams_[step.at]) return skipped();
    switch (step.act) {
        case Act::close_stream: return step.at < machine_.gpus ? skipped() : Expectation();
        case Act::wait_stream:
            if (!streams_[step.with]) return skipped();
            if (step.at == step.with) return Expectation();
            return may_wait(*streams_[step.at], event_of(*streams_[step.with])) ? Expectation()
                                                                                : answers(bit(Code::capture_error));
        default: return captured(step.at) ? answers(bit(Code::capture_error)) : Expectation();
    }
}

Expectation Model::expect_event(const Step& step) const {
    if (step.act == Act::record) {
        const bool again = step.value != 0;
        if (!streams_[step.with] || events_[step.at].has_value() != again) return skipped();
        const bool elsewhere = again && events_[step.at]->device != streams_[step.with]->device;
        if (captured(step.with) && !machine_.forks) return answers(bit(Code::capture_error) | bit(Code::wrong_device));
        return elsewhere ? answers(bit(Code::wrong_device)) : Expectation();
    }
    if (step.act == Act::wait_event) {
        if (!streams_[step.at] || !events_[step.with]) return skipped();
        return may_wait(*streams_[step.at], *events_[step.with]) ? Expectation() : answers(bit(Code::capture_error));
    }
    if (!events_[step.at]) return skipped();
    const bool asks = step.act != Act::drop_event;
    return asks && events_[step.at]->capture ? answers(bit(Code::capture_error)) : Expectation();
}

Expectation Model::expect_memory(const Step& step) const {
    if (step.act != Act::allocate) {
        if (!buffers_[step.at]) return skipped();
        const Buffer& buffer = *buffers_[step.at];
        const bool used = !buffer.open.empty() || held_by_graph(buffer);
        return step.act == Act::release && used ? answers(bit(Code::in_use)) : Expectation();
    }
    if (buffers_[step.at] || step.other >= kind_count) return skipped();
    const bool in_order = static_cast<Kind>(step.other) == Kind::stream_pool;
    if (in_order && (static_cast<std::size_t>(step.value) >= max_streams || !streams_[step.value])) return skipped();
    const std::size_t device = in_order ? streams_[step.value]->device : step.with;
    if (device >= machine_.gpus || (in_order && captured(step.value))) return skipped();
    if (!machine_.kinds[device][step.other].there) return answers(bit(Code::unsupported) | bit(Code::capture_error));
    if (!any_capture()) return Expectation();
    // Stream-ordered allocation works in a capture if the pool was made before it; shared memory may be plain host
    // memory.
    const bool may_go_on = in_order || static_cast<Kind>(step.other) == Kind::shared;
    return answers(bit(Code::capture_error) | (may_go_on ? bit(Code::ok) : 0));
}

// Where the halves of a buffer migrate together, a view covers the whole buffer.
Model::Opened Model::opened_by(const Step& step, const Buffer& buffer) {
    return {static_cast<ViewUse>(step.other & 3), buffer.facts.whole ? both_halves : halves_of_view(step.other)};
}

Expectation Model::expect_view(const Step& step) const {
    if (step.act == Act::close_view) return views_[step.at] ? Expectation() : skipped();
    if (views_[step.at] || !buffers_[step.with] || step.other >= view_ways) return skipped();
    const Buffer& buffer = *buffers_[step.with];
    const Opened wanted = opened_by(step, buffer);
    const bool lawful = wanted.use == ViewUse::concurrent ? buffer.facts.shares : buffer.facts.viewable;
    if (!lawful) return answers(bit(Code::not_accessible));
    const bool writes = wanted.use != ViewUse::read;
    for (const Opened& open : buffer.open) {
        const bool together = open.use == wanted.use && (open.use == ViewUse::read || open.use == ViewUse::concurrent);
        if (!together && (open.halves & wanted.halves) != 0) return answers(bit(Code::in_use));
    }
    if ((step.other & view_never_waits) == 0) return Expectation();
    // Work known to have ended needs no wait; where host and device have separate copies, a copy may still be needed.
    const bool over = (conflicts(buffer, writes) & ~host_).none();
    const bool quiet = std::none_of(buffer.accesses.begin(), buffer.accesses.end(),
                                    [](const Access& access) { return access.stream->works_unasked; });
    return over && quiet && buffer.facts.plain && !buffer.facts.moves && !buffer.refused_since
               ? Expectation()
               : answers(bit(Code::ok) | bit(Code::not_ready));
}

Expectation Model::expect_capture(const Step& step) const {
    switch (step.act) {
        case Act::begin_capture:
            if (captures_[step.at] || !streams_[step.with]) return skipped();
            return captured(step.with) ? answers(bit(Code::capture_error)) : Expectation();
        case Act::end_capture:
            if (!captures_[step.at] || graphs_[step.with]) return skipped();
            return unjoined(*captures_[step.at]) ? answers(bit(Code::capture_error)) : Expectation();
        case Act::drop_capture: return captures_[step.at] ? Expectation() : skipped();
        case Act::instantiate: return !graphs_[step.with] || instances_[step.at] ? skipped() : Expectation();
        case Act::drop_graph: return graphs_[step.at] ? Expectation() : skipped();
        default: return instances_[step.at] ? Expectation() : skipped();
    }
}

bool Model::refused_by_view(const Use& use) const {
    const bool excludes_readers = use.writes || use.buffer->facts.turns;
    return std::any_of(use.buffer->open.begin(), use.buffer->open.end(), [&](const Opened& open) {
        return (open.halves & use.halves) != 0 && (open.use != ViewUse::read || excludes_readers);
    });
}

Expectation Model::expect_graph_launch(const Step& step) const {
    if (!streams_[step.at] || !instances_[step.with] || captured(step.at)) return skipped();
    const Instance& instance = *instances_[step.with];
    const Stream& stream = *streams_[step.at];
    if ((instance.graph->devices >> stream.device & 1) == 0) return answers(bit(Code::wrong_device));
    Expectation expected;
    Past unordered;
    bool plain = true;
    for (const Recorded& one : instance.graph->recorded) {
        const bool viewed = std::any_of(one.work.uses.begin(), one.work.uses.end(),
                                        // A graph holds all of each buffer that it uses.
                                        [&](const Use& use) {
                                            return refused_by_view({use.buffer, use.writes, both_halves});
                                        });
        if (viewed) expected = answers(bit(Code::in_use));
        unordered |= race(past_of_launch(stream, instance), one.work);
        for (const Use& use : one.work.uses) {
            plain &= use.buffer->facts.plain;
            if (use.buffer->facts.turns) {
                if (use.buffer->device != stream.device) return answers(bit(Code::wrong_device));
                if (use.buffer->turn_of && use.buffer->turn_of != streams_[step.at]) return skipped();
                expected.codes |= bit(Code::in_use);  // another stream may still hold it
            }
            if (use.buffer->refused_since && machine_.order_checked) expected.codes |= bit(Code::not_ordered);
        }
    }
    expected = with_race(expected, unordered, false);
    expected.skip |= expected.race && !plain;
    return expected;
}

Expectation Model::expect_work(const Step& step) const {
    const std::optional<Work> work = work_of(step);
    if (!work) return skipped();
    const Stream& stream = *streams_[step.at];
    bool foreign = false;
    bool turns = false;
    bool plain = true;
    bool viewed = false;
    for (const Use& use : work->uses) {
        foreign |= use.buffer->device != stream.device;
        turns |= use.buffer->facts.turns;
        plain &= use.buffer->facts.plain;
        viewed |= refused_by_view(use);
    }
    Expectation expected;
    if (stream.capture) {
        if (is_copy(work->act) && foreign) return answers(bit(Code::capture_error));
        if (!is_kernel(work->act) && foreign) expected.codes |= bit(Code::capture_error);
        if (!is_kernel(work->act) && !plain) expected.codes |= bit(Code::capture_error) | bit(Code::unsupported);
    } else {
        if (viewed) expected.codes = bit(Code::in_use);
        if (turns) expected.codes |= bit(Code::in_use);  // another stream may still hold it
    }
    if (foreign && !is_copy(work->act)) {
        expected.codes |= bit(Code::wrong_device) | bit(Code::not_accessible) | bit(Code::unsupported);
    }
    // A stream that would have to wait for the copy may be in a capture, or memory for the copy may be unavailable.
    if (!is_kernel(work->act) && (foreign || !plain) && any_capture()) expected.codes |= bit(Code::capture_error);
    if (turns && !stream.capture && std::any_of(work->uses.begin(), work->uses.end(), [&](const Use& use) {
            return use.buffer->turn_of && use.buffer->turn_of != streams_[step.at];
        })) {
        return skipped();
    }
    if (stream.capture) return with_race(expected, {}, recorded_race(stream, *work));
    expected = with_race(expected, race(past_of(stream, *work), *work), false);
    const bool blurred =
        std::any_of(work->uses.begin(), work->uses.end(), [](const Use& use) { return use.buffer->refused_since; });
    if (blurred && machine_.order_checked) expected.codes |= bit(Code::not_ordered);
    expected.skip |= expected.race && (!plain || foreign);  // copies around a use wait for more than the model knows
    return expected;
}

bool Model::unjoined(const Capture& capture) const {
    return std::any_of(capture.members.begin(), capture.members.end(), [&](const auto& member) {
        return (member->recorded_past & ~capture.origin->recorded_past).any();
    });
}

// --- answers

namespace {
bool differ(const Values& one, const Values& other, unsigned halves) {
    for (std::size_t i = first_of(halves); i < end_of(halves); ++i) {
        if (one[i] != other[i]) return true;
    }
    return false;
}
}  // namespace

std::string Model::judge(const Step& step, const Expectation& expected, const Answer& answer,
                         const std::vector<Run>& ran) const {
    if (answer.code != Code::ok) return {};
    Past claimed;  // what the answer says has ended
    if (expected.unordered.any()) claimed = expected.unordered & ~ordered_unasked();
    switch (step.act) {
        case Act::event_finished:
            if (answer.flag) claimed = events_[step.at]->past;
            if (!answer.flag && !events_[step.at]->behind_unasked && (events_[step.at]->past & ~host_).none())
                return "false, although it is known to be over";
            break;
        case Act::stream_finished:
            if (answer.flag) claimed = streams_[step.at]->past;
            if (!answer.flag && !streams_[step.at]->works_unasked && (streams_[step.at]->past & ~host_).none()) {
                return "false, although it is known to be over";
            }
            break;
        case Act::event_sync: claimed = events_[step.at]->past; break;
        case Act::stream_sync: claimed = streams_[step.at]->past; break;
        case Act::device_sync:
            for (Node node = 0; node < nodes_.size(); ++node) claimed[node] = nodes_[node].device == step.at;
            break;
        case Act::open_view: {
            const Buffer& buffer = *buffers_[step.with];
            const Opened opened = opened_by(step, buffer);
            claimed = wholly(conflicts(buffer, opened.use != ViewUse::read, opened.halves));
            if (answer.read && buffer.known && differ(*answer.read, buffer.values, halves_of_view(step.other))) {
                return "the view shows other values";
            }
            break;
        }
        case Act::close_view:
            if (answer.read && views_[step.at]->buffer->known &&
                differ(*answer.read, views_[step.at]->buffer->values, views_[step.at]->halves)) {
                return "the values changed under the view";
            }
            break;
        case Act::drop_instance: claimed = instances_[step.at]->launched; break;
        default: break;
    }
    return not_over(closure(claimed), ran);
}

std::string Model::not_over(const Past& claimed, const std::vector<Run>& ran) const {
    std::map<std::uint32_t, std::size_t> count;
    for (const Run& run : ran) ++count[run.mark];
    for (Node node = 0; node < nodes_.size(); ++node) {
        if (!claimed[node] || !nodes_[node].kernel || count[nodes_[node].mark] > nodes_[node].run) continue;
        return "over, it says, but kernel " + std::to_string(nodes_[node].mark) + " has not run yet";
    }
    return {};
}

std::string Model::judge_runs(const std::vector<Run>& ran) const {
    std::map<std::uint32_t, std::vector<std::size_t>> at;  // by mark
    for (std::size_t index = 0; index < ran.size(); ++index) at[ran[index].mark].push_back(index);
    std::vector<std::size_t> place(nodes_.size(), 0);
    std::size_t expected = 0;
    for (Node node = 0; node < nodes_.size(); ++node) {
        const Happened& one = nodes_[node];
        if (!one.kernel) continue;
        ++expected;
        const std::string name = "kernel " + std::to_string(one.mark);
        if (at[one.mark].size() <= one.run) return name + " never ran";
        place[node] = at[one.mark][one.run];
        if (one.digest && ran[place[node]].digest != *one.digest) return name + " read other values than it had to";
        if (one.graph && one.graph->instances > 1) continue;
        for (Node before = 0; before < node; ++before) {
            const Happened& earlier = nodes_[before];
            if (!one.before[before] || !earlier.kernel || (earlier.graph && earlier.graph->instances > 1)) continue;
            if (place[before] > place[node]) {
                return name + " ran before kernel " + std::to_string(earlier.mark) + ", which it comes after";
            }
        }
    }
    return expected == ran.size() ? "" : "a kernel ran that was not to run";
}

std::optional<Values> Model::contents(std::size_t buffer) const {
    if (!buffers_[buffer] || !buffers_[buffer]->known) return std::nullopt;
    return buffers_[buffer]->values;
}

std::optional<Step> Model::mend(const Step& step) const {
    if (!streams_[step.at] || captured(step.at)) return std::nullopt;
    std::vector<Work> works;
    if (step.act == Act::launch_graph) {
        for (const Recorded& one : instances_[step.with]->graph->recorded) works.push_back(one.work);
    } else if (const std::optional<Work> work = work_of(step)) {
        works.push_back(*work);
    }
    for (const Work& work : works) {
        const Past past = step.act == Act::launch_graph ? past_of_launch(*streams_[step.at], *instances_[step.with])
                                                        : past_of(*streams_[step.at], work);
        for (const Use& use : work.uses) {
            const Past unordered = conflicts(*use.buffer, use.writes, use.halves) & ~past;
            for (std::size_t slot = 0; slot < max_streams; ++slot) {
                if (unordered.none() || !streams_[slot] || captured(slot)) continue;
                if ((streams_[slot]->past & unordered).none()) continue;
                return Step{Act::wait_stream, step.at, static_cast<std::uint8_t>(slot), 0, 0};
            }
        }
    }
    return std::nullopt;
}

// --- effects

void Model::apply(const Step& step, const Expectation& expected, const Answer& answer) {
    if (answer.code == Code::ok && expected.unordered.any()) learn_from_race(streams_[step.at], expected.unordered);
    if (answer.code != Code::ok) {
        if (const std::optional<Work> refused = work_of(step)) {
            for (const Use& use : refused->uses) use.buffer->refused_since = true;
        }
    }
    // end_capture() that is refused for an unjoined stream still ends the capture.
    if (answer.code != Code::ok && step.act != Act::end_capture) return;
    switch (step.act) {
        case Act::allocate:
        case Act::release:
        case Act::drop_buffer: return apply_memory(step);
        case Act::open_view:
        case Act::close_view: return apply_view(step);
        case Act::begin_capture:
        case Act::end_capture:
        case Act::drop_capture:
        case Act::instantiate:
        case Act::drop_graph:
        case Act::drop_instance: return apply_capture(step, answer);
        case Act::launch_graph: return apply_graph_launch(step);
        case Act::bump:
        case Act::bump_half:
        case Act::mix:
        case Act::join:
        case Act::look:
        case Act::fill:
        case Act::copy:
        case Act::copy_half: return apply_work(step);
        default: return apply_stream(step, answer);
    }
}

void Model::apply_stream(const Step& step, const Answer& answer) {
    switch (step.act) {
        case Act::open_stream:
            streams_[step.at] = std::make_shared<Stream>(Stream{step.with, {}, nullptr, {}, false});
            break;
        case Act::close_stream: streams_[step.at].reset(); break;
        case Act::record: events_[step.at] = event_of(*streams_[step.with]); break;
        case Act::drop_event: events_[step.at].reset(); break;
        case Act::wait_event: wait(streams_[step.at], *events_[step.with]); break;
        case Act::wait_stream:
            if (step.at != step.with) wait(streams_[step.at], event_of(*streams_[step.with]));
            break;
        case Act::event_finished:
            if (answer.flag) host_ |= events_[step.at]->past;
            break;
        case Act::event_sync: host_ |= events_[step.at]->past; break;
        case Act::stream_finished:
            if (answer.flag) host_ |= streams_[step.at]->past;
            break;
        case Act::stream_sync: host_ |= streams_[step.at]->past; break;
        case Act::device_sync: {
            Past all;
            for (Node node = 0; node < nodes_.size(); ++node) all[node] = nodes_[node].device == step.at;
            host_ |= closure(all);
            break;
        }
        default: break;
    }
}

void Model::apply_memory(const Step& step) {
    if (step.act != Act::allocate) {
        const std::shared_ptr<Buffer> buffer = std::exchange(buffers_[step.at], nullptr);
        buffer->let_go = true;
        if (buffer->facts.pooled) may_wait_unasked(*buffer);
        return;
    }
    const bool in_order = static_cast<Kind>(step.other) == Kind::stream_pool;
    const std::size_t device = in_order ? streams_[step.value]->device : step.with;
    auto buffer = std::make_shared<Buffer>();
    buffer->device = device;
    buffer->facts = machine_.kinds[device][step.other];
    if (in_order) {
        Stream& stream = *streams_[step.value];
        stream.works_unasked = true;
        const Past before = stream.past | host_;
        const Node node = happen(streams_[step.value], Work{Act::allocate, 0, 0, {}, both_halves}, before);
        stream.past = before;
        stream.past.set(node);
        buffer->made = stream.past;
        buffer->maker = streams_[step.value];
    }
    all_buffers_.push_back(buffer);
    buffers_[step.at] = std::move(buffer);
}

void Model::apply_view(const Step& step) {
    if (step.act == Act::close_view) {
        const View& view = *views_[step.at];
        std::vector<Opened>& open = view.buffer->open;
        open.erase(std::find_if(open.begin(), open.end(), [&](const Opened& one) {
            return one.use == view.opened.use && one.halves == view.opened.halves;
        }));
        return views_[step.at].reset();
    }
    const std::shared_ptr<Buffer>& buffer = buffers_[step.with];
    const Opened opened = opened_by(step, *buffer);
    host_ |= closure(wholly(conflicts(*buffer, opened.use != ViewUse::read, opened.halves)));
    buffer->turn_of.reset();
    buffer->refused_since = false;
    const unsigned halves = halves_of_view(step.other);
    views_[step.at] = View{buffer, opened, halves};
    buffer->open.push_back(opened);
    if (opened.use == ViewUse::read || opened.use == ViewUse::concurrent) return;
    buffer->known |= halves == both_halves;  // the player writes all elements at once
    for (std::size_t i = first_of(halves); i < end_of(halves); ++i) {
        buffer->values[i] = step.value + static_cast<std::int32_t>(i);
    }
}

Model::~Model() {
    for (std::shared_ptr<Capture>& capture : captures_) {
        if (capture) close(capture);
    }
}

void Model::close(const std::shared_ptr<Capture>& capture) {
    capture->open = false;
    for (const std::shared_ptr<Stream>& member : capture->members) {
        member->capture.reset();
        member->recorded_past.reset();
    }
}

void Model::apply_capture(const Step& step, const Answer& answer) {
    switch (step.act) {
        case Act::begin_capture: {
            const std::shared_ptr<Stream>& stream = streams_[step.with];
            captures_[step.at] = std::make_shared<Capture>(Capture{stream, {}, {stream}, true});
            stream->capture = captures_[step.at];
            break;
        }
        case Act::end_capture: {
            const std::shared_ptr<Capture> capture = std::exchange(captures_[step.at], nullptr);
            if (answer.code == Code::ok) {
                graphs_[step.with] = std::make_shared<Graph>(Graph{0, capture->recorded, 0});
                for (const auto& member : capture->members) graphs_[step.with]->devices |= 1u << member->device;
            }
            close(capture);
            break;
        }
        case Act::drop_capture: close(std::exchange(captures_[step.at], nullptr)); break;
        case Act::instantiate:
            ++graphs_[step.with]->instances;
            instances_[step.at] = std::make_shared<Instance>(Instance{graphs_[step.with], {}});
            break;
        case Act::drop_graph: graphs_[step.at].reset(); break;
        case Act::drop_instance:
            host_ |= closure(instances_[step.at]->launched);
            instances_[step.at].reset();
            break;
        default: break;
    }
}

// The calling thread copies: the copy has ended at return and leaves no work on a stream.
bool Model::copied_by_host(const Work& work) {
    const auto is = [&](bool KindFacts::*fact) { return [fact](const Use& use) { return use.buffer->facts.*fact; }; };
    return std::all_of(work.uses.begin(), work.uses.end(), is(&KindFacts::on_host)) &&
           std::any_of(work.uses.begin(), work.uses.end(), is(&KindFacts::pageable));
}

void Model::apply_work(const Step& step) {
    const Work work = *work_of(step);
    const std::shared_ptr<Stream>& stream = streams_[step.at];
    ++next_mark_;
    if (stream->capture) {
        std::vector<Recorded>& recorded = stream->capture->recorded;
        recorded.push_back({work, stream->recorded_past});
        stream->recorded_past.set(recorded.size() - 1);
        return;
    }
    const Past before = past_of(*stream, work);
    const Node node = happen(stream, work, before);
    stream->past = before;
    stream->past.set(node);
    if (!is_copy(work.act) || copied_by_host(work)) return;
    for (const Use& use : work.uses) {
        if (use.buffer->device == stream->device || use.buffer->facts.pageable) continue;
        for (const Access& access : use.buffer->accesses) {
            if (access.stream->device == use.buffer->device && !access.between) access.stream->past |= stream->past;
        }
    }
}

void Model::apply_graph_launch(const Step& step) {
    const std::shared_ptr<Stream>& stream = streams_[step.at];
    Instance& instance = *instances_[step.with];
    const std::size_t first = nodes_.size();
    const Past before = past_of_launch(*stream, instance);
    Past all = before;
    for (const Recorded& one : instance.graph->recorded) {
        all.set(happen(stream, one.work, before | shifted(one.after, first), instance.graph));
    }
    stream->past = all;
    instance.launched = all;
}

}  // namespace exploration
