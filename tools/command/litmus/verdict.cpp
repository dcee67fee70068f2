// SPDX-License-Identifier: Apache-2.0
// Computes the bound of a rate, and the answer of a row.
#include "verdict.hpp"

#include <algorithm>
#include <cmath>

namespace isthmus::tools::litmus {
namespace {

constexpr double confidence = 0.95;

// The continued fraction of the regularised incomplete beta function, by Lentz's method.
double beta_fraction(double a, double b, double x) {
    constexpr double tiny = 1e-300;
    const auto away_from_zero = [](double value) { return std::fabs(value) < tiny ? tiny : value; };
    double c = 1.0;
    double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    double result = d;
    for (int m = 1; m < 10000; ++m) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        result *= d * c;
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        result *= d * c;
        if (std::fabs(d * c - 1.0) < 1e-12) break;
    }
    return result;
}

// P(at most `seen` of `tried`) at this rate: I(1 - rate; tried - seen, seen + 1).
double at_most(double seen, double tried, double rate) {
    const double a = tried - seen;
    const double b = seen + 1.0;
    const double x = 1.0 - rate;
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    const double factor =
        std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log1p(-rate) + b * std::log(rate));
    if (x < (a + 1.0) / (a + b + 2.0)) return factor * beta_fraction(a, b, x) / a;
    return 1.0 - factor * beta_fraction(b, a, rate) / b;
}

}  // namespace

double upper_bound(std::uint64_t seen, std::uint64_t tried) {
    if (seen >= tried) return 1.0;
    const auto n = static_cast<double>(tried);
    if (seen == 0) return -std::expm1(std::log(1.0 - confidence) / n);
    // For large counts the sums of logarithms lose precision; there the normal approximation is good enough (Wilson).
    if (seen > 1000000) {
        const double z = 1.6448536269514722;
        const double rate = static_cast<double>(seen) / n;
        const double middle = rate + z * z / (2 * n);
        const double half = z * std::sqrt(rate * (1 - rate) / n + z * z / (4 * n * n));
        return std::min(1.0, (middle + half) / (1 + z * z / n));
    }
    double low = static_cast<double>(seen) / n;
    double high = 1.0;
    for (int step = 0; step < 200; ++step) {
        const double middle = (low + high) / 2;
        (at_most(static_cast<double>(seen), n, middle) > 1.0 - confidence ? low : high) = middle;
    }
    return high;
}

std::string_view name(Role role) noexcept {
    switch (role) {
        case Role::test: return "test";
        case Role::refused: return "refused";
        case Role::mutant: return "mutant";
    }
    return "unknown";
}

std::string_view name(Ending ending) noexcept {
    switch (ending) {
        case Ending::finished: return "finished";
        case Ending::not_run: return "not_run";
        case Ending::stalled: return "stalled";
        case Ending::failed: return "failed";
        case Ending::hung: return "hung";
        case Ending::crashed: return "crashed";
    }
    return "unknown";
}

std::string_view name(Answer answer) noexcept {
    switch (answer) {
        case Answer::passes: return "passes";
        case Answer::no_power: return "no power";
        case Answer::forbidden_seen: return "forbidden seen";
        case Answer::lost_as_expected: return "lost as expected";
        case Answer::nothing_lost: return "nothing lost";
        case Answer::mutant_noticed: return "mutant noticed";
        case Answer::mutant_unnoticed: return "mutant unnoticed";
        case Answer::incomplete: return "incomplete";
    }
    return "unknown";
}

Answer answer_of(const Row& row) noexcept {
    const std::uint64_t weak = count(row.shape, row.seen, Outcome::weak);
    switch (row.role) {
        case Role::refused:
            if (weak > 0) return Answer::lost_as_expected;
            return row.ending == Ending::finished ? Answer::nothing_lost : Answer::incomplete;
        case Role::mutant:
            if (weak > 0) return Answer::mutant_noticed;
            return row.ending == Ending::finished ? Answer::mutant_unnoticed : Answer::incomplete;
        case Role::test: break;
    }
    if (weak > 0) return Answer::forbidden_seen;
    if (row.ending != Ending::finished || total(row.seen) == 0) return Answer::incomplete;
    return count(row.shape, row.control, Outcome::weak) > 0 ? Answer::passes : Answer::no_power;
}

bool is_problem(Answer answer) noexcept {
    return answer == Answer::forbidden_seen || answer == Answer::incomplete;
}

std::vector<LitmusResult> results_of(const std::vector<Row>& rows) {
    std::vector<LitmusResult> results;
    for (const Row& row : rows) {
        if (row.role != Role::test || total(row.seen) == 0) continue;
        results.push_back({row.kind, row.shape, total(row.seen), count(row.shape, row.seen, Outcome::weak),
                           total(row.control), count(row.shape, row.control, Outcome::weak)});
    }
    return results;
}

}  // namespace isthmus::tools::litmus
