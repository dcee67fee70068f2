// SPDX-License-Identifier: Apache-2.0
// From samples to surfaces over sizes and passes.
#include "cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace isthmus::tools::tune {

namespace {

constexpr double far_beyond = 4;      // a size further from the measured ones than this factor says nothing
constexpr int smoothing_rounds = 12;  // neighbours' influence halves the noise; more rounds change little
constexpr double infinite = std::numeric_limits<double>::infinity();

double between(double x, double x0, double y0, double x1, double y1) {
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

// A sample whose interval is in order and contains its median.
struct Interval {
    double low = 0;
    double median = 0;
    double high = 0;
};
std::optional<Interval> interval_of(const Sample& sample) {
    if (sample.count <= 0 || !std::isfinite(sample.median) || sample.median <= 0) return std::nullopt;
    const auto bound = [&](double value) { return std::isfinite(value) && value > 0 ? value : sample.median; };
    return Interval{std::min(bound(sample.low), sample.median), sample.median,
                    std::max(bound(sample.high), sample.median)};
}

struct Point {
    double bytes = 0;
    Interval seconds;
};

// Moves each time towards the line between its neighbours, never out of its confidence interval. A change of slope that
// the measurements show stays; noise that they do not exclude goes.
void smooth(std::vector<Point>& points) {
    constexpr double near = 17;  // neighbours further away than this factor say little
    for (int round = 0; round < smoothing_rounds; ++round) {
        const std::vector<Point> old = points;
        for (std::size_t i = 1; i + 1 < points.size(); ++i) {
            const Point &before = old[i - 1], &after = old[i + 1], &here = old[i];
            if (here.bytes > near * before.bytes || after.bytes > near * here.bytes) continue;
            const double line =
                between(here.bytes, before.bytes, before.seconds.median, after.bytes, after.seconds.median);
            points[i].seconds.median =
                std::clamp((here.seconds.median + line) / 2, here.seconds.low, here.seconds.high);
        }
    }
}

// One size while its surface is made: what was measured there, by number of passes.
struct Column {
    double bytes = 0;
    std::map<int, Interval> known;

    // The median over the measured numbers of passes.
    double spread() const {
        std::vector<double> shares;
        for (const auto& [passes, interval] : known) {
            shares.push_back((interval.high - interval.low) / 2 / interval.median);
        }
        std::sort(shares.begin(), shares.end());
        return shares[shares.size() / 2];
    }
    bool covers(int from, int to) const {
        return !known.empty() && known.begin()->first <= from && to <= known.rbegin()->first;
    }
    // Within the measured numbers of passes.
    double at(int passes) const {
        const auto above = known.lower_bound(passes);
        if (above->first == passes) return above->second.median;
        const auto below = std::prev(above);
        return between(passes, below->first, below->second.median, above->first, above->second.median);
    }
    double per_pass(int from, int to) const { return std::max(0.0, (at(to) - at(from)) / (to - from)); }
    // A pass beyond the highest measured number of them: by the two highest; if these admit it, by the highest and the
    // lowest, which are further apart.
    Interval last_pass() const {
        const auto last = std::prev(known.end());
        const auto by = [&](std::map<int, Interval>::const_iterator from) {
            const double span = last->first - from->first;
            return Interval{(last->second.low - from->second.high) / span, per_pass(from->first, last->first),
                            (last->second.high - from->second.low) / span};
        };
        const Interval near = by(std::prev(last)), whole = by(known.begin());
        return whole.median >= near.low && whole.median <= near.high ? whole : near;
    }
};

double half_width(const Interval& interval) {
    return (interval.high - interval.low) / 2;
}

// Where a turn is long and a pass is short, the cost of a pass is the small difference of large times. The line through
// the two neighbouring sizes, and for the largest size through the two before it, knows it as well: both count by the
// inverse of their variance. A line outside of the interval (the size outgrew a cache) is not used.
std::vector<double> last_passes(const std::vector<Column>& columns) {
    std::vector<double> costs(columns.size(), 0);
    std::vector<std::size_t> known;
    std::vector<Interval> own(columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c) {
        if (columns[c].known.size() < 2) continue;
        known.push_back(c);
        own[c] = columns[c].last_pass();
        costs[c] = own[c].median;
    }
    for (std::size_t i = 1; i < known.size() && known.size() > 2; ++i) {
        const std::size_t here = known[i], one = known[i - 1],
                          other = i + 1 < known.size() ? known[i + 1] : known[i - 2];
        const double share = (columns[here].bytes - columns[one].bytes) / (columns[other].bytes - columns[one].bytes);
        const double line = own[one].median + share * (own[other].median - own[one].median);
        const double width = half_width(own[here]);
        if (width <= 0 || std::fabs(line - own[here].median) > width) continue;
        const double line_width = std::hypot((1 - share) * half_width(own[one]), share * half_width(own[other]));
        const double weight = width * width / (width * width + line_width * line_width);  // of the line
        costs[here] += weight * (line - own[here].median);
    }
    return costs;
}

// The cost of a further pass between two numbers of passes that were not both measured at this size.
double lent_per_pass(const std::vector<Column>& columns, const std::vector<double>& own_passes, std::size_t here,
                     int from, int to) {
    const Column& column = columns[here];
    const Column* below = nullptr;
    const Column* above = nullptr;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (!columns[i].covers(from, to)) continue;
        if (i < here) below = &columns[i];
        if (i > here && above == nullptr) above = &columns[i];
    }
    if (below != nullptr && above != nullptr) {
        return between(column.bytes, below->bytes, below->per_pass(from, to), above->bytes, above->per_pass(from, to));
    }
    const Column* const one = below != nullptr ? below : above;
    const double lent = one != nullptr ? one->per_pass(from, to) : 0;
    const double scaled = one != nullptr ? lent * column.bytes / one->bytes : 0;
    if (column.known.size() < 2) {
        // Nothing but one number of passes: no pass is cheaper than the others.
        return one != nullptr ? scaled : column.known.begin()->second.median / column.known.begin()->first;
    }
    const double own = own_passes[here];
    if (one == nullptr) return own;
    // Larger buffers take longer, and at most in proportion to their size, unless they outgrow a cache.
    constexpr double cache = 4;
    return one == below ? std::clamp(own, lent, cache * scaled) : std::clamp(own, scaled / cache, lent);
}

}  // namespace

std::vector<UseCase> use_cases() {
    std::vector<UseCase> uses;
    for (const Role device : all_roles) {
        for (const Role host : all_roles) {
            for (const bool often : {false, true}) {
                for (const Prefer prefer : {Prefer::throughput, Prefer::latency}) {
                    uses.push_back({device, host, often, prefer});
                }
            }
        }
    }
    return uses;
}

bool is_in_place(const Way& way) {
    return way.kind != MemoryKind::device && way.kind != MemoryKind::pool && way.kind != MemoryKind::vmm;
}

bool is_lawful_for_host(const Way& way, Role host) noexcept {
    return way.kind != MemoryKind::write_combined || host == Role::writes;
}

bool is_lawful(const Way& way, Role device) noexcept {
    return is_lawful_for_host(way, device == Role::reads ? Role::writes : Role::reads);
}

bool is_lawful(const Way& way, const UseCase& use) {
    return is_lawful_for_host(way, use.host) && (use.prefer != Prefer::latency || is_in_place(way));
}

CostModel::CostModel(const Measurements& measured) : ways_(measured.ways) {
    for (const Way& way : ways_) {
        for (const Role role : all_roles) {
            surfaces_.push_back(surface_of(measured, way, role));
            hosts_.push_back(host_curve(measured, way, role));
            for (const AtSize& size : surfaces_.back().sizes) sizes_.push_back(size.bytes);
        }
    }
    std::sort(sizes_.begin(), sizes_.end());
    sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
}

CostModel::Surface CostModel::surface_of(const Measurements& measured, const Way& way, Role role) {
    std::map<int, std::map<std::size_t, TurnSample>> by_passes;
    for (const TurnSample& turn : measured.turns) {
        if (turn.way != way || turn.device != role || turn.passes < 1 || turn.bytes == 0) continue;
        if (!interval_of(turn.seconds)) continue;
        TurnSample& kept = by_passes[turn.passes][turn.bytes];
        if (turn.seconds.count > kept.seconds.count) kept = turn;
    }
    std::map<std::size_t, Column> by_size;
    for (const auto& [passes, turns] : by_passes) {
        std::vector<Point> points;
        for (const auto& [bytes, turn] : turns)
            points.push_back({static_cast<double>(bytes), *interval_of(turn.seconds)});
        smooth(points);
        std::size_t i = 0;
        for (const auto& [bytes, turn] : turns) {
            Column& column = by_size[bytes];
            column.bytes = static_cast<double>(bytes);
            column.known[passes] = points[i++].seconds;
        }
    }
    std::vector<Column> columns;
    for (const auto& [bytes, column] : by_size) columns.push_back(column);

    const std::vector<double> own_passes = last_passes(columns);

    Surface surface;
    for (const auto& [passes, turns] : by_passes) surface.passes.push_back(passes);
    if (surface.passes.size() == 1) surface.passes.push_back(2 * surface.passes.front());
    const std::vector<int>& steps = surface.passes;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        const Column& column = columns[c];
        AtSize at{column.bytes, std::vector<double>(steps.size()), column.spread()};
        const int first = column.known.begin()->first, last = column.known.rbegin()->first;
        for (std::size_t k = 0; k < steps.size(); ++k) {
            if (steps[k] >= first && steps[k] <= last) at.seconds[k] = column.at(steps[k]);
            if (steps[k] > last) {
                const double more =
                    lent_per_pass(columns, own_passes, c, steps[k - 1], steps[k]) * (steps[k] - steps[k - 1]);
                at.seconds[k] = at.seconds[k - 1] + more;
            }
        }
        for (std::size_t k = steps.size(); k-- > 0;) {
            if (steps[k] >= first) continue;
            const double less =
                lent_per_pass(columns, own_passes, c, steps[k], steps[k + 1]) * (steps[k + 1] - steps[k]);
            at.seconds[k] = std::max(at.seconds[k + 1] - less, at.seconds[k + 1] * steps[k] / steps[k + 1]);
        }
        surface.sizes.push_back(std::move(at));
    }
    return surface;
}

CostModel::Curve CostModel::host_curve(const Measurements& measured, const Way& way, Role role) {
    std::map<std::size_t, HostSample> by_size;
    for (const HostSample& sample : measured.hosts) {
        if (sample.way != way || sample.host != role || sample.bytes == 0 || !interval_of(sample.seconds)) continue;
        HostSample& kept = by_size[sample.bytes];
        if (sample.seconds.count > kept.seconds.count) kept = sample;
    }
    std::vector<Point> points;
    for (const auto& [bytes, sample] : by_size) {
        points.push_back({static_cast<double>(bytes), *interval_of(sample.seconds)});
    }
    smooth(points);
    Curve curve;
    for (const Point& point : points) {
        curve.bytes.push_back(point.bytes);
        curve.seconds.push_back(point.seconds.median);
    }
    return curve;
}

// Below the least size time does not change; beyond the largest it grows as between the last two.
double CostModel::Curve::at(double size) const {
    if (size <= bytes.front()) return seconds.front();
    if (size >= bytes.back()) {
        const double ratio = seconds.back() / bytes.back();
        const std::size_t last = bytes.size() - 1;
        const double slope =
            last == 0
                ? ratio
                : std::clamp((seconds[last] - seconds[last - 1]) / (bytes[last] - bytes[last - 1]), 0.0, 2 * ratio);
        return seconds.back() + slope * (size - bytes.back());
    }
    const std::size_t above =
        static_cast<std::size_t>(std::upper_bound(bytes.begin(), bytes.end(), size) - bytes.begin());
    return between(size, bytes[above - 1], seconds[above - 1], bytes[above], seconds[above]);
}

bool CostModel::Curve::covers(double size) const {
    return !bytes.empty() && size * far_beyond >= bytes.front() && size <= bytes.back() * far_beyond;
}

bool CostModel::knows_host(std::size_t way, Role role) const {
    if (!host(way, role).bytes.empty()) return true;
    return role == Role::reads_and_writes && knows_host(way, Role::reads) && knows_host(way, Role::writes);
}

bool CostModel::knows_host(std::size_t way, const UseCase& use) const {
    const bool as_measured = use.device == Role::reads    ? use.host == Role::writes
                             : use.device == Role::writes ? use.host == Role::reads
                                                          : use.host == Role::reads_and_writes;
    if (as_measured) return !use.host_often || knows_host(way, use.host);
    return knows_host(way, use.host) && (use.device == Role::reads || knows_host(way, Role::reads)) &&
           (use.device == Role::writes || knows_host(way, Role::writes));
}

bool CostModel::serves(std::size_t way, const UseCase& use) const {
    const auto is_measured = [&](std::size_t at) {
        return is_lawful(ways_[at], use) && !surface(at, use.device).sizes.empty();
    };
    if (!is_measured(way)) return false;
    if (knows_host(way, use)) return true;
    // Without the host's passes of any way, the turn as measured is all that is known.
    for (std::size_t other = 0; other < ways_.size(); ++other) {
        if (is_measured(other) && knows_host(other, use)) return false;
    }
    return true;
}

std::vector<double> CostModel::turns(std::size_t way, Role device, double passes, std::span<const double> sizes) const {
    const Surface& known = surface(way, device);
    Curve curve;
    if (!known.sizes.empty()) {
        const std::vector<int>& steps = known.passes;
        std::size_t k = 1;  // passes lie between k - 1 and k, or beyond an end
        while (k + 1 < steps.size() && passes > steps[k]) ++k;
        for (const AtSize& at : known.sizes) {
            const double value = between(passes, steps[k - 1], at.seconds[k - 1], steps[k], at.seconds[k]);
            const double least =
                passes > steps[k] ? at.seconds[k] : 0;  // further passes take time, whatever noise says
            curve.bytes.push_back(at.bytes);
            curve.seconds.push_back(std::max({value, least, at.seconds.front() / 50}));
        }
    }
    std::vector<double> result;
    result.reserve(sizes.size());
    std::size_t above = 1;
    for (const double size : sizes) {
        if (!curve.covers(size)) {
            result.push_back(infinite);
            continue;
        }
        if (size <= curve.bytes.front() || size >= curve.bytes.back()) {
            result.push_back(curve.at(size));
            continue;
        }
        while (curve.bytes[above] < size) ++above;
        result.push_back(
            between(size, curve.bytes[above - 1], curve.seconds[above - 1], curve.bytes[above], curve.seconds[above]));
    }
    return result;
}

std::vector<double> CostModel::spreads(Role device, std::span<const double> sizes) const {
    std::vector<double> result(sizes.size(), infinite);
    for (std::size_t way = 0; way < ways_.size(); ++way) {
        const std::vector<AtSize>& known = surface(way, device).sizes;
        if (known.empty()) continue;
        std::size_t nearest = 0;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            while (nearest + 1 < known.size() &&
                   known[nearest].bytes * known[nearest + 1].bytes < sizes[i] * sizes[i]) {
                ++nearest;
            }
            result[i] = std::min(result[i], known[nearest].spread);
        }
    }
    return result;
}

double CostModel::host_pass(std::size_t way, Role role, double bytes) const {
    const Curve& known = host(way, role);
    if (!known.bytes.empty()) return known.at(bytes);
    if (!knows_host(way, role)) return -1;
    return host(way, Role::reads).at(bytes) + host(way, Role::writes).at(bytes);
}

std::vector<CostModel::HostChange> CostModel::host_changes(std::size_t way, const UseCase& use,
                                                           std::span<const double> sizes) const {
    std::vector<HostChange> changes(sizes.size());
    if (!knows_host(way, use)) return changes;
    const bool is_both = use.device == Role::reads_and_writes;
    const Role measured = use.device == Role::reads    ? Role::writes
                          : use.device == Role::writes ? Role::reads
                                                       : Role::reads_and_writes;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        HostChange& change = changes[i];
        if (use.host != measured && is_both) {
            // The turn had a pass that writes and one that reads; one of them goes.
            change.less = host_pass(way, use.host == Role::reads ? Role::writes : Role::reads, sizes[i]);
        } else if (use.host != measured) {
            change.less = host_pass(way, measured, sizes[i]);
            change.more = host_pass(way, use.host, sizes[i]);
        }
        if (use.host_often) change.more += (often_host_passes - 1) * host_pass(way, use.host, sizes[i]);
    }
    return changes;
}

double CostModel::seconds(std::size_t way, const UseCase& use, double passes, double bytes) const {
    const double sizes[] = {bytes};
    return host_changes(way, use, sizes)[0].applied(turns(way, use.device, passes, sizes)[0]);
}

}  // namespace isthmus::tools::tune
