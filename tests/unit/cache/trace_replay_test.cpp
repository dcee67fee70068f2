// SPDX-License-Identifier: Apache-2.0
// Recorded traces played against the cache, without a driver: how much memory is reserved at most, and how often a
// kept piece serves. tests/traces/README.md has the traces.
#include <allocation_trace.hpp>
#include <gtest/gtest.h>
#include <no_memory.hpp>
#include <piece_cache.hpp>
#include <segment_map.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using detail::Piece;
using detail::PieceCache;

constexpr std::uint64_t no_limit = std::uint64_t{1} << 50;

struct Outcome {
    std::uint64_t peak_bytes = 0;      // most that lived, as asked for
    std::uint64_t reserved_bytes = 0;  // most that the driver had given out
    std::uint64_t at_peak_bytes = 0;   // that it had given out when most lived
    std::uint64_t hits = 0, misses = 0;
    std::uint64_t granules = 0;  // mapped in a segment, so far
    double reserved() const { return static_cast<double>(reserved_bytes) / static_cast<double>(peak_bytes); }
    double at_peak() const { return static_cast<double>(at_peak_bytes) / static_cast<double>(peak_bytes); }
    double hit_rate() const { return static_cast<double>(hits) / static_cast<double>(hits + misses); }
};

// Where the pieces come from. `driver`: each is one allocation of its size. `segment`: they are blocks of one segment,
// and what counts is what is mapped.
enum class From : std::uint8_t { driver, segment };

// Whether the driver is asked for more than a request needs, as it is where a thread's requests change in size.
enum class Asks : std::uint8_t { as_requested, with_headroom };

// What the runtime does with its cache (MemorySource, piece_release), with a driver that only counts.
class Replay {
public:
    Replay(MemoryKind kind, std::uint64_t limit_bytes, From from = From::driver, Asks asks = Asks::as_requested)
        : kind_(kind), limit_bytes_(limit_bytes), asks_(asks) {
        if (from == From::segment) segment_.emplace(std::uint64_t{64} << 30, std::uint64_t{2} << 20);
    }

    Outcome play(const traces::Trace& trace) {
        blocks_.resize(trace.blocks);
        for (const traces::Event& event : trace.events) {
            event.bytes != 0 ? allocate(blocks_[event.block], event.bytes) : release(blocks_[event.block]);
        }
        const PieceCache::Usage usage = cache_.usage();
        EXPECT_EQ(usage.taken, outcome_.hits);
        EXPECT_EQ(usage.bytes, pieces_bytes_) << "the trace ends with nothing alive";
        return outcome_;
    }

private:
    std::uint64_t reserved() const { return segment_ ? segment_->mapped_bytes() : pieces_bytes_; }
    std::uint64_t obtain(std::size_t bytes) {
        if (!segment_) return std::exchange(next_address_, next_address_ + bytes);
        const auto block = segment_->take(bytes);
        EXPECT_TRUE(block);
        for (const detail::OffsetRange& run : segment_->missing(*block)) {
            segment_->now_mapped(run);
            outcome_.granules += run.bytes / segment_->granule_bytes();
        }
        return block->first;
    }
    void give_back(std::uint64_t address) {
        if (!segment_) return;
        const auto block = segment_->give_back(address);
        EXPECT_TRUE(block);
        const detail::OffsetRange idle = segment_->idle(*block);
        if (idle.bytes != 0) segment_->now_unmapped(idle);
    }
    void free(const std::vector<Piece*>& pieces) {
        for (Piece* const piece : pieces) {
            pieces_bytes_ -= piece->bytes();
            give_back(piece->allocation().device);
            *piece = {};
            unused_.push_back(piece);
        }
    }

    void make_way_in_segment(std::size_t bytes) {
        const std::uint64_t most = cache_.most_reserved(bytes);
        for (;;) {
            const auto growth = segment_->growth(bytes);
            if (growth && (*growth == 0 || segment_->mapped_bytes() + *growth <= most)) return;
            Piece* const shed = cache_.shed(kind_);
            if (shed == nullptr) return;
            free({shed});
        }
    }

    // Pieces stay where they are while they are kept, as those of the ledger do.
    Piece& fresh() {
        if (unused_.empty()) return pieces_.emplace_back();
        Piece& piece = *unused_.back();
        unused_.pop_back();
        return piece;
    }

    void allocate(Piece*& block, std::size_t bytes) {
        Piece* kept = cache_.take(kind_, {}, bytes, 256);
        if (kept == nullptr) kept = cache_.take(kind_, {}, bytes, 256, nullptr, 0, rules::Reach::any);
        if (kept != nullptr) {
            EXPECT_GE(kept->bytes(), bytes);
            block = kept;
            ++outcome_.hits;
        } else {
            const std::size_t headroom = asks_ == Asks::with_headroom ? cache_.headroom(bytes) : 0;
            free(cache_.make_way(bytes, headroom));
            if (segment_) make_way_in_segment(bytes);
            block = &fresh();
            block->make_own().allocation = {kind_, nullptr, obtain(bytes + headroom), bytes + headroom};
            block->may_be_kept = true;
            cache_.handed_out(*block, bytes);
            pieces_bytes_ += bytes + headroom;
            ++outcome_.misses;
        }
        live_ += bytes;
        outcome_.reserved_bytes = std::max(outcome_.reserved_bytes, reserved());
        if (live_ < outcome_.peak_bytes) return;
        outcome_.peak_bytes = live_;
        outcome_.at_peak_bytes = reserved();
    }

    void release(Piece* block) {
        live_ -= block->asked_bytes();
        rules::Released released;
        released.made_for_it = block->may_be_kept;
        released.bytes = block->bytes();
        if (rules::keeping(released, limit_bytes_) == rules::Keeping::keep) return free(cache_.keep(*block));
        cache_.returned(*block);
        free({block});
    }

    const MemoryKind kind_;
    const std::uint64_t limit_bytes_;
    const Asks asks_;
    isthmus::testing::NoMemory memory_;
    PieceCache cache_{memory_, limit_bytes_};
    std::deque<Piece> pieces_;
    std::vector<Piece*> unused_;
    std::vector<Piece*> blocks_;
    std::uint64_t next_address_ = std::uint64_t{1} << 32;
    std::uint64_t pieces_bytes_ = 0, live_ = 0;
    std::optional<detail::SegmentMap> segment_;
    Outcome outcome_;
};

Outcome replayed(const traces::Trace& trace, std::uint64_t limit_bytes, From from = From::driver,
                 Asks asks = Asks::as_requested) {
    const Outcome outcome = Replay(MemoryKind::device, limit_bytes, from, asks).play(trace);
    EXPECT_EQ(outcome.peak_bytes, trace.peak_bytes);
    return outcome;
}

void report(const std::string& name, std::uint64_t limit_bytes, const Outcome& outcome) {
    const std::string limit = limit_bytes == no_limit ? "no limit" : std::to_string(limit_bytes >> 20) + " MiB";
    const std::uint64_t requests = outcome.hits + outcome.misses;
    std::printf("%-28s %9s: reserved %.4f of the peak (%.4f at the peak), hits %.4f of %s\n", name.c_str(),
                limit.c_str(), outcome.reserved(), outcome.at_peak(), outcome.hit_rate(),
                std::to_string(requests).c_str());
}

// With every limit the bound holds; without one, so many requests are served.
void expect_bounded(const std::string& name, const traces::Trace& trace, std::vector<std::uint64_t> limits,
                    double least_hits) {
    SCOPED_TRACE(name);
    ASSERT_EQ(trace.error, "");
    limits.push_back(no_limit);
    for (const std::uint64_t limit : limits) {
        const Outcome outcome = replayed(trace, limit);
        report(name, limit, outcome);
        EXPECT_LE(outcome.reserved(), 1.10);
        if (limit == no_limit) {
            EXPECT_GE(outcome.hit_rate(), least_hits);
        }
        if (limit == 0) {
            EXPECT_EQ(outcome.hits, 0u);
            EXPECT_EQ(outcome.reserved_bytes, outcome.peak_bytes);
        }
    }
}

// The same with the pieces in a segment: handles of 2 MiB, as the driver maps them.
void expect_bounded_in_segment(const std::string& name, const traces::Trace& trace, double most_reserved) {
    SCOPED_TRACE(name);
    ASSERT_EQ(trace.error, "");
    const Outcome outcome = replayed(trace, no_limit, From::segment);
    report(name + " in a segment", no_limit, outcome);
    std::printf("%-28s %llu granules mapped in %zu events\n", "", static_cast<unsigned long long>(outcome.granules),
                trace.events.size());
    EXPECT_LE(outcome.reserved(), most_reserved);
}

struct Recorded {
    const char* name;
    double least_hits;
    double in_segment;  // most that a segment reserves
    friend std::ostream& operator<<(std::ostream& out, const Recorded& one) { return out << one.name; }
};

struct InTheTree : ::testing::TestWithParam<Recorded> {};
TEST_P(InTheTree, ReservesAtMostATenthMoreThanLivesAtThePeak) {  // keeps M8
    const std::string path = std::string(ISTHMUS_TRACES) + GetParam().name + ".txt";
    if (!traces::exists(path)) GTEST_SKIP() << "needs the source tree: " << path;
    expect_bounded(GetParam().name, traces::read(path), {0, 1 << 20, 8 << 20, 64 << 20}, GetParam().least_hits);
}
TEST_P(InTheTree, ASegmentReservesLittleMore) {  // keeps M8
    const std::string path = std::string(ISTHMUS_TRACES) + GetParam().name + ".txt";
    if (!traces::exists(path)) GTEST_SKIP() << "needs the source tree: " << path;
    expect_bounded_in_segment(GetParam().name, traces::read(path), GetParam().in_segment);
}
// More than any program gets: the driver is asked for more at every request, not where sizes change alone.
TEST_P(InTheTree, HeadroomAtEveryRequestReservesNoMore) {  // keeps M8
    const std::string path = std::string(ISTHMUS_TRACES) + GetParam().name + ".txt";
    if (!traces::exists(path)) GTEST_SKIP() << "needs the source tree: " << path;
    const Outcome outcome = replayed(traces::read(path), no_limit, From::driver, Asks::with_headroom);
    report(std::string(GetParam().name) + " with headroom", no_limit, outcome);
    EXPECT_LE(outcome.reserved(), 1.10);
}
INSTANTIATE_TEST_SUITE_P(Traces, InTheTree,
                         ::testing::Values(Recorded{"transformer-training-short", 0.55, 1.10},
                                           Recorded{"camera-streams-short", 0.85, 1.10},
                                           Recorded{"camera-messages", 0.85, 1.13}, Recorded{"isthmus-run", 0, 1.08}));

struct Shared : ::testing::TestWithParam<Recorded> {};
TEST_P(Shared, ReservesAtMostATenthMoreThanLivesAtThePeak) {  // keeps M8
    const char* const given = std::getenv("ISTHMUS_TRACES");
    const std::string folder = given != nullptr ? given : ISTHMUS_SHARED_TRACES;
    const std::string path = folder + "/" + GetParam().name + ".txt.gz";
    if (!traces::exists(path)) GTEST_SKIP() << "needs " << path << " (ISTHMUS_TRACES names its folder)";
    expect_bounded(GetParam().name, traces::read(path), {64 << 20}, GetParam().least_hits);
}
TEST_P(Shared, ASegmentReservesLittleMore) {  // keeps M8
    const char* const given = std::getenv("ISTHMUS_TRACES");
    const std::string folder = given != nullptr ? given : ISTHMUS_SHARED_TRACES;
    const std::string path = folder + "/" + GetParam().name + ".txt.gz";
    if (!traces::exists(path)) GTEST_SKIP() << "needs " << path << " (ISTHMUS_TRACES names its folder)";
    expect_bounded_in_segment(GetParam().name, traces::read(path), GetParam().in_segment);
}
INSTANTIATE_TEST_SUITE_P(Traces, Shared,
                         ::testing::Values(Recorded{"transformer-training", 0.9, 1.12},
                                           Recorded{"camera-streams", 0.99, 1.10}));

// One owner at a time asks for what each of the others asked for, in an order that no piece outlives; and everything is
// released before half as much lives again. The bound is no property of the recorded programs.
TEST(TraceReplay, SequencesMadeToFragmentReserveNoMore) {  // keeps M8
    std::uint64_t state = 1;
    const auto draw = [&state](std::uint64_t below) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % below;
    };
    for (int made = 0; made < 20; ++made) {
        traces::Trace trace;
        std::vector<std::pair<std::uint32_t, std::size_t>> living;
        std::uint64_t live = 0;
        for (int step = 0; step < 3000; ++step) {
            const std::uint64_t bound = (step / 500) % 2 == 0 ? 60 : 6;  // phases of many owners and of few
            if (living.size() < bound && draw(5) != 0) {
                const auto bytes = static_cast<std::size_t>((std::uint64_t{1} << (9 + draw(13))) + draw(4000));
                living.emplace_back(trace.blocks, bytes);
                trace.events.push_back({trace.blocks++, 0, bytes});
                live += bytes;
                trace.peak_bytes = std::max(trace.peak_bytes, live);
            } else if (!living.empty()) {
                const std::size_t at = draw(living.size());
                live -= living[at].second;
                trace.events.push_back({living[at].first, 0, 0});
                living.erase(living.begin() + static_cast<std::ptrdiff_t>(at));
            }
        }
        for (const auto& [block, bytes] : living) trace.events.push_back({block, 0, 0});
        const Outcome outcome = replayed(trace, no_limit);
        EXPECT_LE(outcome.reserved(), 1.0626) << made;
        EXPECT_GT(outcome.hits, 0u);
    }
}

// Each request is larger, or smaller, than the last by a share in thousandths; `beside` blocks of 8 MiB live all the
// time.
traces::Trace drifting(int thousandths, int beside) {
    traces::Trace trace;
    std::uint64_t live = 0;
    const auto allocate = [&](std::size_t bytes) {
        trace.events.push_back({trace.blocks++, 0, bytes});
        live += bytes;
        trace.peak_bytes = std::max(trace.peak_bytes, live);
    };
    for (int at = 0; at < beside; ++at) allocate(std::size_t{8} << 20);
    double bytes = thousandths > 0 ? 1e6 : 4e6;
    for (int at = 0; at < 400; ++at, bytes *= 1 + thousandths / 1000.0) {
        const std::uint32_t block = trace.blocks;
        allocate(static_cast<std::size_t>(bytes));
        live -= static_cast<std::size_t>(bytes);
        trace.events.push_back({block, 0, 0});
    }
    for (int at = 0; at < beside; ++at) trace.events.push_back({static_cast<std::uint32_t>(at), 0, 0});
    return trace;
}

TEST(TraceReplay, RequestsThatGrowOrShrinkAreServedWithinTheBound) {  // keeps M2, M8
    struct Case {
        int thousandths;
        int beside;
        double least_hits;
    };
    for (const Case& one : {Case{1, 0, 0.97}, Case{1, 8, 0.96}, Case{10, 0, 0.82}, Case{10, 8, 0.88}, Case{-1, 0, 0.99},
                            Case{-1, 8, 0.97}, Case{-10, 0, 0.97}, Case{-10, 8, 0.9}}) {
        const traces::Trace trace = drifting(one.thousandths, one.beside);
        const Outcome outcome = replayed(trace, no_limit, From::driver, Asks::with_headroom);
        const std::string name =
            "by " + std::to_string(one.thousandths) + " of 1000 beside " + std::to_string(one.beside);
        report(name, no_limit, outcome);
        EXPECT_LE(outcome.reserved(), 1.0626) << name;
        EXPECT_GE(outcome.hit_rate(), one.least_hits) << name;
        if (one.thousandths < 0) continue;
        EXPECT_EQ(replayed(trace, no_limit).hits, 0u) << "without headroom none is served";
    }
}

TEST(TraceReader, ReadsTracesAndLogs) {
    const traces::Trace trace = traces::parse("# two blocks\na 7 100 3\na 9 50 0\nf 7 3\n");
    EXPECT_EQ(trace.error, "");
    EXPECT_EQ(trace.origin, "two blocks");
    ASSERT_EQ(trace.events.size(), 4u) << "what lives at the end is released";
    EXPECT_EQ(trace.events[1].block, 1u);
    EXPECT_EQ(trace.events[1].bytes, 50u);
    EXPECT_EQ(trace.events[3].block, 1u);
    EXPECT_EQ(trace.events[3].bytes, 0u);
    EXPECT_EQ(trace.blocks, 2u);
    EXPECT_EQ(trace.streams, 2u);
    EXPECT_EQ(trace.peak_bytes, 150u);
    const traces::Trace log = traces::parse(
        "time_ns,thread,action,id,address,bytes,stream\n1,1,allocate,5,0x10,64,0\n2,1,allocate_failure,0,0x0,99,0\n"
        "3,1,release,5,0x10,64,0\n");
    EXPECT_EQ(log.error, "");
    EXPECT_EQ(log.events.size(), 2u);
    EXPECT_EQ(log.peak_bytes, 64u);
}

TEST(TraceReader, RefusesWhatIsNoTrace) {
    for (const char* const wrong :
         {"a 1 100\n", "a 1 100 0 0\n", "a 1 -5 0\n", "a 1 0 0\n", "a x 100 0\n", "g 1 0\n", "f 1 0\n",
          "a 1 100 0\na 1 100 0\n", "a 1 100 0\nf 1 0\nf 1 0\n", "a 1 100 0\nf 1", "a 1 100 0\nf 1 0 0\n",
          "time_ns,thread,action,id,address,bytes,stream\n1,1,allocate,5,0x10,64\n"}) {
        EXPECT_NE(traces::parse(wrong).error, "") << wrong;
    }
    EXPECT_NE(traces::read("/nowhere/at/all.txt").error, "");
    EXPECT_NE(traces::read("/nowhere/at/all.txt.gz").error, "");
}

}  // namespace
