// SPDX-License-Identifier: Apache-2.0
// Visits sizes: every round of a visit measures each point of the size once.
#include "sampler.hpp"

#include "cost_model.hpp"
#include "common/console.hpp"
#include "statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace isthmus::tools::tune {
namespace {

constexpr Role roles[] = {Role::reads, Role::writes, Role::reads_and_writes};
constexpr int fewest_repeats = 3;       // of a point whose turns are long
constexpr double for_one_visit = 0.02;  // of the time: for more repeats than the least
constexpr int failures_borne = 3;       // errors of one point, after which it is given up

// One thing that is measured again and again: a turn, or (passes 0) a pass of the host alone.
struct Point {
    std::size_t way = 0;
    Role role = Role::reads;
    int passes = 0;
    std::vector<double> times;
    std::vector<std::size_t> visits;  // the count of times at the begin of each visit
    int failures = 0;
    mutable Sample sample{};  // of `times`, as many as its count says

    Point(std::size_t its_way, Role its_role, int its_passes) : way(its_way), role(its_role), passes(its_passes) {}
    bool given_up() const { return failures >= failures_borne; }
    // Long ones follow from shorter ones, and only check that they do.
    bool only_checks() const { return passes > 16; }
    bool is_measured() const { return !times.empty(); }
    const Sample& measured() const {
        if (static_cast<std::size_t>(sample.count) != times.size()) sample = sample_of(times);
        return sample;
    }
    double median() const { return measured().median; }
};

struct Place {
    std::vector<Point> points;
    int visits = 0;
};

double median_of(std::vector<double> values) {
    return sample_of(std::move(values)).median;
}

class Sampler {
public:
    Sampler(TurnClock& clock, const SamplerRequest& request)
        : clock_(clock), request_(request), begin_(clock.now()), length_(std::max(request.until - begin_, 1e-9)) {}

    Sampled run() {
        first_visits();
        refine();
        revisit();
        return result();
    }

private:
    bool over() { return clock_.now() >= request_.until; }
    double left() { return request_.until - clock_.now(); }

    void tell(std::string_view stage, std::size_t bytes) {
        if (!request_.progress) return;
        const double share = std::clamp((clock_.now() - begin_) / length_, 0.0, 1.0);
        request_.progress(share, fmt::format("{}: {}", stage, size_text(bytes)));
    }

    std::vector<Point> points_of(std::size_t bytes) const {
        std::vector<Point> points;
        const std::vector<int> passes = passes_at(bytes);
        for (const Role role : roles) {
            for (const int each : passes) {
                for (std::size_t way = 0; way < request_.ways.size(); ++way) {
                    if (is_lawful(request_.ways[way], role)) points.emplace_back(way, role, each);
                }
            }
        }
        for (const Role role : roles) {
            for (std::size_t way = 0; way < request_.ways.size(); ++way) {
                if (is_lawful_for_host(request_.ways[way], role)) points.emplace_back(way, role, 0);
            }
        }
        return points;
    }

    // The point of the same way and role with as many passes; otherwise the one with most passes.
    static const Point* nearest(const Place& place, const Point& point) {
        const Point* found = nullptr;
        for (const Point& other : place.points) {
            if (other.way != point.way || other.role != point.role || other.times.empty()) continue;
            if ((other.passes == 0) != (point.passes == 0)) continue;
            found = &other;
            if (other.passes == point.passes) break;
        }
        return found;
    }
    // The seconds that the point is expected to take: its median, or what its like at the two nearest smaller sizes
    // tell, scaled by the passes; 0: unknown.
    double expected(const Point& point, std::size_t bytes) const {
        if (point.is_measured()) return point.median();
        double seconds = 0;
        std::size_t at_bytes = 0;
        for (auto at = std::make_reverse_iterator(places_.lower_bound(bytes)); at != places_.rend(); ++at) {
            const Point* const other = nearest(at->second, point);
            if (other == nullptr) continue;
            const double more_passes = point.passes == 0 ? 1 : static_cast<double>(point.passes) / other->passes;
            const double here = other->median() * std::max(more_passes, 1.0);
            if (at_bytes == 0) {
                seconds = here;
                at_bytes = at->first;
                continue;
            }
            const double grown = std::log(std::max(seconds / std::max(here, 1e-9), 1e-9));
            const double slope = grown / std::log(static_cast<double>(at_bytes) / static_cast<double>(at->first));
            return seconds *
                   std::pow(static_cast<double>(bytes) / static_cast<double>(at_bytes), std::clamp(slope, 0.0, 1.0));
        }
        return at_bytes == 0 ? 0 : seconds * static_cast<double>(bytes) / static_cast<double>(at_bytes);
    }

    void measure(Point& point, std::size_t bytes) {
        const Way& way = request_.ways[point.way];
        const Result<double> seconds =
            point.passes == 0 ? clock_.host(way, point.role, bytes) : clock_.turn(way, point.role, bytes, point.passes);
        if (seconds) {
            point.times.push_back(*seconds);
        } else if (++point.failures == failures_borne) {
            note(fmt::format("{}, {}, {}: given up: {}", name(way.kind), name(point.role), size_text(bytes),
                             seconds.error().message()));
        }
    }

    // Rounds until every point is stable or has `most` repeats in this visit, or `seconds` are over; each point gets at
    // least `least` repeats as long as there is time at all.
    void visit(std::size_t bytes, int least, double seconds, std::string_view stage) {
        const double end = std::min(clock_.now() + seconds, request_.until);
        auto [at, is_new] = places_.try_emplace(bytes);
        Place& place = at->second;
        if (is_new) place.points = points_of(bytes);
        ++place.visits;
        for (Point& point : place.points) point.visits.push_back(point.times.size());
        const std::size_t count = place.points.size();
        for (int round = 0; round < request_.effort.most_repeats; ++round) {
            bool any = false;
            const bool first = round == 0 && place.visits == 1;
            const bool due = !first && round % request_.effort.repeats_of_one_allocation == 0;
            if (due && bytes <= request_.effort.renewed_to_bytes) clock_.renew(bytes);
            for (std::size_t i = 0; i < count; ++i) {
                // Every other round goes backwards, so that no point always follows the same one.
                Point& point = place.points[round % 2 == 0 ? i : count - 1 - i];
                if (point.given_up()) continue;
                const bool enough = round >= (point.only_checks() ? fewest_repeats : least);
                if (point.only_checks() && expected(point, bytes) * fewest_repeats > length_ * for_one_visit) continue;
                if (enough && is_stable(point.measured(), request_.effort.stable)) continue;
                const double now = clock_.now();
                if (enough && now >= end) continue;
                // A point that has never been measured at any size is tried: its size is small.
                if (now + 1.1 * expected(point, bytes) > request_.until) continue;
                if (i % 16 == 0) tell(stage, bytes);
                measure(point, bytes);
                any = true;
            }
            if (!any) break;
        }
    }

    // Of a first visit with `least` repeats; 0: unknown.
    double cost_of_visit(std::size_t bytes, int least) const {
        double seconds = 0;
        for (const Point& point : points_of(bytes)) seconds += point.only_checks() ? 0 : expected(point, bytes);
        return seconds * (least + 1.5);  // with the first touches and what is not timed
    }

    // As many repeats as the size may take; 0: not even the fewest fit.
    int repeats_within(std::size_t bytes, double seconds) const {
        if (cost_of_visit(bytes, request_.effort.least_repeats) <= seconds) return request_.effort.least_repeats;
        return cost_of_visit(bytes, fewest_repeats) <= seconds ? fewest_repeats : 0;
    }

    void first_visits() {
        const std::vector<std::size_t> sizes = planned_sizes(request_.effort, request_.largest);
        for (std::size_t at = 0; at < sizes.size(); ++at) {
            // The largest sizes cost as much as all smaller ones together. Time is kept for what comes after.
            const int least = repeats_within(sizes[at], 0.6 * left());
            if (over() || least == 0) {
                note(
                    fmt::format("sizes from {} on were not measured: there was too little time", size_text(sizes[at])));
                return;
            }
            visit(sizes[at], least, length_ * for_one_visit, "sizes");
        }
    }

    // The costs of all ways at this size; none: not measured, or not among those that are looked at.
    std::vector<std::optional<double>> costs(const Place& place, Role role, int passes, bool in_place_only) const {
        std::vector<std::optional<double>> all(request_.ways.size());
        for (std::size_t way = 0; way < all.size(); ++way) {
            const MemoryKind kind = request_.ways[way].kind;
            if (in_place_only && (kind == MemoryKind::device || kind == MemoryKind::pool)) continue;
            // The two measured numbers of passes around `passes`, or the two most of them.
            const Point* below = nullptr;
            const Point* above = nullptr;
            for (const Point& point : place.points) {
                if (point.way != way || point.role != role || point.passes == 0 || point.times.empty()) continue;
                if (above != nullptr && above->passes >= passes) break;
                below = above;
                above = &point;
            }
            if (above == nullptr) continue;
            const double end = above->median();
            if (below == nullptr) {
                all[way] = end;
                continue;
            }
            const double begin = below->median();
            const double per_pass = (end - begin) / (above->passes - below->passes);
            all[way] = begin + per_pass * (passes - below->passes);
        }
        return all;
    }

    // Whether no way is about the best at both sizes.
    static bool changes(const std::vector<std::optional<double>>& one,
                        const std::vector<std::optional<double>>& other) {
        constexpr double about = 1.03;
        const auto least = [](const std::vector<std::optional<double>>& costs) {
            double best = std::numeric_limits<double>::infinity();
            for (const auto& cost : costs) best = std::min(best, cost.value_or(best));
            return best;
        };
        const double best_one = least(one);
        const double best_other = least(other);
        if (!std::isfinite(best_one) || !std::isfinite(best_other)) return false;
        for (std::size_t way = 0; way < one.size(); ++way) {
            if (one[way] && other[way] && *one[way] <= about * best_one && *other[way] <= about * best_other)
                return false;
        }
        return true;
    }

    bool has_border(const Place& one, const Place& other) const {
        for (const Role role : roles) {
            for (const int passes : {1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256}) {
                for (const bool in_place_only : {false, true}) {
                    if (changes(costs(one, role, passes, in_place_only), costs(other, role, passes, in_place_only))) {
                        return true;
                    }
                }
            }
        }
        return false;
    }

    void refine() {
        for (bool found = true; found;) {
            found = false;
            std::vector<std::size_t> sizes;
            for (const auto& [bytes, place] : places_) sizes.push_back(bytes);
            for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
                const double ratio = static_cast<double>(sizes[i + 1]) / static_cast<double>(sizes[i]);
                if (ratio <= request_.effort.finest) continue;
                const std::size_t middle = size_between(sizes[i], sizes[i + 1]);
                if (middle == 0 || !has_border(places_.at(sizes[i]), places_.at(sizes[i + 1]))) continue;
                const int least = repeats_within(middle, 0.5 * left());
                if (least == 0) continue;
                visit(middle, least, length_ * for_one_visit, "borders");
                found = true;
            }
        }
    }

    bool is_done(const Place& place) const {
        return place.visits >= request_.effort.least_visits &&
               std::all_of(place.points.begin(), place.points.end(), [&](const Point& point) {
                   return point.given_up() || is_stable(point.measured(), request_.effort.stable);
               });
    }

    void revisit() {
        constexpr int most_visits = 8;
        for (int times = 1; times < most_visits && !over(); ++times) {
            bool any = false;
            for (auto& [bytes, place] : places_) {
                if (over()) return;
                if (is_done(place) || place.visits > times) continue;
                if (cost_of_rounds(place, fewest_repeats) > left()) continue;
                visit(bytes, fewest_repeats, length_ * for_one_visit, "repeats");
                any = true;
            }
            if (!any) return;
        }
    }
    double cost_of_rounds(const Place& place, int rounds) const {
        double seconds = 0;
        for (const Point& point : place.points) seconds += point.times.empty() ? 0 : point.median();
        return seconds * (rounds + 1);
    }

    double drift() const {
        std::vector<double> ratios;
        for (const auto& [bytes, place] : places_) {
            for (const Point& point : place.points) {
                if (point.visits.size() < 2 || point.visits[1] == 0 || point.visits.back() >= point.times.size())
                    continue;
                const auto begin = point.times.begin();
                const double first = median_of({begin, begin + static_cast<std::ptrdiff_t>(point.visits[1])});
                const double last =
                    median_of({begin + static_cast<std::ptrdiff_t>(point.visits.back()), point.times.end()});
                if (first > 0) ratios.push_back(last / first);
            }
        }
        return ratios.empty() ? 1 : median_of(std::move(ratios));
    }

    void note(std::string text) {
        constexpr std::size_t most_notes = 20;
        if (result_.notes.size() < most_notes) result_.notes.push_back(std::move(text));
    }

    Sampled result() {
        for (const auto& [bytes, place] : places_) {
            for (const Point& point : place.points) {
                // Fewer show no spread: they would look exact.
                if (static_cast<int>(point.times.size()) < fewest_repeats) continue;
                const Sample& sample = point.measured();
                const Way& way = request_.ways[point.way];
                if (point.passes == 0) {
                    result_.hosts.push_back({way, point.role, bytes, sample});
                } else {
                    result_.turns.push_back({way, point.role, bytes, point.passes, sample});
                }
            }
        }
        result_.drift = drift();
        return std::move(result_);
    }

    TurnClock& clock_;
    const SamplerRequest& request_;
    const double begin_;
    const double length_;
    std::map<std::size_t, Place> places_;  // by size in bytes
    Sampled result_;
};

}  // namespace

Sampled sample_turns(TurnClock& clock, const SamplerRequest& request) {
    return Sampler(clock, request).run();
}

}  // namespace isthmus::tools::tune
