// SPDX-License-Identifier: Apache-2.0
// The time of a turn for every way, use, size and number of passes, computed from the measured ones. Pure.
#pragma once

#include "measurements.hpp"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace isthmus::tools::tune {

// What a choice is made for.
struct UseCase {
    Role device = Role::reads;
    Role host = Role::writes;
    bool host_often = false;
    Prefer prefer = Prefer::throughput;
    friend bool operator==(const UseCase&, const UseCase&) = default;
};
inline constexpr Role all_roles[] = {Role::reads, Role::writes, Role::reads_and_writes};
// Every use, in the order of ProfileChoice.
std::vector<UseCase> use_cases();

// With host_often, the host makes this many passes in a turn.
inline constexpr int often_host_passes = many_passes;

// Does the device use the memory in place? Otherwise it is copied at each hand-over.
bool is_in_place(const Way& way);
// Whether the host may use this memory so: it never reads write-combined memory. What HostSample measures.
bool is_lawful_for_host(const Way& way, Role host) noexcept;
// Whether a turn of this role of the device may use it: the host reads what the device writes.
bool is_lawful(const Way& way, Role device) noexcept;
// May this way be chosen for this use, if it was measured?
bool is_lawful(const Way& way, const UseCase& use);

// Between two measured sizes, and between two measured numbers of passes, time is linear: it is a latency plus bytes
// divided by a bandwidth. Where fewer passes were measured at a size than at its neighbours, the cost of a further pass
// is interpolated from them. Within their confidence intervals, times are smoothed over the sizes.
class CostModel {
public:
    explicit CostModel(const Measurements& measured);

    const std::vector<Way>& ways() const { return ways_; }
    // The measured sizes of all ways, ascending.
    const std::vector<double>& sizes() const { return sizes_; }
    // Is the way lawful for this use, and was all measured that its time is made of?
    bool serves(std::size_t way, const UseCase& use) const;

    // The seconds of a turn for each size; the sizes ascend. Infinite: more than a factor of four beyond what was
    // measured of this way.
    std::vector<double> turns(std::size_t way, Role device, double passes, std::span<const double> sizes) const;
    // What the host's part in such a turn is replaced by.
    struct HostChange {
        double less = 0;
        double more = 0;
        // Subtracting one measurement from another leaves at least a fiftieth of the turn.
        double applied(double turn) const { return (turn - less < turn / 50 ? turn / 50 : turn - less) + more; }
    };
    std::vector<HostChange> host_changes(std::size_t way, const UseCase& use, std::span<const double> sizes) const;
    // How far a measured time may be from the true one, as a share of it: for each size that of the way which is known
    // best, at the nearest size where it was measured.
    std::vector<double> spreads(Role device, std::span<const double> sizes) const;
    // One size; the way must serve the use.
    double seconds(std::size_t way, const UseCase& use, double passes, double bytes) const;
    // One pass of the host alone; negative: not measured.
    double host_pass(std::size_t way, Role host, double bytes) const;

private:
    // The times of one way and role at one size, for every number of passes in `passes` of its surface.
    struct AtSize {
        double bytes = 0;
        std::vector<double> seconds;
        double spread = 0;  // half a confidence interval as a share of its median; the median of those measured here
    };
    struct Surface {
        std::vector<int> passes;
        std::vector<AtSize> sizes;
    };
    struct Curve {
        std::vector<double> bytes;
        std::vector<double> seconds;
        double at(double bytes) const;
        bool covers(double bytes) const;
    };
    struct HostPasses {
        double reads = 0;
        double writes = 0;
        double both = 0;
    };
    static Surface surface_of(const Measurements& measured, const Way& way, Role role);
    static Curve host_curve(const Measurements& measured, const Way& way, Role role);
    const Surface& surface(std::size_t way, Role device) const { return surfaces_[3 * way + index_of(device)]; }
    const Curve& host(std::size_t way, Role role) const { return hosts_[3 * way + index_of(role)]; }
    static std::size_t index_of(Role role) { return static_cast<std::size_t>(role); }
    bool knows_host(std::size_t way, Role role) const;
    bool knows_host(std::size_t way, const UseCase& use) const;

    std::vector<Way> ways_;
    std::vector<double> sizes_;
    std::vector<Surface> surfaces_;  // three roles of each way
    std::vector<Curve> hosts_;
};

}  // namespace isthmus::tools::tune
