// SPDX-License-Identifier: Apache-2.0
// Follows each way from a test that has failed. Known on the way are the test's predicate and what a few instructions
// make of it, which is how compilers write such loops; every other branch goes both ways.
#include "endless_waits.hpp"

#include "operations.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace isthmus::ptx {
namespace {

// More ways than a loop of a compiler has.
constexpr std::size_t most_steps = 1000;

struct Known {
    std::uint32_t at = 0;
    std::map<std::int32_t, bool> predicates;
    std::map<Place, std::uint64_t> rows;
    auto operator<=>(const Known&) const = default;
};

class Ways {
public:
    Ways(const FunctionCode& function, std::uint32_t test) : function_(function), test_(function.ops[test]) {
        Known first;
        first.at = test + 1;
        if (test_.p >= 0) first.predicates[test_.p] = false;
        add(std::move(first));
    }

    bool all_come_back() {
        while (!open_.empty()) {
            if (seen_.size() > most_steps) return false;
            Known known = std::move(open_.back());
            open_.pop_back();
            if (!follow(std::move(known))) return false;
        }
        return true;
    }

private:
    void add(Known known) {
        if (seen_.insert(known).second) open_.push_back(std::move(known));
    }

    // false: this way does what ends the loop, or what is not known.
    bool follow(Known known) {
        const Op& op = function_.ops[known.at];
        if (&op == &test_) return true;
        std::optional<bool> runs = true;
        if (op.guard >= 0) {
            runs = predicate(known, op.guard);
            if (runs && op.guard_negated) runs = !*runs;
        }
        Known skipped = known;
        ++skipped.at;
        if (runs != std::optional(true)) add(std::move(skipped));
        if (runs == std::optional(false)) return true;
        switch (op.kind) {
            case OpKind::branch: known.at = static_cast<std::uint32_t>(op.value); break;
            case OpKind::pause: ++known.at; break;
            case OpKind::plain:
                if (!play(known, op)) return false;
                ++known.at;
                break;
            default: return false;
        }
        add(std::move(known));
        return true;
    }

    static std::optional<bool> predicate(const Known& known, std::int32_t which) {
        const auto found = known.predicates.find(which);
        return found == known.predicates.end() ? std::nullopt : std::optional(found->second);
    }
    std::optional<std::uint64_t> value(const Known& known, Place place) const {
        if (place < 0) return function_.constants[static_cast<std::size_t>(~place)][0];
        const auto found = known.rows.find(place);
        return found == known.rows.end() ? std::nullopt : std::optional(found->second);
    }

    // Of an operation without effects beyond registers. Those whose results are not followed make them unknown.
    bool play(Known& known, const Op& op) const {
        const bool has_other_effects =
            op.run == unpack_run() || op.run == async_run(AsyncDo::wait) || op.run == async_run(AsyncDo::commit);
        if (has_other_effects) return false;
        if (op.run == select_run()) return select(known, op);
        if (op.p >= 0 || op.q >= 0) return set_predicates(known, op);
        return keep_object(known, op.d);
    }
    bool keep_object(Known& known, Place written) const {
        known.rows.erase(written);
        return written != test_.a && written != test_.b;
    }
    bool select(Known& known, const Op& op) const {
        const std::optional<bool> which = predicate(known, op.p);
        const std::optional<std::uint64_t> made =
            which ? value(known, *which ? op.a : op.b) : std::optional<std::uint64_t>();
        if (!keep_object(known, op.d)) return false;
        if (made) known.rows[op.d] = *made;
        return true;
    }
    bool set_predicates(Known& known, const Op& op) const {
        const std::optional<bool> made = predicate_of(known, op);
        if (op.p >= 0) known.predicates.erase(op.p);
        if (op.q >= 0) known.predicates.erase(op.q);
        if (made && op.p >= 0) known.predicates[op.p] = *made;
        return op.d == 0 || keep_object(known, op.d);
    }
    std::optional<bool> predicate_of(const Known& known, const Op& op) const {
        if (op.run == predicate_run("not") || op.run == predicate_run("mov")) {
            const std::optional<bool> from = op.a >= 0 ? predicate(known, op.a) : std::optional(op.a == ~1);
            if (!from) return std::nullopt;
            return *from != (op.flag != (op.run == predicate_run("not")));
        }
        if (!compares_integers(op.run) || static_cast<Combine>(op.value) != Combine::none) return std::nullopt;
        const std::optional<std::uint64_t> a = value(known, op.a), b = value(known, op.b);
        if (!a || !b) return std::nullopt;
        switch (static_cast<Comparison>(op.mode)) {
            case Comparison::eq: return *a == *b;
            case Comparison::ne: return *a != *b;
            default: return std::nullopt;
        }
    }

    static bool compares_integers(Run run) {
        for (const Type type : {Type::u16, Type::s16, Type::u32, Type::s32}) {
            if (run == compare_run(type, false)) return true;
        }
        return false;
    }

    const FunctionCode& function_;
    const Op& test_;
    std::set<Known> seen_;
    std::vector<Known> open_;
};

}  // namespace

bool only_the_object_ends(const FunctionCode& function, std::uint32_t test) {
    const Op& op = function.ops[test];
    return op.run == mbarrier_test_run() && op.guard < 0 && Ways(function, test).all_come_back();
}

}  // namespace isthmus::ptx
