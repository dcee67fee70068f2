// SPDX-License-Identifier: Apache-2.0
// Reads the events of a trace in their order, thread by thread: calls within calls are the runtime's own.
#include "recording.hpp"

#include "trace/trace_document.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace isthmus::tools::replay {
namespace {

using trace::arguments_of;
using trace::count_of;
using trace::Json;
using trace::text_of;
using trace::without_category;

template <class T>
std::optional<T> number_in(std::string_view text, int base = 10) {
    T number{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}
std::uint64_t address_of(const Json& arguments) {
    const std::string text = text_of(arguments, "address");
    return text.starts_with("0x") ? number_in<std::uint64_t>(std::string_view(text).substr(2), 16).value_or(0) : 0;
}

// The value of an enumeration from 0 to `last` that has this name.
template <class E>
std::optional<E> named(std::string_view text, E last) {
    for (int value = 0; value <= static_cast<int>(last); ++value) {
        if (isthmus::name(static_cast<E>(value)) == text) return static_cast<E>(value);
    }
    return std::nullopt;
}
std::optional<MemoryKind> kind_of(std::string_view text) {
    return named(text, static_cast<MemoryKind>(memory_kind_count - 1));
}
std::optional<ArgumentUse> argument_use(std::string_view text) {
    if (text == "read") return ArgumentUse::read;
    if (text == "write") return ArgumentUse::write;
    if (text == "read_write") return ArgumentUse::read_write;
    if (text == "concurrent") return ArgumentUse::concurrent;
    return std::nullopt;
}

// The memory that lives at an address.
class Addresses {
public:
    void begin(std::uint64_t address, std::size_t memory) { living_[address] = memory; }
    // Nothing: none that is known begins there.
    std::optional<std::size_t> end(std::uint64_t address) {
        const auto found = living_.find(address);
        if (found == living_.end()) return std::nullopt;
        const std::size_t memory = found->second;
        living_.erase(found);
        return memory;
    }
    struct Place {
        std::size_t memory;
        std::uint64_t first;
    };
    // That which begins last at or before the address. `reaches`: whether it has this byte.
    template <class Reaches>
    std::optional<Place> find(std::uint64_t address, Reaches reaches) const {
        auto behind = living_.upper_bound(address);
        if (behind == living_.begin()) return std::nullopt;
        --behind;
        const std::uint64_t first = address - behind->first;
        return reaches(behind->second, first) ? std::optional(Place{behind->second, first}) : std::nullopt;
    }

private:
    std::map<std::uint64_t, std::size_t> living_;
};

class Reader {
public:
    explicit Reader(Recording& recording) : recording_(recording) {}

    void read(const Json& event) {
        const std::string phase = text_of(event, "ph");
        if (phase == "M" || phase == "C" || phase == "X" || phase == "s" || phase == "f") return;
        const Json& arguments = arguments_of(event);
        const std::string category = text_of(event, "cat");
        const std::string name = text_of(event, "name");
        const std::uint64_t number = count_of(event, "tid");
        Thread& thread = threads_[number];
        if (phase == "i") return mark(thread, category, without_category(name), arguments);
        if (phase == "B") return begin(thread, category, name, arguments);
        if (phase == "E") return end(thread, arguments);
        if (phase == "b") return open(thread, category, name, arguments);
        if (phase == "e") return close(thread, category, name, arguments);
        ++recording_.unclear;
    }

    // Captured operations run nothing; the steps keep their numbers until here.
    void finish() {
        recording_.threads = threads_.size();
        std::vector<std::size_t> moved(recording_.steps.size(), 0);
        std::vector<Step> kept;
        for (std::size_t at = 0; at < recording_.steps.size(); ++at) {
            moved[at] = kept.size();
            Step& step = recording_.steps[at];
            const bool closes = step.act == Act::close_view || step.act == Act::close_scope;
            if (left_out_.contains(at) || (closes && left_out_.contains(step.other))) continue;
            if (closes) step.other = moved[step.other];
            kept.push_back(std::move(step));
        }
        recording_.steps = std::move(kept);
    }

private:
    static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
    struct Thread {
        std::size_t depth = 0;       // calls that are open
        std::size_t step = nowhere;  // of the outermost one, or of a view or scope that just opens
        bool opening = false;        // a view or a scope: what follows at once is within its call
        bool told = false;           // all arguments were told: what follows is of views that the call opens
    };
    struct Scope {
        std::size_t step;
        std::uint64_t bytes;
    };

    Step& add(Act act, const std::string& name, const Json& arguments) {
        Step step;
        step.act = act;
        step.name = name;
        step.device = static_cast<std::uint32_t>(count_of(arguments, "device"));
        step.stream = count_of(arguments, "stream");
        recording_.steps.push_back(std::move(step));
        return recording_.steps.back();
    }
    std::size_t last() const { return recording_.steps.size() - 1; }

    void begin(Thread& thread, const std::string& category, const std::string& name, const Json& arguments) {
        if (thread.depth++ > 0) return;
        thread.told = false;
        const bool within = thread.opening && category == "wait";  // the opening of a view waits
        if (within) return;
        thread.opening = false;
        thread.step = nowhere;
        if (category == "launch" || category == "graph_launch" || category == "native_work") {
            add(Act::launch, name, arguments);
        } else if (category == "copy") {
            add(Act::copy, name, arguments);
        } else if (category == "fill") {
            add(Act::fill, name, arguments);
        } else if (category == "wait") {
            add(Act::wait, name, arguments);
        } else if (category == "read_back") {
            add(Act::read_back, name, arguments).memory = used(arguments, ArgumentUse::read).memory;
        } else {
            if (category == "ring_publish") ++recording_.published;
            return;  // what it makes or gives back is told by marks
        }
        thread.step = last();
    }
    void end(Thread& thread, const Json& arguments) {
        if (thread.depth == 0) {
            ++recording_.unclear;
            return;
        }
        if (--thread.depth > 0 || thread.opening || thread.step == nowhere) return;
        recording_.steps[thread.step].refused = !text_of(arguments, "code").empty();
        thread.step = nowhere;
    }

    void open(Thread& thread, const std::string& category, const std::string& name, const Json& arguments) {
        const bool view = category == "host_view";
        const std::string key = scope_key(view, arguments);
        // A call of a ring opens views for the program.
        if (thread.depth > 0 && thread.step != nowhere && !thread.opening) {
            ++inner_[key];
            thread.told = true;
            return;
        }
        Step& step = add(view ? Act::open_view : Act::open_scope, name, arguments);
        if (view) {
            const bool reads = name == "a view for reading";
            const bool together = name == "a concurrent view";
            step.uses.push_back(used(arguments, reads      ? ArgumentUse::read
                                                : together ? ArgumentUse::concurrent
                                                           : ArgumentUse::read_write));
            step.memory = step.uses.front().memory;
        }
        open_[key].push_back({last(), count_of(arguments, "bytes")});
        thread.step = last();
        thread.opening = true;
        thread.told = false;
    }
    void close(Thread& thread, const std::string& category, const std::string& name, const Json& arguments) {
        const bool view = category == "host_view";
        const std::string key = scope_key(view, arguments);
        if (const auto inner = inner_.find(key); thread.depth > 0 && inner != inner_.end()) {
            if (--inner->second == 0) inner_.erase(inner);
            return;
        }
        std::vector<Scope>& open = open_[key];
        const auto found = std::find_if(open.rbegin(), open.rend(), [&](const Scope& one) {
            return !view || (one.bytes == count_of(arguments, "bytes") && recording_.steps[one.step].name == name);
        });
        const auto any = found != open.rend() ? found : open.rbegin();
        if (any == open.rend()) {
            ++recording_.unclear;
            return;
        }
        const std::size_t opened = any->step;
        open.erase(std::next(any).base());
        thread.opening = false;
        if (!text_of(arguments, "code").empty()) {
            recording_.steps[opened].refused = true;  // where it is not, it closes at once
        }
        add(view ? Act::close_view : Act::close_scope, name, arguments).other = opened;
    }
    static std::string scope_key(bool view, const Json& arguments) {
        return view ? "v" + text_of(arguments, "address") : "s" + std::to_string(count_of(arguments, "stream"));
    }

    void mark(Thread& thread, const std::string& category, const std::string& name, const Json& arguments) {
        if (category == "buffer") return made(name, arguments);
        if (category == "buffer_end") return gone(arguments);
        if (category != "argument" || thread.step == nowhere || thread.depth > 1 || thread.told) return;
        const std::optional<ArgumentUse> use = argument_use(name);
        if (!use) {
            ++recording_.unclear;
            return;
        }
        Step& step = recording_.steps[thread.step];
        const std::string how = text_of(arguments, "reason");
        if (how == "captured" && !left_out_.contains(thread.step)) {
            left_out_.insert(thread.step);
            ++recording_.captured;
        }
        if (!step.mode) step.mode = named(how, LaunchMode::verify);
        const MemoryUse told = used(arguments, *use);
        if (step.act == Act::open_view) {
            step.uses.assign(1, told);
            step.memory = told.memory;
        } else {
            step.uses.push_back(told);
        }
    }

    void made(const std::string& name, const Json& arguments) {
        const std::uint64_t address = address_of(arguments);
        if (address == 0) return;  // no bytes
        Memory memory;
        memory.bytes = count_of(arguments, "bytes");
        memory.kind = kind_of(text_of(arguments, "memory")).value_or(MemoryKind::unknown);
        memory.device = static_cast<std::uint32_t>(count_of(arguments, "device"));
        const std::optional<SharedUse> use = use_of(text_of(arguments, "reason"));
        memory.made = name == "adopted" ? Made::adopted : name == "kind" ? Made::of_kind : Made::shared;
        if (!use && (memory.made != Made::of_kind || !text_of(arguments, "reason").empty())) ++recording_.unclear;
        memory.use = use.value_or(SharedUse());
        // The CPU device has host memory for every kind: the kind that was asked for counts, or that of allocate().
        if (memory.made == Made::of_kind && memory.use.kind) memory.kind = *memory.use.kind;
        if (memory.made == Made::of_kind && !memory.use.kind && memory.kind == MemoryKind::host) {
            memory.kind = MemoryKind::unknown;
        }
        // The end of earlier memory at this address found no room.
        if (const std::optional<std::size_t> earlier = buffers_.end(address)) {
            add(Act::end, "", arguments).memory = *earlier;
        }
        buffers_.begin(address, enter(memory));
        add(Act::make, name, arguments).memory = recording_.memories.size() - 1;
    }
    void gone(const Json& arguments) {
        const std::uint64_t address = address_of(arguments);
        if (const std::optional<std::size_t> memory = buffers_.end(address)) {
            add(Act::end, "", arguments).memory = *memory;
        }
    }
    std::size_t enter(const Memory& memory) {
        recording_.memories.push_back(memory);
        return recording_.memories.size() - 1;
    }

    MemoryUse used(const Json& arguments, ArgumentUse use) {
        const std::uint64_t address = address_of(arguments), bytes = count_of(arguments, "bytes");
        const std::optional<MemoryKind> kind = kind_of(text_of(arguments, "memory"));
        const bool raw = !kind || *kind == MemoryKind::unknown;
        Addresses& known = raw ? raws_ : buffers_;
        const auto reaches = [&](std::size_t memory, std::uint64_t first) {
            // What is only known by its uses grows with them where they begin alike.
            const Memory& of = recording_.memories[memory];
            return first == 0 || (first < of.bytes && bytes <= of.bytes - first);
        };
        const std::optional<Addresses::Place> place = known.find(address, reaches);
        if (place) {
            Memory& of = recording_.memories[place->memory];
            if (of.made == Made::before || of.made == Made::raw) of.bytes = std::max(of.bytes, bytes);
            const std::uint64_t first = std::min(place->first, of.bytes);
            return {place->memory, first, std::min(bytes, of.bytes - first), use};
        }
        Memory memory;
        memory.made = raw ? Made::raw : Made::before;
        memory.bytes = bytes;
        memory.kind = kind.value_or(MemoryKind::unknown);
        memory.device = static_cast<std::uint32_t>(count_of(arguments, "device"));
        const std::size_t entered = enter(memory);
        known.begin(address, entered);
        return {entered, 0, bytes, use};
    }

    Recording& recording_;
    Addresses buffers_;
    Addresses raws_;
    std::map<std::uint64_t, Thread> threads_;
    std::map<std::string, std::vector<Scope>> open_;
    std::map<std::string, std::uint64_t> inner_;  // views that calls of the runtime opened
    std::set<std::size_t> left_out_;
};

bool takes_number(std::string_view key, std::string_view value, SharedUse& use) {
    const std::optional<std::uint64_t> number = number_in<std::uint64_t>(value);
    if (!number) return false;
    if (key == "passes") use.device_passes = static_cast<int>(std::min<std::uint64_t>(*number, 1u << 30));
    if (key == "updates") use.updates = static_cast<AtomicSet>(static_cast<std::uint32_t>(*number));
    if (key == "alignment") use.alignment_bytes = static_cast<std::size_t>(*number);
    return key == "passes" || key == "updates" || key == "alignment";
}

bool takes(std::string_view key, std::string_view value, SharedUse& use) {
    constexpr Use last_use = static_cast<Use>(use_count - 1);
    if (key == "host" || key == "device") {
        const std::optional<Use> found = named(value, last_use);
        if (found) (key == "host" ? use.host : use.device) = *found;
        return found.has_value();
    }
    if (key == "prefer") {
        const std::optional<Prefer> found = named(value, Prefer::latency);
        use.prefer = found.value_or(Prefer::throughput);
        return found.has_value();
    }
    if (key == "kind") {
        use.kind = kind_of(value);
        return use.kind.has_value();
    }
    if (key == "pages") {
        use.placement.page_size = PageSize::huge;
        return value == "huge";
    }
    return takes_number(key, value, use);
}

bool gives_work(const Step& step) {
    return step.act == Act::launch || step.act == Act::open_scope || step.act == Act::copy || step.act == Act::fill;
}

}  // namespace

std::string_view name(Made made) noexcept {
    switch (made) {
        case Made::shared: return "shared";
        case Made::of_kind: return "of one kind";
        case Made::adopted: return "adopted";
        case Made::before: return "made before the recording";
        case Made::raw: return "a plain pointer";
    }
    return "unknown";
}

std::string_view name(Act act) noexcept {
    switch (act) {
        case Act::make: return "allocate";
        case Act::end: return "release";
        case Act::open_view: return "open a view";
        case Act::close_view: return "close a view";
        case Act::launch: return "launch";
        case Act::open_scope: return "open a native scope";
        case Act::close_scope: return "close a native scope";
        case Act::copy: return "copy";
        case Act::fill: return "fill";
        case Act::read_back: return "read back";
        case Act::wait: return "wait";
    }
    return "unknown";
}

std::uint64_t Recording::launches() const noexcept {
    return static_cast<std::uint64_t>(std::count_if(steps.begin(), steps.end(), [](const Step& step) {
        return step.act == Act::launch || step.act == Act::open_scope;
    }));
}

std::uint64_t Recording::frames() const noexcept {
    return std::max<std::uint64_t>(published > 0 ? published : turns(), 1);
}

std::uint64_t Recording::turns() const noexcept {
    std::uint64_t count = 0;
    bool hosts_turn = true;
    for (const Step& step : steps) {
        if (step.refused) continue;
        if (step.act == Act::open_view || step.act == Act::read_back) hosts_turn = true;
        if (gives_work(step) && std::exchange(hosts_turn, false)) ++count;
    }
    return count;
}

std::optional<SharedUse> use_of(std::string_view text) {
    SharedUse use;
    if (text.empty()) return std::nullopt;
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(text.size(), word.size() + 1));
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos || !takes(word.substr(0, equals), word.substr(equals + 1), use)) {
            return std::nullopt;
        }
    }
    return use;
}

ReadRecording read_recording(std::string_view json) {
    const trace::Document document = trace::read_document(json);
    if (!document.problem.empty()) return {std::nullopt, document.problem};
    Recording recording;
    recording.dropped = count_of(document.other(), "dropped");
    Reader reader(recording);
    for (const Json& event : document.events()) {
        if (!event.is_object()) continue;
        recording.duration_us = std::max(recording.duration_us, trace::number_of(event, "ts"));
        reader.read(event);
    }
    reader.finish();
    if (recording.steps.empty()) {
        return {std::nullopt, "it tells of no memory and no call: record it with this version of isthmus"};
    }
    return {std::move(recording), {}};
}

}  // namespace isthmus::tools::replay
