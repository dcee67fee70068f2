// SPDX-License-Identifier: Apache-2.0
// Page-aligned host memory: mapped, bound by one mbind, touched, locked and then verified; each step is reported.
#include <platform/os.hpp>

#include "fact_parsers.hpp"
#include "os_errors.hpp"
#include "page_checks.hpp"
#include "page_mapping.hpp"
#include "placement_plan.hpp"
#include "text_file.hpp"

#include <linux/mempolicy.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace isthmus::platform::os {
namespace {

void add_reason(PlacementReport& report, std::string_view reason) {
    if (!reason.empty()) report.reason.append(report.reason.empty() ? "" : "; ").append(reason);
}

int mode_of(Policy policy) {
    switch (policy) {
        case Policy::local: return MPOL_LOCAL;
        case Policy::prefer: return MPOL_PREFERRED;
        case Policy::bind: return MPOL_BIND;
        case Policy::interleave: return MPOL_INTERLEAVE;
        case Policy::none: break;
    }
    return MPOL_DEFAULT;
}

Error bind_error(int error, const PlacementPlan& plan) {
    std::string nodes;
    for (const int node : plan.nodes) nodes.append(nodes.empty() ? "" : ", ").append(std::to_string(node));
    if (nodes.empty()) nodes = "local";
    switch (error) {
        case EPERM:
        case EACCES: return make_error<errors::binding_forbidden>(nodes);
        case ENOSYS: return make_error<errors::system_without_numa_calls>(nodes);
        case EINVAL: return make_error<errors::binding_to_unknown_node>(nodes);
        case ENOMEM: return make_error<errors::binding_without_memory>(nodes);
        default: return make_error<errors::binding_failed>(nodes, words(error));
    }
}

// Why the pages' places are unknown. `nobody_knows`: there was no node to compare with.
std::optional<Error> unknown_places(const Whereabouts& found, bool nobody_knows) {
    if (found.error != 0) return make_error<errors::page_places_not_stated>(words(found.error));
    if (found.absent > 0) return make_error<errors::some_page_places_not_stated>(found.absent, found.pages);
    if (nobody_knows) return make_error<errors::node_of_thread_not_stated>();
    return std::nullopt;
}

// Result of verifying the places: always added to the report, and also an Error if the wish is strict.
Result<void> judge_places(const Whereabouts& found, bool nobody_knows, bool strict, PlacementReport& report) {
    if (std::optional<Error> unknown = unknown_places(found, nobody_knows)) {
        if (report.placed != Placed::fallback) report.placed = Placed::unverifiable;
        add_reason(report, unknown->message());
        if (!strict) return {};
        return std::move(*unknown).from_call("move_pages", found.error);
    }
    report.node = found.node;
    if (found.outside == 0) {
        if (report.placed != Placed::fallback) report.placed = Placed::verified;
        return {};
    }
    Error why = make_error<errors::pages_lie_elsewhere>(found.outside, found.pages, found.outside_node);
    report.placed = Placed::fallback;
    add_reason(report, why.message());
    if (!strict) return {};
    return why;
}

Error lock_error(int error, std::size_t bytes, std::uint64_t memlock_limit_bytes) {
    // mlock(2): ENOMEM, EPERM (the limit is 0) and EAGAIN all mean that the limit is too small.
    const bool limit = error == ENOMEM || error == EPERM || error == EAGAIN;
    if (!limit) return make_error<errors::lock_failed>(bytes, words(error));
    if (memlock_limit_bytes == std::numeric_limits<std::uint64_t>::max()) {
        return make_error<errors::lock_refused_without_limit>(bytes, words(error));
    }
    return make_error<errors::lock_limit_too_small>(bytes, words(error), memlock_limit_bytes);
}

// The steps of an allocation after mapping. Each adds to the report or, if the wish is strict, returns an Error.
struct Steps {
    const HostPlacement& placement;
    const MachineFacts& machine;
    const SystemCalls& calls;
    PlacementPlan& plan;
    Mapping& mapping;
    PlacementReport& report;
    const Workers& touchers;

    bool placed_on_purpose() const {
        return placement.locality != Locality::anywhere && placement.locality != Locality::unbound;
    }
    // Only existing pages can be verified. `local` leaves the first touch to the buffer's user, unless told otherwise.
    bool looks() const {
        return placed_on_purpose() && (placement.locality != Locality::local || placement.prefault || placement.strict);
    }

    Result<void> bind();
    Result<void> touch();
    Result<void> judge_page_size();
    Result<void> lock();
    Result<void> verify();
};

Result<void> Steps::bind() {
    if (plan.policy != Policy::none) {
        if (const int error = bind_pages(mapping.data, mapping.bytes, mode_of(plan.policy), plan.nodes, calls)) {
            Error refused = bind_error(error, plan).from_call("mbind", error);
            // A request without a place is never refused; the report states what may happen.
            if (placement.strict && placed_on_purpose()) return refused;
            plan.reason = refused.message();
            plan.policy = Policy::none;
        }
    }
    add_reason(report, plan.reason);
    if (!plan.reason.empty() && placed_on_purpose()) report.placed = Placed::fallback;
    return {};
}

Result<void> Steps::touch() {
    if (!placement.prefault && !placement.lock && !looks()) return {};
    // Touching here defines "local": the node is this thread's, before or after.
    const int before = calls.current_node();
    const Workers alone;
    // Bound pages lie where they were bound, whichever thread touches them; others follow the touching thread.
    const bool bound = plan.policy != Policy::none && !plan.nodes.empty();
    if (const int error =
            touch_pages(mapping.data, mapping.bytes, calls.page_size_bytes(), calls, bound ? touchers : alone)) {
        const Code code = error == ENOMEM ? Code::out_of_memory : Code::system_error;
        return make_error_as<errors::pages_not_touched>(code, mapping.bytes, words(error)).from_call("madvise", error);
    }
    if (placement.locality == Locality::local && before >= 0) plan.nodes = {before, calls.current_node()};
    mapping.touched = true;
    return {};
}

Result<void> Steps::judge_page_size() {
    if (placement.page_size != PageSize::huge) return {};
    if (mapping.transparent_huge && mapping.touched) {
        if (mapping_is_huge(read_text("/proc/self/smaps"), reinterpret_cast<std::uintptr_t>(mapping.data))) {
            report.page_bytes = machine.huge_page_bytes;
            return {};
        }
        mapping.not_huge = make_error<errors::ordinary_pages_instead_of_huge>();
    } else if (mapping.transparent_huge) {
        mapping.not_huge = make_error<errors::huge_pages_before_touch>();
    }
    if (!mapping.not_huge) return {};
    if (placement.strict) return *std::move(mapping.not_huge);
    add_reason(report, mapping.not_huge->message());
    return {};
}

Result<void> Steps::lock() {
    if (!placement.lock) return {};
    errno = 0;
    if (calls.mlock(mapping.data, mapping.bytes) == 0) {
        report.locked = true;
        return {};
    }
    const int error = errno;
    Error why = lock_error(error, mapping.bytes, machine.memlock_limit_bytes).from_call("mlock", error);
    if (placement.strict) return why;
    add_reason(report, why.message());
    return {};
}

Result<void> Steps::verify() {
    if (!looks()) {
        if (placed_on_purpose() && report.reason.empty()) {
            report.reason = "each page will lie on the node of the thread that touches it first";
        }
        return {};
    }
    const bool nobody_knows = plan.nodes.empty() && plan.reason.empty();
    return judge_places(find_pages(mapping.data, mapping.bytes, report.page_bytes, plan.nodes, calls), nobody_knows,
                        placement.strict, report);
}

}  // namespace

HostPages::HostPages(HostPages&& other) noexcept {
    *this = std::move(other);
}

HostPages& HostPages::operator=(HostPages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(report_, other.report_);
    std::swap(wish_, other.wish_);
    std::swap(calls_, other.calls_);
    return *this;
}

HostPages::~HostPages() {
    if (data_) calls_->munmap(data_, mapped_bytes_);
}

Result<HostPages> HostPages::allocate(std::size_t bytes, const HostPlacement& placement, int near_node,
                                      const MachineFacts& machine, const SystemCalls& calls, const Workers& touchers,
                                      std::size_t alignment) {
    if (bytes == 0) return make_error<errors::no_host_bytes>();
    Result<PlacementPlan> plan = plan_placement(placement, near_node, machine,
                                                names_nodes(placement, machine) ? allowed_nodes(calls) : std::nullopt);
    if (!plan) return std::move(plan).error();
    Result<Mapping> mapping = map_pages(bytes, alignment, placement, !plan->nodes.empty(), machine, calls);
    if (!mapping) return std::move(mapping).error();

    HostPages pages;  // from here on it unmaps on every exit
    pages.calls_ = &calls;
    pages.data_ = mapping->data;
    pages.bytes_ = bytes;
    pages.mapped_bytes_ = mapping->bytes;
    pages.report_.page_bytes = mapping->page_bytes;
    Steps steps{placement, machine, calls, *plan, *mapping, pages.report_, touchers};
    // The policy applies to pages allocated later, so it precedes the first touch; locking and verifying need the
    // pages. One mbind covers the whole mapping.
    using Step = Result<void> (Steps::*)();
    for (const Step step : {&Steps::bind, &Steps::touch, &Steps::judge_page_size, &Steps::lock}) {
        if (Result<void> done = (steps.*step)(); !done) return std::move(done).error();
    }
    if (steps.looks()) pages.wish_ = {plan->nodes, pages.report_, placement.strict};
    if (Result<void> looked = steps.verify(); !looked) return std::move(looked).error();
    return pages;
}

Result<void> HostPages::verify_again() {
    if (!data_ || wish_.nodes.empty()) return {};
    report_ = wish_.before_looking;
    return judge_places(find_pages(data_, mapped_bytes_, report_.page_bytes, wish_.nodes, *calls_), false, wish_.strict,
                        report_);
}

}  // namespace isthmus::platform::os
