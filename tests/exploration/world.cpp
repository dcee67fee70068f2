// SPDX-License-Identifier: Apache-2.0
// Carries out steps on the runtime.
#include "world.hpp"

#include <algorithm>
#include <utility>

namespace exploration {

using namespace isthmus;

namespace {

constexpr std::array<MemoryKind, kind_count> kinds = {MemoryKind::device,  MemoryKind::pinned, MemoryKind::unknown,
                                                      MemoryKind::managed, MemoryKind::pool,   MemoryKind::pool};

template <class T>
Answer answer(const Result<T>& result) {
    Answer given;
    given.code = result.code();
    if (!result) given.text = result.error().text();
    return given;
}
// Stores the result of a call in its slot.
template <class T>
Answer keep(Result<T> result, std::optional<T>& slot) {
    Answer given = answer(result);
    if (result) slot.emplace(std::move(result).value());
    return given;
}
Answer flag(const Result<bool>& result) {
    Answer given = answer(result);
    given.flag = result && *result;
    return given;
}

template <class T>
Values shown(const HostView<T>& view, unsigned halves) {
    Values values{};
    std::copy(view.begin(), view.end(), values.begin() + static_cast<std::ptrdiff_t>(first_of(halves)));
    return values;
}
Values shown(const ConcurrentView<std::int32_t>& view, unsigned halves) {
    Values values{};
    for (std::size_t i = 0; i < view.size(); ++i) {
        values[first_of(halves) + i] = __atomic_load_n(view.data() + i, __ATOMIC_ACQUIRE);
    }
    return values;
}

}  // namespace

World::World(Runtime& runtime) : runtime_(runtime) {
    const std::size_t gpus = std::min<std::size_t>(runtime.device_count() - 1, 2);
    for (std::size_t index = 0; index < gpus; ++index) streams_[index] = device(index).stream();
}

// Destroys views before their buffers, and open captures before their streams.
World::~World() {
    for (auto& view : views_) view.reset();
    for (auto& capture : captures_) capture.reset();
}

Answer World::carry_out(const Step& step, std::uint32_t mark) {
    switch (step.act) {
        case Act::open_stream:
        case Act::close_stream:
        case Act::stream_finished:
        case Act::stream_sync:
        case Act::device_sync:
        case Act::wait_stream: return of_streams(step);
        case Act::record:
        case Act::drop_event:
        case Act::wait_event:
        case Act::event_finished:
        case Act::event_sync: return of_events(step);
        case Act::allocate:
        case Act::release:
        case Act::drop_buffer: return of_memory(step);
        case Act::open_view:
        case Act::close_view: return of_views(step);
        case Act::begin_capture:
        case Act::end_capture:
        case Act::drop_capture:
        case Act::instantiate:
        case Act::drop_graph:
        case Act::drop_instance:
        case Act::launch_graph: return of_graphs(step);
        default: return of_work(step, mark);
    }
}

Answer World::of_streams(const Step& step) {
    switch (step.act) {
        case Act::open_stream: return keep(device(step.with).create_stream(), streams_[step.at]);
        case Act::close_stream: return streams_[step.at].reset(), Answer();
        case Act::stream_finished: return flag(streams_[step.at]->finished());
        case Act::stream_sync: return answer(streams_[step.at]->synchronize());
        case Act::device_sync: return answer(device(step.at).synchronize());
        default: return answer(streams_[step.at]->wait_stream(*streams_[step.with]));
    }
}

Answer World::of_events(const Step& step) {
    std::optional<Event>& event = events_[step.act == Act::wait_event ? step.with : step.at];
    switch (step.act) {
        case Act::record:
            if (step.value != 0) return answer(streams_[step.with]->record(*event));
            return keep(streams_[step.with]->record(), event);
        case Act::drop_event: return event.reset(), Answer();
        case Act::wait_event: return answer(streams_[step.at]->wait(*event));
        case Act::event_finished: return flag(event->finished());
        default: return answer(event->synchronize());
    }
}

// With separate memory, the staged kind that larger buffers get there: in place they would be pinned memory, which is
// tried separately.
SharedUse shared_use(const Device& device) {
    SharedUse use;
    if (device.capabilities().memory == MemoryModel::separate) use.kind = MemoryKind::device;
    return use;
}

Result<Buffer<World::Element>> World::allocate(const Step& step) {
    switch (static_cast<Kind>(step.other)) {
        case Kind::stream_pool: return streams_[static_cast<std::size_t>(step.value)]->allocate<Element>(elements);
        case Kind::shared: return device(step.with).allocate_shared<Element>(elements, shared_use(device(step.with)));
        default: return device(step.with).allocate<Element>(elements, kinds[step.other]);
    }
}

Answer World::of_memory(const Step& step) {
    Buffer<Element>& buffer = buffers_[step.at];
    switch (step.act) {
        case Act::allocate: {
            Result<Buffer<Element>> allocated = allocate(step);
            Answer given = answer(allocated);
            if (allocated) buffer = std::move(allocated).value();
            return given;
        }
        case Act::release: return answer(buffer.release());
        default: return buffer = Buffer<Element>(), Answer();
    }
}

Answer World::of_views(const Step& step) {
    std::optional<View>& slot = views_[step.at];
    if (step.act == Act::close_view) {
        Answer given;
        given.read = std::visit([&](const auto& view) { return shown(view, slot->halves); }, slot->view);
        slot.reset();
        return given;
    }
    const unsigned halves = halves_of_view(step.other);
    Buffer<Element>& buffer = buffers_[step.with];
    if (halves == both_halves) return open_view(step, buffer, halves);
    Result<BufferPart<Element>> part = buffer.part(first_of(halves), elements / 2);
    return part ? open_view(step, *part, halves) : answer(part);
}

template <class Memory>
Answer World::open_view(const Step& step, Memory& buffer, unsigned halves) {
    std::optional<View>& slot = views_[step.at];
    const Wait wait = (step.other & view_never_waits) != 0 ? Wait::never() : Wait();
    const auto use = static_cast<ViewUse>(step.other & 3);
    if (use == ViewUse::read) {
        Result<HostView<const Element>> view = buffer.read_on_host(wait);
        Answer given = answer(view);
        if (view) {
            given.read = shown(*view, halves);
            slot.emplace(View{std::move(view).value(), halves});
        }
        return given;
    }
    if (use == ViewUse::concurrent) {
        Result<ConcurrentView<Element>> view = buffer.concurrent_on_host(wait);
        Answer given = answer(view);
        if (view) {
            given.read = shown(*view, halves);
            slot.emplace(View{std::move(view).value(), halves});
        }
        return given;
    }
    Result<HostView<Element>> view =
        use == ViewUse::write ? buffer.write_on_host(wait) : buffer.read_write_on_host(wait);
    Answer given = answer(view);
    if (!view) return given;
    if (use == ViewUse::read_write) given.read = shown(*view, halves);
    for (std::size_t i = first_of(halves); i < end_of(halves); ++i) {
        (*view)[i - first_of(halves)] = step.value + static_cast<Element>(i);
    }
    slot.emplace(View{std::move(view).value(), halves});
    return given;
}

Answer World::of_graphs(const Step& step) {
    switch (step.act) {
        case Act::begin_capture: return keep(streams_[step.with]->begin_capture(), captures_[step.at]);
        case Act::end_capture: {
            Answer given = keep(captures_[step.at]->end(), graphs_[step.with]);
            captures_[step.at].reset();
            return given;
        }
        case Act::drop_capture: return captures_[step.at].reset(), Answer();
        case Act::instantiate: return keep(graphs_[step.with]->instantiate(), instances_[step.at]);
        case Act::drop_graph: return graphs_[step.at].reset(), Answer();
        case Act::drop_instance: return instances_[step.at].reset(), Answer();
        default: return answer(streams_[step.at]->launch(*instances_[step.with]));
    }
}

Answer World::of_work(const Step& step, std::uint32_t mark) {
    Stream& stream = *streams_[step.at];
    Buffer<Element>& first = buffers_[step.with];
    Buffer<Element>& second = buffers_[step.other % max_buffers];
    switch (step.act) {
        case Act::bump: return answer(stream.launch(bump_kernel, elements, first, step.value, mark));
        case Act::bump_half: {
            Result<BufferPart<Element>> part = first.part(step.other % 2 == 0 ? 0 : elements / 2, elements / 2);
            if (!part) return answer(part);
            return answer(stream.launch(bump_kernel, elements / 2, *part, step.value, mark));
        }
        case Act::mix: return answer(stream.launch(mix_kernel, elements, first, second, step.value, mark));
        case Act::join: return answer(stream.launch(join_kernel, elements, first, second, mark));
        case Act::look: return answer(stream.launch(look_kernel, elements, first, mark));
        case Act::fill: return answer(stream.fill(first, step.value));
        case Act::copy: return answer(stream.copy(first, second));
        default: return answer(stream.copy(first, elements / 2, second, 0, elements / 2));
    }
}

Result<Values> World::contents(std::size_t buffer, std::size_t on_device) {
    Values values{};
    Buffer<Element>& from = buffers_[buffer];
    Stream& stream = *streams_[on_device];
    Result<void> copied = stream.copy_to_host<Element>(values, from);
    if (copied) copied = stream.synchronize();
    if (!copied) return std::move(copied).error();
    return values;
}

MachineFacts learn(Runtime& runtime) {
    MachineFacts facts;
    facts.gpus = std::min<std::size_t>(runtime.device_count() - 1, 2);
    if (Result<Capture> capture = runtime.device(0).value()->stream().begin_capture()) {
        facts.forks = runtime.device(0).value()->stream().record().ok();
    }
    for (std::size_t index = 0; index < facts.gpus; ++index) {
        Device& device = *runtime.device(index).value();
        for (std::size_t kind = 0; kind < kind_count; ++kind) {
            const bool shared = static_cast<Kind>(kind) == Kind::shared;
            Result<Buffer<std::int32_t>> buffer =
                shared ? device.allocate_shared<std::int32_t>(elements, shared_use(device))
                       : device.allocate<std::int32_t>(elements, kinds[kind]);
            KindFacts& known = facts.kinds[index][kind];
            known.there = buffer.ok() && buffer->path() != LaunchPath::refuse;
            if (!known.there) continue;
            known.viewable = buffer->read_on_host().ok();
            known.moves = buffer->path() == LaunchPath::prefetch;
            known.pooled = buffer->kind() == MemoryKind::pool;
            known.turns = buffer->path() == LaunchPath::attach;
            known.whole = known.turns || buffer->path() == LaunchPath::stage;
            known.shares = buffer->concurrent_on_host().ok();
            const bool in_place = buffer->path() == LaunchPath::pass || buffer->path() == LaunchPath::prefetch;
            const MemoryKind made = buffer->kind();
            known.pageable = in_place && (made == MemoryKind::host || made == MemoryKind::host_numa);
            known.on_host = known.pageable || (in_place && made == MemoryKind::pinned);
            known.plain = in_place && !known.pageable;
        }
    }
    return facts;
}

}  // namespace exploration
