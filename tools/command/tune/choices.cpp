// SPDX-License-Identifier: Apache-2.0
// The search for rows and borders. Regret of a way: its time divided by the shortest time of all ways, at least 1.
#include "choices.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace isthmus::tools::tune {

namespace {

constexpr double steps_per_octave = 24;  // of sizes; a border is then within 1.5 % of its place
constexpr int most_passes = 256;

struct Grid {
    std::vector<double> sizes;  // whole bytes
    std::vector<int> passes;
};

Grid grid_over(const std::vector<double>& measured) {
    Grid grid;
    for (int n = 1; n <= 64; ++n) grid.passes.push_back(n);
    while (grid.passes.back() < most_passes) {
        grid.passes.push_back(std::min(most_passes, static_cast<int>(std::ceil(grid.passes.back() * 1.02))));
    }
    grid.sizes = measured;
    const double factor = std::exp2(1 / steps_per_octave);
    for (double size = measured.front(); size < measured.back(); size *= factor) grid.sizes.push_back(std::round(size));
    std::sort(grid.sizes.begin(), grid.sizes.end());
    grid.sizes.erase(std::unique(grid.sizes.begin(), grid.sizes.end()), grid.sizes.end());
    return grid;
}

// One value for each way and size.
struct Field {
    Field(std::size_t way_count, std::size_t size_count)
        : ways(way_count), sizes(size_count), values(way_count * size_count, 1.0) {}
    double& at(std::size_t way, std::size_t size) { return values[way * sizes + size]; }
    double at(std::size_t way, std::size_t size) const { return values[way * sizes + size]; }
    std::size_t ways;
    std::size_t sizes;
    std::vector<double> values;
};

// From this size on, by index, this way.
struct Border {
    std::size_t size = 0;
    std::size_t way = 0;
    friend bool operator==(const Border&, const Border&) = default;
};

// A border lies where the regrets cross, not where the earlier way just exceeds what counts as equal.
void move_to_crossings(const Field& regrets, std::vector<Border>& borders) {
    for (std::size_t b = 1; b < borders.size(); ++b) {
        const std::size_t before = borders[b - 1].way, after = borders[b].way;
        std::size_t& size = borders[b].size;
        while (size - 1 > borders[b - 1].size && regrets.at(after, size - 1) < regrets.at(before, size - 1)) --size;
    }
}

// As few borders as possible such that no regret exceeds equal_within; then the ways that come first.
std::vector<Border> fewest_borders(const Field& regrets) {
    const std::size_t sizes = regrets.sizes;
    std::vector<std::size_t> ends(regrets.ways * sizes);  // the first size at which the way's run ends; its own: no run
    std::vector<std::size_t> needed(sizes + 1, 0);        // runs from this size on
    for (std::size_t size = sizes; size-- > 0;) {
        needed[size] = std::numeric_limits<std::size_t>::max();
        for (std::size_t way = 0; way < regrets.ways; ++way) {
            std::size_t& end = ends[way * sizes + size];
            end = size;
            if (regrets.at(way, size) > equal_within) continue;
            const bool goes_on = size + 1 < sizes && regrets.at(way, size + 1) <= equal_within;
            end = goes_on ? ends[way * sizes + size + 1] : size + 1;
            needed[size] = std::min(needed[size], 1 + needed[end]);
        }
    }
    std::vector<Border> borders;
    for (std::size_t size = 0; size < sizes;) {
        std::size_t way = 0;
        while (ends[way * sizes + size] == size || 1 + needed[ends[way * sizes + size]] != needed[size]) ++way;
        borders.push_back({size, way});
        size = ends[way * sizes + size];
    }
    move_to_crossings(regrets, borders);
    return borders;
}

// Whole bytes, above the first size.
std::size_t middle(double size, double next) {
    return static_cast<std::size_t>(std::ceil(std::sqrt(size * next)));
}

// A row: the borders that hold from this number of passes on.
struct Row {
    int passes = 1;
    std::vector<Border> borders;
};

// Extends each row over as many passes as one set of borders serves.
class RowBuilder {
public:
    RowBuilder(std::size_t ways, std::size_t sizes) : worst_(ways, sizes) {}

    void add(int passes, const Field& regrets) {
        Field longer = worst_;
        for (std::size_t i = 0; i < longer.values.size(); ++i) {
            longer.values[i] = std::max(longer.values[i], regrets.values[i]);
        }
        if (first_passes_ != 0 && is_served(longer)) {
            worst_ = std::move(longer);
            return;
        }
        close();
        first_passes_ = passes;
        worst_ = regrets;
    }
    std::vector<Row> finished() {
        close();
        return std::move(rows_);
    }

private:
    static bool is_served(const Field& regrets) {
        for (std::size_t size = 0; size < regrets.sizes; ++size) {
            bool any = false;
            for (std::size_t way = 0; way < regrets.ways && !any; ++way) any = regrets.at(way, size) <= equal_within;
            if (!any) return false;
        }
        return true;
    }
    void close() {
        if (first_passes_ == 0) return;
        std::vector<Border> borders = fewest_borders(worst_);
        if (rows_.empty() || rows_.back().borders != borders) rows_.push_back({first_passes_, std::move(borders)});
    }

    int first_passes_ = 0;  // 0: no row is open
    Field worst_;
    std::vector<Row> rows_;
};

// The times of every way for one role of the device: [passes][way][size].
using Times = std::vector<std::vector<std::vector<double>>>;

Times times_of(const CostModel& model, const Grid& grid, Role device) {
    Times times;
    for (const int passes : grid.passes) {
        std::vector<std::vector<double>>& ways = times.emplace_back();
        for (std::size_t way = 0; way < model.ways().size(); ++way) {
            ways.push_back(model.turns(way, device, passes, grid.sizes));
        }
    }
    return times;
}

// For each size the factor by which regrets count less, because times are not known better.
std::vector<double> weights_for(const CostModel& model, const Grid& grid, Role device) {
    std::vector<double> weights = model.spreads(device, grid.sizes);
    for (double& weight : weights) {
        weight = (equal_within - 1) / std::clamp(weight, equal_within - 1, equal_within_noise - 1);
    }
    return weights;
}

// Sets the weighted regret of every way; sizes at which nothing was measured have none.
void set_regrets(Field& times, const std::vector<double>& weights) {
    for (std::size_t size = 0; size < times.sizes; ++size) {
        double best = times.at(0, size);
        for (std::size_t way = 1; way < times.ways; ++way) best = std::min(best, times.at(way, size));
        for (std::size_t way = 0; way < times.ways; ++way) {
            double& value = times.at(way, size);
            value = std::isfinite(best) ? 1 + (value / best - 1) * weights[size] : 1;
        }
    }
}

std::vector<Row> rows_for(const CostModel& model, const Grid& grid, const Times& times, const UseCase& use,
                          const std::vector<std::size_t>& ways) {
    std::vector<std::vector<CostModel::HostChange>> changes;
    for (const std::size_t way : ways) changes.push_back(model.host_changes(way, use, grid.sizes));
    const std::vector<double> weights = weights_for(model, grid, use.device);
    RowBuilder rows(ways.size(), grid.sizes.size());
    Field field(ways.size(), grid.sizes.size());
    for (std::size_t n = 0; n < grid.passes.size(); ++n) {
        for (std::size_t way = 0; way < ways.size(); ++way) {
            const std::vector<double>& turns = times[n][ways[way]];
            for (std::size_t size = 0; size < grid.sizes.size(); ++size) {
                field.at(way, size) = changes[way][size].applied(turns[size]);
            }
        }
        set_regrets(field, weights);
        rows.add(grid.passes[n], field);
    }
    return rows.finished();
}

}  // namespace

std::vector<ProfileChoice> choices_of(const Measurements& measured) {
    const CostModel model(measured);
    std::vector<ProfileChoice> choices;
    if (model.sizes().empty()) return choices;
    const Grid grid = grid_over(model.sizes());
    std::optional<Role> role;
    Times times;
    for (const UseCase& use : use_cases()) {
        std::vector<std::size_t> ways;
        for (std::size_t way = 0; way < model.ways().size(); ++way) {
            if (model.serves(way, use)) ways.push_back(way);
        }
        if (ways.empty()) continue;
        if (role != use.device) times = times_of(model, grid, use.device);
        role = use.device;
        for (const Row& row : rows_for(model, grid, times, use, ways)) {
            for (const Border& border : row.borders) {
                ProfileChoice choice{use.device, use.host, use.host_often, use.prefer, row.passes, 0, {}, {}};
                if (border.size != 0) choice.from_bytes = middle(grid.sizes[border.size - 1], grid.sizes[border.size]);
                choice.kind = model.ways()[ways[border.way]].kind;
                choice.locality = model.ways()[ways[border.way]].locality;
                choices.push_back(choice);
            }
        }
    }
    return choices;
}

const ProfileChoice* choice_for(std::span<const ProfileChoice> choices, const UseCase& use, int passes,
                                std::size_t bytes) {
    const ProfileChoice* best = nullptr;
    for (const ProfileChoice& choice : choices) {
        if (use_of(choice) != use || choice.passes > passes || choice.from_bytes > bytes) continue;
        const bool is_later = best == nullptr || choice.passes > best->passes ||
                              (choice.passes == best->passes && choice.from_bytes > best->from_bytes);
        if (is_later) best = &choice;
    }
    return best;
}

}  // namespace isthmus::tools::tune
