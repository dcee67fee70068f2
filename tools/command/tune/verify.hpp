// SPDX-License-Identifier: Apache-2.0
// `isthmus tune --verify`: how the policy's choice, with a profile and without, compares with the best lawful memory at
// sizes and passes that the profile was not measured at.
#pragma once

#include "measurements.hpp"

#include <isthmus/runtime.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::tune {

struct VerifyPoint {
    Role device = Role::reads;
    std::size_t bytes = 0;
    int passes = 1;
};

// What the policy chose at a point, and its time divided by that of the best way; 1 where the two confidence intervals
// touch, or where it chose the best way.
struct Choice {
    std::string kind;  // name(MemoryKind)
    Sample seconds;
    double ratio = 1;
};

struct VerifyRow {
    VerifyPoint point;
    Way best;
    Sample best_seconds;
    Choice with_profile;
    Choice without_profile;
};

// What one side's choices come to.
struct Verdict {
    int points = 0;
    double good_share = 1;  // of points with a ratio of at most 1.05
    double worst = 1;
};
inline constexpr double good_ratio = 1.05;
inline constexpr double borne_ratio = 1.15;  // no point is above it
inline constexpr double wanted_good_share = 0.99;

// `count` points, the same for the same seed: roles in turn, sizes even on a logarithmic scale from 64 bytes to
// `largest`, none of them among `measured`, passes likewise from 1 to 256; where a point would move more than 4 GiB,
// fewer passes.
std::vector<VerifyPoint> verify_points(int count, std::uint64_t seed, std::size_t largest,
                                       const std::vector<std::size_t>& measured);

double ratio_of(const Sample& chosen, const Sample& best);
Verdict verdict_of(const std::vector<VerifyRow>& rows, bool with_profile);
bool is_kept(const Verdict& verdict);  // the promise of the profile

struct VerifyRequest {
    std::vector<VerifyPoint> points;
    std::vector<Way> ways;  // lawful ones of the device
    double budget = 300;    // seconds; no point begins after it
    std::function<void(double share, std::string_view what)> progress{};
};
// `with` and `without`: the same device of two runtimes, one with the profile and one with none. Points that cannot be
// measured (no memory) are left out.
std::vector<VerifyRow> verify(Device& with, Device& without, const VerifyRequest& request);

std::string verify_text(const std::vector<VerifyRow>& rows, bool simulated);
std::string verify_json(const std::vector<VerifyRow>& rows, bool simulated);
std::string write_rows(const std::vector<VerifyRow>& rows);  // between processes
std::vector<VerifyRow> read_rows(std::string_view text);     // throws std::exception

}  // namespace isthmus::tools::tune
