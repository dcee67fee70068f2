// SPDX-License-Identifier: Apache-2.0
// All ways of a point take turns, so that a change of the machine's speed meets every one alike.
#include "verify.hpp"

#include "cost_model.hpp"
#include "measure.hpp"
#include "plan.hpp"
#include "statistics.hpp"
#include "turn_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace isthmus::tools::tune {
namespace {

constexpr Role roles[] = {Role::reads, Role::writes, Role::reads_and_writes};

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t next_random(std::uint64_t& state) {
    std::uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}
double next_share(std::uint64_t& state) {
    return static_cast<double>(next_random(state) >> 11) * 0x1p-53;
}

// Buffers that take turns at one point.
struct Runner {
    Device* device = nullptr;
    SharedUse use;
    std::vector<TurnBuffer>
        buffers;  // the last one is in use; the others keep their memory from being handed out again
    std::vector<double> times;

    bool renew(std::size_t bytes) {
        Result<TurnBuffer> made = TurnBuffer::make(*device, use, bytes);
        if (!made) return false;
        buffers.push_back(std::move(made).value());
        return true;
    }
};

// The one way of this kind; nothing: none, or several, which differ in where they lie.
std::optional<std::size_t> way_of_kind(const std::vector<Way>& ways, MemoryKind kind) {
    std::optional<std::size_t> found;
    for (std::size_t at = 0; at < ways.size(); ++at) {
        if (ways[at].kind != kind) continue;
        if (found) return std::nullopt;
        found = at;
    }
    return found;
}

class Verifier {
public:
    Verifier(Device& with, Device& without, const VerifyRequest& request)
        : with_(with), without_(without), request_(request), begin_(steady_seconds()) {}

    std::vector<VerifyRow> run() {
        // Several times over all points: a machine's speed changes within seconds, for one way more than for another.
        constexpr std::size_t sweeps = 3;
        std::vector<Tally> tallies(request_.points.size());
        const std::size_t steps = sweeps * tallies.size();
        for (std::size_t step = 0; step < steps; ++step) {
            const double taken = steady_seconds() - begin_;
            if (taken >= request_.budget) break;
            const std::size_t at = step % tallies.size();
            if (request_.progress) {
                request_.progress(taken / request_.budget,
                                  fmt::format("point {} of {}, {} of {} times", at + 1, tallies.size(),
                                              step / tallies.size() + 1, sweeps));
            }
            // A part of the point's share is for allocations and first turns; what a point leaves is for the others.
            constexpr double for_turns = 0.7;
            const double share = (request_.budget - taken) / static_cast<double>(steps - step);
            visit(request_.points[at], for_turns * share, tallies[at]);
        }
        std::vector<VerifyRow> rows;
        for (std::size_t at = 0; at < tallies.size(); ++at) {
            if (std::optional<VerifyRow> row = row_of(request_.points[at], tallies[at]))
                rows.push_back(std::move(*row));
        }
        return rows;
    }

private:
    // What a point's visits measured: the times of each way, and of what the policy chose where that is none of them.
    struct Tally {
        std::vector<Way> ways;
        std::vector<std::vector<double>> times;
        std::size_t with = 0;  // numbers of `times`
        std::size_t without = 0;
        std::string with_kind;
        std::string without_kind;
    };

    // The memory that the policy chooses: the number of the runner that has such memory, which is made where none has.
    std::optional<std::size_t> choose(Device& device, const VerifyPoint& point, const std::vector<Way>& ways,
                                      std::vector<Runner>& runners, std::string& kind) {
        const SharedUse use = use_of(point.device, point.passes);
        {
            const auto lanes = device.allocate_shared<Lane>(point.bytes / sizeof(Lane), use);
            if (!lanes) return std::nullopt;
            kind = name(lanes->kind());
            if (const auto way = way_of_kind(ways, lanes->kind())) return way;
        }
        runners.push_back({&device, use, {}, {}});
        if (!runners.back().renew(point.bytes)) return std::nullopt;
        return runners.size() - 1;
    }

    // Ends early where every interval is narrow.
    void take_turns(const VerifyPoint& point, double seconds, std::vector<Runner>& runners) const {
        constexpr int least_rounds = 6, most_rounds = 24;
        constexpr int most_allocations = 3, rounds_of_one_allocation = 3;
        constexpr std::size_t renewed_to_bytes = std::size_t{4} << 20;
        const double end = steady_seconds() + seconds;
        for (int round = 0; round < most_rounds; ++round) {
            const auto stable = [](const Runner& runner) { return is_stable(sample_of(runner.times), 0.01); };
            const bool enough = round >= least_rounds;
            if (enough && (steady_seconds() >= end || std::all_of(runners.begin(), runners.end(), stable))) return;
            // Other memory for every way, as the next program's buffer has: the spread is that of repeats and places.
            if (round > 0 && round % rounds_of_one_allocation == 0 && point.bytes <= renewed_to_bytes &&
                runners.front().buffers.size() < most_allocations) {
                for (Runner& each : runners) (void)each.renew(point.bytes);
            }
            for (std::size_t i = 0; i < runners.size(); ++i) {
                Runner& runner = runners[round % 2 == 0 ? i : runners.size() - 1 - i];
                const Result<double> taken = runner.buffers.back().turn(point.device, point.passes);
                if (taken) runner.times.push_back(*taken);
            }
        }
    }

    void visit(const VerifyPoint& point, double seconds, Tally& tally) {
        Tally now;
        std::vector<Runner> runners;
        for (const Way& way : request_.ways) {
            if (!is_lawful(way, point.device)) continue;
            runners.push_back({&without_, use_of(way), {}, {}});
            if (runners.back().renew(point.bytes)) {
                now.ways.push_back(way);
            } else {
                runners.pop_back();
            }
        }
        const auto with = choose(with_, point, now.ways, runners, now.with_kind);
        const auto without = choose(without_, point, now.ways, runners, now.without_kind);
        if (!with || !without || now.ways.empty()) return;
        now.with = *with;
        now.without = *without;
        take_turns(point, seconds, runners);
        for (Runner& runner : runners) now.times.push_back(std::move(runner.times));
        if (tally.times.empty()) {
            tally = std::move(now);
            return;
        }
        // Where an allocation failed this time, the earlier visits count alone.
        if (tally.ways != now.ways || tally.with != now.with || tally.without != now.without) return;
        for (std::size_t i = 0; i < now.times.size(); ++i) {
            tally.times[i].insert(tally.times[i].end(), now.times[i].begin(), now.times[i].end());
        }
    }

    static std::optional<VerifyRow> row_of(const VerifyPoint& point, const Tally& tally) {
        std::vector<Sample> samples;
        for (const std::vector<double>& times : tally.times) samples.push_back(sample_of(times));
        if (samples.empty() ||
            std::any_of(samples.begin(), samples.end(), [](const Sample& sample) { return sample.count == 0; })) {
            return std::nullopt;
        }
        VerifyRow row;
        row.point = point;
        row.with_profile.kind = tally.with_kind;
        row.without_profile.kind = tally.without_kind;
        std::size_t best = 0;
        for (std::size_t at = 1; at < tally.ways.size(); ++at) {
            if (samples[at].median < samples[best].median) best = at;
        }
        row.best = tally.ways[best];
        row.best_seconds = samples[best];
        for (const auto& [choice, at] :
             {std::pair(&row.with_profile, tally.with), std::pair(&row.without_profile, tally.without)}) {
            choice->seconds = samples[at];
            choice->ratio = at == best ? 1 : ratio_of(samples[at], samples[best]);
        }
        return row;
    }

    Device& with_;
    Device& without_;
    const VerifyRequest& request_;
    const double begin_;
};

}  // namespace

std::vector<VerifyPoint> verify_points(int count, std::uint64_t seed, std::size_t largest,
                                       const std::vector<std::size_t>& measured) {
    constexpr double most_moved = 4.0 * (1u << 30);
    std::vector<VerifyPoint> points;
    std::uint64_t state = seed;
    const double sizes = std::log(static_cast<double>(std::max(largest, 2 * least_bytes)) / least_bytes);
    while (points.size() < static_cast<std::size_t>(std::max(count, 0))) {
        VerifyPoint point;
        point.device = roles[points.size() % 3];
        const double bytes = least_bytes * std::exp(next_share(state) * sizes);
        point.bytes = static_cast<std::size_t>(bytes / sizeof(Lane)) * sizeof(Lane);
        const double passes = std::exp(next_share(state) * std::log(256.0));
        const double most = std::max(1.0, most_moved / static_cast<double>(point.bytes));
        point.passes = static_cast<int>(std::min(std::round(passes), std::floor(most)));
        if (std::find(measured.begin(), measured.end(), point.bytes) == measured.end()) points.push_back(point);
    }
    return points;
}

double ratio_of(const Sample& chosen, const Sample& best) {
    if (chosen.low <= best.high || best.median <= 0) return 1;
    return std::max(chosen.median / best.median, 1.0);
}

Verdict verdict_of(const std::vector<VerifyRow>& rows, bool with_profile) {
    Verdict verdict;
    int good = 0;
    for (const VerifyRow& row : rows) {
        const double ratio = with_profile ? row.with_profile.ratio : row.without_profile.ratio;
        ++verdict.points;
        good += ratio <= good_ratio ? 1 : 0;
        verdict.worst = std::max(verdict.worst, ratio);
    }
    if (verdict.points > 0) verdict.good_share = static_cast<double>(good) / verdict.points;
    return verdict;
}

bool is_kept(const Verdict& verdict) {
    return verdict.points > 0 && verdict.good_share >= wanted_good_share && verdict.worst <= borne_ratio;
}

std::vector<VerifyRow> verify(Device& with, Device& without, const VerifyRequest& request) {
    return Verifier(with, without, request).run();
}

}  // namespace isthmus::tools::tune
