// SPDX-License-Identifier: Apache-2.0
// exploration: random sequences of the public API against the reference model, in the simulator's seeded mode.
//   exploration [--seed S] [--sequences N] [--seconds T]    plays sequences until one fails
//   exploration [--seed S] --sequence N                     plays one exactly as it was played among the others
// Every other runtime checks the order of uses (OrderCheck::refuse): it is given racing steps as well, and its verdict
// must agree with the model. ISTHMUS_SIM names the machine. A failing sequence is shrunk and printed. Exit code 1: a
// sequence failed.
#include "draw.hpp"
#include "play.hpp"
#include "world.hpp"

#include <driver_abi/sim_control.h>

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace exploration {
namespace {

struct Options {
    std::uint64_t seed = 1;
    std::uint64_t sequences = 1000;
    double seconds = 1e9;
    std::optional<std::uint64_t> only;
};

// Sequences per runtime: later ones run with the pools that earlier ones left. To repeat one sequence exactly, those
// before it in its runtime are played too.
constexpr std::uint64_t sequences_of_runtime = 16;

// The sequence being played, for the signal handler.
volatile std::sig_atomic_t playing = 0;
char repeat_text[96] = "";

extern "C" void say_where(int signal) {
    char digits[24];
    int length = 0;
    for (unsigned long long left = static_cast<unsigned long long>(playing); length == 0 || left != 0; left /= 10) {
        digits[sizeof digits - 1 - static_cast<std::size_t>(length++)] = static_cast<char>('0' + left % 10);
    }
    const char head[] = "\nexploration: ended by a signal; again with ";
    (void)!write(2, head, sizeof head - 1);
    (void)!write(2, repeat_text, std::string_view(repeat_text).size());
    (void)!write(2, digits + sizeof digits - static_cast<std::size_t>(length), static_cast<std::size_t>(length));
    (void)!write(2, "\n", 1);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

class Simulator {
public:
    // Call after a runtime has opened the simulator.
    bool find() {
        void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (library == nullptr) return false;
        live_ = reinterpret_cast<isthmus_sim_live_fn>(dlsym(library, "isthmus_sim_live"));
        set_seed_ = reinterpret_cast<isthmus_sim_set_seed_fn>(dlsym(library, "isthmus_sim_set_seed"));
        dlclose(library);
        return live_ != nullptr && set_seed_ != nullptr;
    }
    bool seeded(std::uint64_t seed) const { return set_seed_(seed) == 0; }
    std::string left() const {
        std::string words;
        for (const char* what :
             {"contexts", "streams", "events", "modules", "pools", "graphs", "graph_instances", "allocations"}) {
            if (const auto count = live_(what); count != 0) words += ' ' + std::to_string(count) + ' ' + what;
        }
        return words;
    }

private:
    isthmus_sim_live_fn live_ = nullptr;
    isthmus_sim_set_seed_fn set_seed_ = nullptr;
};

std::uint64_t mixed_seed(std::uint64_t seed, std::uint64_t sequence, std::uint64_t use) {
    Numbers numbers(seed * 0x100000001b3u + sequence * 4 + use);
    return numbers.next();
}

bool order_checked(std::uint64_t sequence) {
    return sequence / sequences_of_runtime % 2 != 0;
}

std::optional<isthmus::Runtime> open_runtime(bool checked) {
    isthmus::RuntimeOptions options;
    options.order_check = checked ? isthmus::OrderCheck::refuse : isthmus::OrderCheck::off;
    options.launch_mode = isthmus::LaunchMode::checked;
    options.wait_timeout = std::chrono::seconds(20);
    isthmus::Result<isthmus::Runtime> runtime = isthmus::Runtime::open(options);
    if (!runtime || runtime->device_count() < 2) return std::nullopt;
    return std::move(runtime).value();
}

class Exploration {
public:
    explicit Exploration(const Options& options) : options_(options) {}

    int run() {
        if (std::optional<isthmus::Runtime> first = open_runtime(false); !first || !simulator_.find()) {
            std::fprintf(stderr, "exploration needs a simulated machine with a GPU (ISTHMUS_SIM)\n");
            return 2;
        }
        if (!simulator_.seeded(options_.seed)) {
            std::fprintf(stderr, "the simulator is not in seeded mode\n");
            return 2;
        }
        const auto begin = std::chrono::steady_clock::now();
        const std::uint64_t last = options_.only ? *options_.only + 1 : options_.sequences;
        std::uint64_t next = options_.only ? *options_.only / sequences_of_runtime * sequences_of_runtime : 0;
        bool good = true;
        const auto seconds = [&] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        };
        while (good && next < last && seconds() < options_.seconds) {
            const std::uint64_t end = std::min(last, next + sequences_of_runtime);
            good = play_group(next, end);
            next = end;
        }
        std::printf("%llu sequences from seed %llu: %llu steps, %llu of them refused, %.1f s: %s\n",
                    static_cast<unsigned long long>(played_), static_cast<unsigned long long>(options_.seed),
                    static_cast<unsigned long long>(steps_), static_cast<unsigned long long>(refusals_), seconds(),
                    good ? "all as the model says" : "FAILED");
        return good ? 0 : 1;
    }

private:
    std::uint64_t drawn_by(std::uint64_t sequence) const { return mixed_seed(options_.seed, sequence, 0); }
    std::uint64_t run_by(std::uint64_t sequence) const { return mixed_seed(options_.seed, sequence, 1); }
    std::uint64_t ended_by(std::uint64_t sequence) const { return mixed_seed(options_.seed, sequence, 2); }

    bool play_group(std::uint64_t first, std::uint64_t end) {
        (void)simulator_.seeded(mixed_seed(options_.seed, first, 3));
        std::optional<isthmus::Runtime> runtime = open_runtime(order_checked(first));
        if (!runtime) return complain(first, {}, "a runtime could not be opened");
        const MachineFacts machine = learned(*runtime, order_checked(first));
        for (std::uint64_t at = first; at < end; ++at) {
            const Sequence sequence = draw(drawn_by(at), machine);
            (void)simulator_.seeded(run_by(at));
            playing = static_cast<std::sig_atomic_t>(at);
            const Verdict verdict = play(*runtime, machine, sequence, ended_by(at));
            ++played_;
            steps_ += verdict.steps;
            refusals_ += verdict.refusals;
            if (!verdict.complaint.empty()) {
                runtime.reset();
                return explain(at, sequence, machine, verdict);
            }
        }
        runtime.reset();
        if (const std::string left = simulator_.left(); !left.empty()) return find_leak(first, end, left);
        return true;
    }

    static MachineFacts learned(isthmus::Runtime& runtime, bool checked) {
        MachineFacts facts = learn(runtime);
        facts.order_checked = checked;
        for (std::size_t from = 0; from < facts.gpus; ++from) {
            for (std::size_t to = 0; to < facts.gpus; ++to) {
                if (from == to) continue;
                (void)runtime.device(from).value()->enable_peer_access(*runtime.device(to).value());
            }
        }
        return facts;
    }

    // Plays the sequence in a runtime of its own. Returns what is wrong, or nothing.
    std::string alone(const Sequence& sequence, std::uint64_t at, std::uint64_t run_seed) {
        (void)simulator_.seeded(run_seed);
        std::optional<isthmus::Runtime> runtime = open_runtime(order_checked(at));
        if (!runtime) return "a runtime could not be opened";
        const MachineFacts machine = learned(*runtime, order_checked(at));
        (void)simulator_.seeded(run_seed);
        std::string complaint = play(*runtime, machine, sequence, ended_by(at)).complaint;
        runtime.reset();
        if (!complaint.empty()) return complaint;
        const std::string left = simulator_.left();
        return left.empty() ? "" : "left behind:" + left;
    }

    bool find_leak(std::uint64_t first, std::uint64_t end, const std::string& left) {
        for (std::uint64_t at = first; at < end; ++at) {
            std::optional<isthmus::Runtime> runtime = open_runtime(order_checked(at));
            const MachineFacts machine = learned(*runtime, order_checked(at));
            runtime.reset();
            const Sequence sequence = draw(drawn_by(at), machine);
            if (alone(sequence, at, run_by(at)).empty()) continue;
            Verdict verdict;
            verdict.step = sequence.size();
            verdict.complaint = "left behind:" + left;
            return explain(at, sequence, machine, verdict);
        }
        return complain(first, {}, "left behind by the sequences up to " + std::to_string(end - 1) + ":" + left);
    }

    // The complaint without what differs from run to run: names of objects, numbers.
    static std::string_view sort_of(std::string_view complaint) { return complaint.substr(0, complaint.find(':')); }

    // Shrinking tries other run orders too: they may show the same mistake with fewer steps. `like`: which mistake;
    // empty: any.
    std::optional<std::pair<std::uint64_t, std::string>> fails(const Sequence& sequence, std::uint64_t at,
                                                               std::string_view like) {
        for (std::uint64_t order = 0; order < 12; ++order) {
            const std::uint64_t run_seed = order == 0 ? run_by(at) : mixed_seed(options_.seed, at * 16 + order, 3);
            std::string complaint = alone(sequence, at, run_seed);
            if (complaint.empty() || (!like.empty() && sort_of(complaint) != like)) continue;
            return std::pair(run_seed, std::move(complaint));
        }
        return std::nullopt;
    }

    bool explain(std::uint64_t at, const Sequence& sequence, const MachineFacts&, const Verdict& verdict) {
        const std::string step = verdict.step < sequence.size() ? text(sequence[verdict.step]) : "at its end";
        complain(at, step, verdict.complaint);
        // A lost device stays lost in this process.
        if (verdict.complaint.find("device_lost") != std::string::npos) return print(sequence), false;
        const std::string like = fails(sequence, at, sort_of(verdict.complaint)) ? verdict.complaint : std::string();
        if (!fails(sequence, at, sort_of(like))) {
            std::printf("alone it plays well: only behind the sequences before it in the same runtime does it fail\n");
            print(sequence);
            return false;
        }
        const Sequence shortest =
            shrink(sequence, [&](const Sequence& one) { return fails(one, at, sort_of(like)).has_value(); });
        const auto why = fails(shortest, at, sort_of(like));
        std::printf("the same with as few steps as possible (%zu of %zu): %s\n", shortest.size(), sequence.size(),
                    why ? why->second.c_str() : "");
        print(shortest);
        return false;
    }

    bool complain(std::uint64_t at, const std::string& step, const std::string& complaint) {
        std::printf("sequence %llu: %s%s%s\n    again with: %s%llu\n", static_cast<unsigned long long>(at),
                    step.c_str(), step.empty() ? "" : ": ", complaint.c_str(), repeat_text,
                    static_cast<unsigned long long>(at));
        return false;
    }
    static void print(const Sequence& sequence) {
        for (const Step& step : sequence) std::printf("    %s\n", text(step).c_str());
    }

    const Options options_;
    Simulator simulator_;
    std::uint64_t played_ = 0;
    std::uint64_t steps_ = 0;
    std::uint64_t refusals_ = 0;
};

bool read_options(int argc, char** argv, Options& options) {
    for (int at = 1; at < argc; ++at) {
        const std::string_view name = argv[at];
        if (name.starts_with("--gtest_")) continue;  // the mutant runner passes it to every test
        if (++at == argc) return false;
        if (name == "--seed") {
            options.seed = std::strtoull(argv[at], nullptr, 0);
        } else if (name == "--sequences") {
            options.sequences = std::strtoull(argv[at], nullptr, 0);
        } else if (name == "--seconds") {
            options.seconds = std::strtod(argv[at], nullptr);
            options.sequences = ~std::uint64_t{0};
        } else if (name == "--sequence") {
            options.only = std::strtoull(argv[at], nullptr, 0);
        } else {
            return false;
        }
    }
    return true;
}

}  // namespace
}  // namespace exploration

int main(int argc, char** argv) {
    exploration::Options options;
    if (!exploration::read_options(argc, argv, options)) {
        std::fprintf(stderr, "exploration [--seed S] [--sequences N | --seconds T | --sequence N]\n");
        return 2;
    }
    ::setenv("ISTHMUS_SIM_MODE", "seeded", 1);
    if (!options.only) ::setenv("ISTHMUS_SIM_QUIET", "1", 0);  // many sequences contain refusals
    const char* machine = std::getenv("ISTHMUS_SIM");
    std::snprintf(exploration::repeat_text, sizeof exploration::repeat_text,
                  "ISTHMUS_SIM=%.32s exploration --seed %llu --sequence ", machine == nullptr ? "" : machine,
                  static_cast<unsigned long long>(options.seed));
    for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, exploration::say_where);
    return exploration::Exploration(options).run();
}
