// SPDX-License-Identifier: Apache-2.0
// One launch of trials. The CPU opens a round, both sides play it at the same time, and the GPU's first block reports
// its end. Every instance of a launch has memory of its own, so that neither side waits for the slowest block.
#include "field.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

namespace isthmus::tools::litmus {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t gap_words = 64;  // words between the first and the second words, so that no cache line has both
constexpr std::uint32_t wide_words = 4;
constexpr auto patience = std::chrono::seconds(20);  // longest wait of one side for the other
// About as long as `patience` for a GPU behind a link; the CPU build of the kernel yields between polls.
constexpr std::uint32_t max_polls = 1u << 24;

void wait_for(std::chrono::nanoseconds time) {
    const auto until = Clock::now() + time;
    while (Clock::now() < until) {
    }
}

}  // namespace

Field::Field(Device& device, const FieldSize& size, Crew& crew, std::uint32_t clock_khz, std::uint64_t seed)
    : device_(device),
      size_(size),
      crew_(crew),
      clock_khz_(clock_khz),
      random_(seed),
      piece_((size.slots() + crew.size() - 1) / crew.size()),
      seen_on_host_(size.instances()) {}

Field::~Field() {
    // Opens all rounds, so that a kernel that still waits ends, and releasing its memory does not wait for it.
    if (signals_) {
        store_release(signal(go_signal), round_ + size_.rounds, {});
        (void)device_.stream().synchronize(Wait::at_most(std::chrono::seconds(5)));
    }
    for (const MemoryBlock* block : {&cells_, &signals_, &seen_}) {
        if (*block) (void)device_.allocator(block->kind).release(*block);
    }
}

Result<std::unique_ptr<Field>> Field::make(Device& device, MemoryKind kind, const FieldSize& size, Crew& crew,
                                           std::uint32_t clock_khz, std::uint64_t seed) {
    std::unique_ptr<Field> field(new Field(device, size, crew, clock_khz, seed));
    if (Result<void> allocated = field->allocate(kind); !allocated) return std::move(allocated).error();
    return field;
}

Result<void> Field::allocate(MemoryKind kind) {
    const std::size_t cell_bytes = (size_.instances() * wide_words + gap_words) * sizeof(Word);
    const auto take = [this](MemoryKind of, std::size_t bytes, MemoryBlock& block) -> Result<void> {
        Result<MemoryBlock> taken = device_.allocator(of).allocate({.bytes = bytes});
        if (!taken) return std::move(taken).error();
        block = *taken;
        std::memset(block.host, 0, bytes);
        return {};
    };
    if (Result<void> taken = take(kind, cell_bytes, cells_); !taken) return taken;
    if (Result<void> taken = take(MemoryKind::pinned, signal_words * sizeof(Word), signals_); !taken) return taken;
    return take(MemoryKind::pinned, size_.instances(), seen_);
}

// The GPU's speed is derived from the time that the CPU took for its last piece.
LaunchPlan Field::plan_launch(const Program& program, const Pace& pace) {
    LaunchPlan plan;
    const std::uint32_t apart = words_of(program.shape);
    plan.shape = static_cast<std::uint32_t>(program.shape);
    plan.ordered = program.device_ordered;
    plan.narrow = program.device_narrow;
    plan.value = value_;
    value_ += 2;  // two, because coherence shapes write two values
    plan.first_round = round_;
    plan.rounds = size_.rounds;
    plan.piece = piece_;
    plan.words_apart = apart;
    plan.second_at = static_cast<std::uint32_t>(size_.instances()) * apart + gap_words;
    const auto clocks = [this](std::int64_t ns) {
        return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ns * clock_khz_ / 1'000'000, 0, 1 << 28));
    };
    plan.lead_clocks = clocks(pace.device_late_ns);
    plan.piece_clocks = clocks(sweep_.count() * pace.percent / 100);
    plan.jitter_clocks = clocks(1 << draw(random_, 12));
    plan.seed = draw(random_, ~0u);
    plan.max_polls = max_polls;
    return plan;
}

void Field::play_piece(const Program& program, const LaunchPlan& plan, std::uint32_t round, unsigned worker) {
    const Play play{program.shape, false, {program.host_ordered, false}, plan.value};
    const bool keeps = reads(program.shape, false);
    const std::uint32_t begin = std::min(worker * piece_, size_.slots());
    const std::uint32_t end = std::min(begin + piece_, size_.slots());
    const std::uint64_t base = std::uint64_t{round} * size_.slots();
    auto* const cells = static_cast<Word*>(cells_.host);
    for (std::uint32_t slot = begin; slot < end; ++slot) {
        Word* const first = cells + (base + slot) * plan.words_apart;
        const std::uint8_t saw = play_instance(play, {first, first + plan.second_at});
        if (keeps) seen_on_host_[base + slot] = saw;
    }
}

bool Field::wait_for_progress(std::uint32_t round) {
    const auto until = Clock::now() + patience;
    for (unsigned turn = 1;; ++turn) {
        // Pairs with the release at the end of a round of the kernel.
        if (static_cast<std::int32_t>(load_acquire(signal(progress_signal), {}) - round) >= 0) return true;
        if (turn % 256 != 0) continue;
        std::this_thread::yield();
        if (load_acquire(signal(gave_up_signal), {}) != 0 || Clock::now() > until) return false;
    }
}

Result<void> Field::play_rounds(const Program& program, const LaunchPlan& plan, std::chrono::nanoseconds late) {
    for (std::uint32_t round = 0; round < plan.rounds; ++round) {
        if (round > 0 && !wait_for_progress(round_)) {
            return Error(Code::timed_out, "the GPU does not come to the end of a round of trials",
                         "look for other work on the GPU, or a watchdog that stops kernels");
        }
        store_release(signal(go_signal), ++round_, {});  // pairs with the acquire in wait_for_round()
        const auto begin = Clock::now();
        crew_.run([&](unsigned worker) {
            wait_for(late);
            play_piece(program, plan, round, worker);
        });
        sweep_ = std::max(Clock::now() - begin - late, Clock::duration(1));
    }
    return {};
}

void Field::count_piece(const Program& program, const LaunchPlan& plan, unsigned worker, Counts& counts) {
    const auto* const on_device = static_cast<const std::uint8_t*>(seen_.host);
    auto* const cells = static_cast<Word*>(cells_.host);
    const bool device_reads = reads(program.shape, true);
    const bool host_reads = reads(program.shape, false);
    const std::uint64_t per_worker = (size_.instances() + crew_.size() - 1) / crew_.size();
    const std::uint64_t begin = std::min(worker * per_worker, size_.instances());
    const std::uint64_t end = std::min(begin + per_worker, size_.instances());
    for (std::uint64_t at = begin; at < end; ++at) {
        unsigned code = 0;
        if (device_reads && host_reads) {
            code = seen_on_host_[at] + 3u * on_device[at];
        } else if (device_reads) {
            code = on_device[at];
        } else if (host_reads) {
            code = seen_on_host_[at];
        } else {
            Word& sum = cells[at * plan.words_apart];
            code = sum;
            sum = 0;
        }
        ++counts[std::min<unsigned>(code, outcome_count - 1)];
    }
}

Result<void> Field::play(const Program& program, Counts& counts) {
    const std::size_t choice = timing_.choose(random_);
    const Pace pace = Timing::pace(choice);
    const LaunchPlan plan = plan_launch(program, pace);
    // Sums must begin with 0; count_piece() resets them.
    const bool sums = program.shape == LitmusShape::lost_updates;
    if (sums && !zeroed_) std::memset(cells_.host, 0, size_.instances() * sizeof(Word));
    zeroed_ = sums;
    Stream& stream = device_.stream();
    const auto words = [](const MemoryBlock& block) {
        return View<std::uint32_t>{reinterpret_cast<std::uint32_t*>(block.device), block.bytes / sizeof(Word)};
    };
    const View<std::uint8_t> seen{reinterpret_cast<std::uint8_t*>(seen_.device), seen_.bytes};
    Result<LaunchReport> launched =
        stream.launch(litmus_rounds, size_.blocks, words(cells_), words(signals_), seen, plan);
    if (!launched) return std::move(launched).error();
    if (Result<void> played = play_rounds(program, plan, std::chrono::nanoseconds(pace.host_late_ns)); !played)
        return played;
    if (Result<void> ended = stream.synchronize(); !ended) return ended;
    if (load_acquire(signal(gave_up_signal), {}) != 0) {
        return Error(Code::timed_out, "a part of the GPU waited in vain for a round of trials",
                     "give the trials fewer threads, or the machine less other work");
    }
    std::vector<Counts> of_workers(crew_.size());
    crew_.run([&](unsigned worker) {
        Counts own{};
        count_piece(program, plan, worker, own);
        of_workers[worker] = own;
    });
    Counts now{};
    for (const Counts& own : of_workers) {
        for (std::size_t code = 0; code < own.size(); ++code) now[code] += own[code];
    }
    for (std::size_t code = 0; code < now.size(); ++code) counts[code] += now[code];
    // In some shapes ordinary outcomes do not show whether the sides met. There, a launch without a weak or interleaved
    // outcome says nothing about the timing.
    const std::uint64_t met =
        count(program.shape, now, Outcome::interleaved) + count(program.shape, now, Outcome::weak);
    const bool tells = words_of(program.shape) == 1 && program.shape != LitmusShape::lost_updates;
    if (tells || met > 0) timing_.learn(choice, met, total(now));
    return {};
}

}  // namespace isthmus::tools::litmus
