// SPDX-License-Identifier: Apache-2.0
// Counts calls and applies planned faults from ISTHMUS_SIM_FAULTS and isthmus_sim_fault_plan().
#include "faults.hpp"

#include "driver.hpp"
#include "statistics.hpp"

#include <driver_abi/sim_control.h>

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace isthmus::sim {
namespace {

constexpr const char* names[] = {
#define ISTHMUS_SIM_EXPORT(symbol, parameters) #symbol,
#include "exports.def"
#undef ISTHMUS_SIM_EXPORT
};

// "cuMemAlloc" for "cuMemAlloc_v2".
std::string_view without_version(std::string_view symbol) {
    const std::size_t at = symbol.rfind("_v");
    const bool versioned = at != std::string_view::npos && at + 3 == symbol.size();
    return versioned ? symbol.substr(0, at) : symbol;
}

bool means(std::string_view wanted, CallId id) {
    return wanted.empty() || wanted == name(id) || wanted == without_version(name(id));
}

thread_local int running = -1;  // this thread's last call

struct Plan {
    std::string function;   // empty: any
    std::uint64_t nth = 0;  // 0: every call
    Result code = 0;
    bool persistent = false, sticky = false, stands = false;
    std::uint64_t delay_ms = 0;
    std::uint64_t one_in = 0;  // 0: not at random
    std::uint64_t draws = 0;   // state of the random numbers; starts with the seed
    std::uint64_t seen = 0;

    // Draws by splitmix64.
    bool drawn() noexcept {
        draws += 0x9E3779B97F4A7C15u;
        std::uint64_t mixed = (draws ^ (draws >> 30)) * 0xBF58476D1CE4E5B9u;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
        return (mixed ^ (mixed >> 31)) % one_in == 0;
    }
};

struct Faults {
    std::array<std::atomic<std::uint64_t>, call_count> counts{};
    std::atomic<bool> any{false};
    std::mutex mutex;  // guards the members below
    std::vector<Plan> plans;
    std::uint64_t plan_number = 0;     // number of replacements
    std::condition_variable replaced;  // signalled at each replacement
    std::size_t standing = 0;          // calls that wait for a replacement
    std::vector<CallId> answered;      // calls that a plan answered, in order
};

bool number(std::string_view text, std::uint64_t& value) {
    const auto end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stop == end;
}

std::string_view take_until(std::string_view& text, char separator) {
    const std::size_t at = text.find(separator);
    const std::string_view word = text.substr(0, at);
    text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
    return word;
}

std::optional<Plan> parse_plan(std::string_view text) {
    Plan plan;
    while (!text.empty()) {
        std::string_view field = take_until(text, ':');
        const std::string_view key = take_until(field, '=');
        std::uint64_t value = 0;
        const bool is_number = number(field, value);
        if (key == "call" && !field.empty()) {
            plan.function = field;
        } else if ((key == "n" || key == "nth") && is_number && value > 0) {
            plan.nth = value;
        } else if (key == "code" && is_number && value < 10000) {
            plan.code = static_cast<Result>(value);
        } else if (key == "delay_ms" && is_number) {
            plan.delay_ms = value;
        } else if (key == "one_in" && is_number && value > 0) {
            plan.one_in = value;
        } else if (key == "seed" && is_number) {
            plan.draws = value;
        } else if (key == "persistent") {
            plan.persistent = true;
        } else if (key == "sticky") {
            plan.sticky = true;
        } else if (key == "stands") {
            plan.stands = true;
        } else {
            return std::nullopt;
        }
    }
    if (plan.code == 0 && plan.delay_ms == 0 && !plan.stands) return std::nullopt;
    return plan;
}

std::optional<std::vector<Plan>> parse_plans(std::string_view text) {
    std::vector<Plan> plans;
    while (!text.empty()) {
        const std::string_view one = take_until(text, ';');
        if (one.empty()) continue;
        auto plan = parse_plan(one);
        if (!plan) return std::nullopt;
        plans.push_back(std::move(*plan));
    }
    return plans;
}

int replace_plans(Faults& faults, const char* text) {
    auto plans = parse_plans(text ? text : "");
    if (!plans) {
        say("planned faults not understood: '%s' (example: call=cuMemAlloc_v2:n=3:code=2)", text);
        return 1;
    }
    const std::lock_guard lock(faults.mutex);
    faults.plans = std::move(*plans);
    ++faults.plan_number;
    faults.replaced.notify_all();
    faults.any.store(!faults.plans.empty(), std::memory_order_release);
    return 0;
}

Faults& faults() {
    static Faults* const instance = [] {
        auto* made = new Faults();  // never destroyed: calls are counted until the process ends
        replace_plans(*made, ::secure_getenv("ISTHMUS_SIM_FAULTS"));
        return made;
    }();
    return *instance;
}

Result play_plans(Faults& state, CallId id) {
    Result code = 0;
    bool sticky = false;
    std::uint64_t delay_ms = 0;
    {
        std::unique_lock lock(state.mutex);
        bool stands = false;
        for (Plan& plan : state.plans) {
            if (!means(plan.function, id)) continue;
            const std::uint64_t seen = ++plan.seen;
            if (plan.nth != 0 && seen != plan.nth && !(plan.persistent && seen > plan.nth)) continue;
            if (plan.one_in != 0 && !plan.drawn()) continue;
            delay_ms += plan.delay_ms;
            stands |= plan.stands;
            if (code != 0 || plan.code == 0) continue;
            code = plan.code;
            sticky = plan.sticky;
        }
        if (code != 0) state.answered.push_back(id);
        if (stands) {
            const std::uint64_t number = state.plan_number;
            ++state.standing;
            state.replaced.wait(lock, [&] { return state.plan_number != number; });
            --state.standing;
        }
    }
    if (delay_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    Driver* d = driver();
    if (code != 0 && sticky && d) {
        // Without a current context the failed call may concern any device, so the code becomes sticky on all of them.
        const Context* context = current_context(*d);
        for (int device = 0; device < static_cast<int>(d->devices.size()); ++device) {
            if (context == nullptr || context->device == device) d->engine().latch(device, code);
        }
    }
    return code;
}

}  // namespace

std::size_t standing_calls() {
    const std::lock_guard lock(faults().mutex);
    return faults().standing;
}

const char* name(CallId id) noexcept {
    return names[static_cast<std::size_t>(id)];
}

const char* current_call() noexcept {
    return running < 0 ? "" : names[running];
}

Result count_call(CallId id) {
    Faults& state = faults();
    running = static_cast<int>(id);
    count_statistics_call(running);
    state.counts[static_cast<std::size_t>(id)].fetch_add(1, std::memory_order_relaxed);
    if (!state.any.load(std::memory_order_acquire)) return 0;  // pairs with replace_plans
    return play_plans(state, id);
}

}  // namespace isthmus::sim

using namespace isthmus::sim;

extern "C" {

__attribute__((visibility("default"))) int isthmus_sim_fault_plan(const char* plan) {
    return replace_plans(faults(), plan);
}

__attribute__((visibility("default"))) const char* isthmus_sim_fault_at(std::uint64_t index) {
    const std::lock_guard lock(faults().mutex);
    return index < faults().answered.size() ? name(faults().answered[index]) : nullptr;
}

__attribute__((visibility("default"))) std::uint64_t isthmus_sim_call_count(const char* wanted) {
    std::uint64_t sum = 0;
    for (int id = 0; id < call_count; ++id) {
        if (wanted && !means(wanted, static_cast<CallId>(id))) continue;
        sum += faults().counts[static_cast<std::size_t>(id)].load(std::memory_order_relaxed);
    }
    return sum;
}

__attribute__((visibility("default"))) void isthmus_sim_reset_counts() {
    for (auto& count : faults().counts) count.store(0, std::memory_order_relaxed);
}
}
