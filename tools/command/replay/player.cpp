// SPDX-License-Identifier: Apache-2.0
// Plays step by step. A launch is work of other code with the same uses that gives the stream nothing.
#include "player.hpp"

#include "common/console.hpp"
#include "played_memory.hpp"
#include "tally.hpp"

#include <isthmus/stream.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace isthmus::tools::replay {
namespace {

constexpr std::size_t most_uses = 16;        // of one launch
constexpr std::uint64_t most_waiting = 256;  // pieces of work that stand at the gate
// What a launch answers for a plain pointer that the device may not use.
constexpr std::string_view argument_refused = "L003";

using Uses = std::array<NativeUse<std::byte>, most_uses>;

struct Nothing {
    template <class... T>
    void operator()(void*, T*...) const noexcept {}
};

template <std::size_t count>
auto with_uses(const Uses& uses, auto call) {
    return [&]<std::size_t... at>(std::index_sequence<at...>) {
        return call(uses[at]...);
    }
    (std::make_index_sequence<count>());
}

// Calls `call` with the first `count` uses.
template <std::size_t least = 1>
auto with_first(std::size_t count, const Uses& uses, auto call) {
    if constexpr (least < most_uses) {
        if (count > least) return with_first<least + 1>(count, uses, call);
    }
    return with_uses<least>(uses, call);
}

Result<void> without_value(const auto& result) {
    if (!result) return result.error();
    return {};
}

class Player {
public:
    // `names` outlives the runtime: operations keep their names.
    Player(const Recording& recording, Runtime& runtime, Device& chosen, DeviceGate& gate, Tally& tally,
           std::set<std::string>& names)
        : recording_(recording),
          runtime_(runtime),
          chosen_(chosen),
          gate_(gate),
          tally_(tally),
          names_(names),
          became_(recording.memories.size()),
          memories_(recording.memories.size()),
          raws_(recording.memories.size()),
          refused_(recording.memories.size(), false),
          opened_(recording.steps.size()) {
        for (const Step& step : recording.steps) devices_.insert(step.device);
    }

    Played play() {
        outcome_.device = chosen_.name();
        outcome_.frames = recording_.frames();
        outcome_.of_rings = recording_.published > 0;
        outcome_.launches = recording_.launches();
        for (std::size_t at = 0; at < recording_.steps.size(); ++at) {
            const Step& step = recording_.steps[at];
            const std::string call = name_of(step);
            tally_.begin_call(call);
            if (step.act == Act::end || step.act == Act::close_view || step.act == Act::close_scope) {
                close(step);
            } else if (uses_refused(step)) {
                ++outcome_.skipped;
            } else {
                note(step, call, play(step, at));
            }
        }
        tally_.stop();
        gate_.open();
        finish();
        return {std::move(outcome_), std::move(became_), chosen_.facts().uuid, runtime_.machine().simulated};
    }

private:
    static std::string name_of(const Step& step) {
        switch (step.act) {
            case Act::open_view: return step.name;
            case Act::launch:
            case Act::open_scope: return fmt::format("{} {}", name(step.act), step.name);
            case Act::wait: return "a wait that the program asks for";
            default: return std::string(name(step.act));
        }
    }

    Device& device_of(std::uint32_t index) {
        if (devices_.size() == 1 || index >= runtime_.device_count()) return chosen_;
        return **runtime_.device(index);
    }
    Stream& stream_of(const Step& step) {
        const auto found = streams_.find(step.stream);
        if (found != streams_.end()) return found->second;
        Result<Stream> made = device_of(step.device).create_stream();
        if (!made) cannot(std::string(made.error().message()));
        return streams_.emplace(step.stream, std::move(made).value()).first->second;
    }

    bool uses_refused(const Step& step) const {
        if (step.act == Act::make || step.act == Act::wait) return false;
        if (step.act == Act::read_back) return refused_[step.memory];
        return std::any_of(step.uses.begin(), step.uses.end(),
                           [&](const MemoryUse& use) { return refused_[use.memory]; });
    }

    Result<void> play(const Step& step, std::size_t at) {
        for (const MemoryUse& use : step.uses) {
            if (Result<void> there = make_late(use.memory); !there) return there;
        }
        switch (step.act) {
            case Act::make: return make(step.memory);
            case Act::open_view: return open_view(step, at);
            case Act::launch:
            case Act::open_scope: return launch(step, at);
            case Act::copy: return copy(step);
            case Act::fill: return fill(step);
            case Act::read_back: {
                if (Result<void> there = make_late(step.memory); !there) return there;
                return memories_[step.memory] ? memories_[step.memory]->read_back() : Result<void>();
            }
            case Act::wait:
                return step.stream != 0 ? stream_of(step).synchronize() : device_of(step.device).synchronize();
            case Act::end:
            case Act::close_view:
            case Act::close_scope: break;
        }
        return {};
    }

    Result<void> make(std::size_t memory) {
        const Memory& asked = recording_.memories[memory];
        Result<PlayedMemory> made = PlayedMemory::make(device_of(asked.device), asked);
        if (!made) {
            refused_[memory] = true;
            return made.error();
        }
        memories_[memory].emplace(std::move(made).value());
        const BufferBase& buffer = memories_[memory]->buffer();
        became_[memory] = {buffer.kind(), buffer.path()};
        group(asked, buffer);
        return {};
    }
    // What was there before the recording began.
    Result<void> make_late(std::size_t memory) {
        const Memory& asked = recording_.memories[memory];
        if (asked.made == Made::before && !memories_[memory]) return make(memory);
        if (asked.made == Made::raw && !raws_[memory]) {
            raws_[memory].emplace(host_memory(asked.bytes));
            if (*raws_[memory] == nullptr) {
                refused_[memory] = true;
                return Error(Code::out_of_memory, "there is no memory for what a plain pointer names",
                             "replay a shorter recording");
            }
        }
        return {};
    }
    void group(const Memory& asked, const BufferBase& buffer) {
        const auto host = buffer.host_kind();
        Group group{std::string(name(asked.made)),
                    std::string(isthmus::name(buffer.kind())),
                    host == MemoryKind::unknown ? std::string() : std::string(isthmus::name(host)),
                    std::string(isthmus::name(buffer.path())),
                    std::string(buffer.explain()),
                    0,
                    0};
        Group& of = groups_[{group.made, group.kind, group.host_kind, group.path, group.reason}];
        if (of.count == 0) of = group;
        ++of.count;
        of.bytes += buffer.size_bytes();
    }

    Result<void> open_view(const Step& step, std::size_t at) {
        PlayedMemory* const memory = memories_[step.memory] ? &*memories_[step.memory] : nullptr;
        if (memory == nullptr) return {};
        Result<Opened> opened = memory->open_view(step.uses.front());
        if (!opened) return opened.error();
        opened_[at] = std::move(opened).value();
        return {};
    }

    // Work that is not done before the host waits for it.
    void hold(Stream& stream, const Device& device) {
        if (device.is_cpu()) return;
        const std::uint64_t number = gate_.give();
        if (number % most_waiting == 0) gate_.open();
        (void)stream.call_on_host([gate = &gate_, number]() noexcept { gate->pass(number); });
    }

    Result<void> launch(const Step& step, std::size_t at) {
        Device& device = device_of(step.device);
        Stream& stream = stream_of(step);
        const LaunchMode mode = step.mode.value_or(LaunchMode::checked);
        stream.set_launch_mode(mode);
        Uses uses;
        std::size_t count = 0;
        for (const MemoryUse& use : step.uses) {
            if (recording_.memories[use.memory].made == Made::raw) {
                if (Result<void> judged = judge(device, mode, use); !judged) return judged;
            } else if (count < most_uses) {
                uses[count++] = memories_[use.memory]->as_use(use);
            } else {
                too_many_ = true;
            }
        }
        if (count == 0) return {};
        hold(stream, device);
        const char* const name = names_.emplace(step.name).first->c_str();
        if (step.act == Act::launch) {
            return with_first(count, uses, [&](const auto&... use) {
                return without_value(stream.enqueue_native(name, Nothing(), use...));
            });
        }
        return with_first(count, uses, [&](const auto&... use) -> Result<void> {
            auto scope = stream.open_native_scope(name, use...);
            if (!scope) return scope.error();
            using Scope = std::remove_cvref_t<decltype(*scope)>;
            opened_[at] = std::make_shared<Scope>(std::move(scope).value());
            return {};
        });
    }
    // A plain pointer is judged as a launch judges it; nothing is claimed.
    Result<void> judge(Device& device, LaunchMode mode, const MemoryUse& use) {
        ++judged_;
        if (mode == LaunchMode::relaxed || use.bytes == 0) return {};
        const AccessAnswer answer =
            device.can_access(raws_[use.memory]->get(), static_cast<std::size_t>(use.first + use.bytes));
        if (answer.verdict != Verdict::no) return {};
        if (mode == LaunchMode::staged) {
            ++staged_;
            return {};
        }
        pointer_refused_ = true;
        return Error(Code::not_accessible, std::string(answer.reason), std::string(answer.remedy));
    }

    Result<void> copy(const Step& step) {
        if (step.uses.size() != 2) return {};
        const MemoryUse& to = step.uses[0];
        const MemoryUse& from = step.uses[1];
        Stream& stream = stream_of(step);
        hold(stream, device_of(step.device));
        const auto host = [&](const MemoryUse& use) {
            return std::span<std::byte>(raws_[use.memory]->get() + use.first,
                                        static_cast<std::size_t>(std::min(to.bytes, from.bytes)));
        };
        const bool up = !memories_[from.memory] && raws_[from.memory];
        const bool down = !memories_[to.memory] && raws_[to.memory];
        if (up && down) return {};
        if (up || down) {
            // Pageable memory is copied before the call returns, behind the stream's work.
            gate_.open();
            Buffer<std::byte>* const buffer = memories_[up ? to.memory : from.memory]->bytes();
            if (buffer == nullptr) return {};
            return up ? stream.copy_from_host(*buffer, host(from), static_cast<std::size_t>(to.first))
                      : stream.copy_to_host(host(to), *buffer, static_cast<std::size_t>(from.first));
        }
        return PlayedMemory::copy(stream, *memories_[to.memory], to, *memories_[from.memory], from);
    }

    Result<void> fill(const Step& step) {
        if (step.uses.empty() || !memories_[step.uses.front().memory]) return {};
        Stream& stream = stream_of(step);
        hold(stream, device_of(step.device));
        return memories_[step.uses.front().memory]->fill(stream, step.uses.front());
    }

    void close(const Step& step) {
        if (step.act == Act::end) {
            memories_[step.memory].reset();
        } else {
            opened_[step.other].reset();
        }
    }

    void note(const Step& step, const std::string& call, const Result<void>& done) {
        const bool pointer = std::exchange(pointer_refused_, false);
        if (done) {
            if (step.refused) ++outcome_.allowed;
            return;
        }
        const Error& error = done.error();
        const std::string id(pointer ? argument_refused : error.id());
        Refusal& of = refusals_[{call, id}];
        if (of.count == 0) {
            of = {call,
                  std::string(isthmus::name(error.code())),
                  id,
                  std::string(error.message()),
                  std::string(error.remedy()),
                  0,
                  0};
        }
        ++of.count;
        if (step.refused) ++of.recorded;
    }

    void finish() {
        opened_.clear();
        memories_.clear();
        for (auto& [number, stream] : streams_) (void)stream.synchronize();
        for (auto& [key, group] : groups_) outcome_.groups.push_back(std::move(group));
        for (auto& [key, refusal] : refusals_) outcome_.refusals.push_back(std::move(refusal));
        tally_.add_to(outcome_);
        sort(outcome_);
        const auto note_if = [&](bool is_so, std::string text) {
            if (is_so) outcome_.notes.push_back(std::move(text));
        };
        const auto before = std::count_if(recording_.memories.begin(), recording_.memories.end(),
                                          [](const Memory& memory) { return memory.made == Made::before; });
        note_if(before > 0, fmt::format("{} buffers were made before the recording began: taken as allocate_shared() "
                                        "makes them without a declared use",
                                        before));
        note_if(judged_ > 0, fmt::format("{} plain pointers of launches were taken as ordinary host memory: what they "
                                         "point to is not recorded",
                                         judged_));
        note_if(staged_ > 0, fmt::format("{} of them are copied in and out by LaunchMode::staged", staged_));
        note_if(recording_.dropped > 0,
                fmt::format("{} events found no room in the trace, so that calls are missing", recording_.dropped));
        note_if(recording_.unclear > 0,
                fmt::format("{} events were left out, because a replay needs more of them", recording_.unclear));
        note_if(recording_.captured > 0,
                fmt::format("{} captured operations are replayed where their graph was launched", recording_.captured));
        note_if(too_many_,
                fmt::format("of launches with more than {} buffers the first {} count", most_uses, most_uses));
        note_if(devices_.size() > 1,
                fmt::format("it used {} devices; those that this machine lacks are its default one", devices_.size()));
    }

    const Recording& recording_;
    Runtime& runtime_;
    Device& chosen_;
    DeviceGate& gate_;
    Tally& tally_;
    std::set<std::uint32_t> devices_;
    std::set<std::string>& names_;
    std::vector<std::optional<Became>> became_;
    std::vector<std::optional<PlayedMemory>> memories_;
    std::vector<std::optional<HostMemory>> raws_;
    std::vector<bool> refused_;
    std::vector<Opened> opened_;
    std::map<std::uint64_t, Stream> streams_;
    std::map<std::tuple<std::string, std::string, std::string, std::string, std::string>, Group> groups_;
    std::map<std::pair<std::string, std::string>, Refusal> refusals_;
    std::uint64_t judged_ = 0;
    std::uint64_t staged_ = 0;
    bool pointer_refused_ = false;
    bool too_many_ = false;
    Outcome outcome_;
};

}  // namespace

Played play(const Recording& recording, const OpenObserved& open, const ChooseDevice& choose) {
    std::set<std::string> names;
    DeviceGate gate;
    Tally tally(gate);
    Result<Runtime> runtime = open(tally.callbacks());
    if (!runtime) cannot(runtime.error().text());
    Player player(recording, *runtime, choose(*runtime), gate, tally, names);
    return player.play();
}

}  // namespace isthmus::tools::replay
