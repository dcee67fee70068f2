// SPDX-License-Identifier: Apache-2.0
// Operations between the lanes of a warp, barriers' results, special registers and trap.
#include "operations.hpp"
#include "state.hpp"

#include <chrono>
#include <utility>

namespace isthmus::ptx {
namespace {

void put(Warp& warp, std::int32_t predicate, LaneMask mask, LaneMask value) {
    if (predicate < 0) return;
    warp.predicates[predicate] = (warp.predicates[predicate] & ~mask) | (value & mask);
}

// For executions that find uninitialised reads: what such a lane gives is undefined (PTX ISA, shfl.sync).
void note_shuffle(Warp& warp, const Op& op, std::uint32_t lane) {
    Execution::State& state = *warp.worker->state;
    const std::lock_guard lock(state.mutex);
    if (!state.reported.insert(&op).second) return;
    state.memory->uninitialised(place_of(warp, op, lane) + ": it reads a register of a lane that does not take part",
                                0);
}

enum class Shuffle { up, down, butterfly, index };
// PTX ISA, shfl.sync.
template <Shuffle how>
void shuffle(Warp& warp, const Op& op, LaneMask mask) {
    const Row values = warp.in(op.a);
    const Row &b = warp.in(op.b), &c = warp.in(op.c);
    LaneMask found = 0, from_absent = 0;
    for_lanes(mask, [&](std::uint32_t lane) {
        const int by = static_cast<int>(b[lane] & 31), limit = static_cast<int>(c[lane] & 31);
        const int segment = static_cast<int>((c[lane] >> 8) & 31), me = static_cast<int>(lane);
        const int last = (me & segment) | (limit & ~segment), first = me & segment;
        int from = me;
        bool inside = false;
        switch (how) {
            case Shuffle::up:
                from = me - by;
                inside = from >= last;
                break;
            case Shuffle::down:
                from = me + by;
                inside = from <= last;
                break;
            case Shuffle::butterfly:
                from = me ^ by;
                inside = from <= last;
                break;
            case Shuffle::index:
                from = first | (by & ~segment);
                inside = from <= last;
                break;
        }
        if (!inside) from = me;
        found |= LaneMask{inside} << lane;
        if ((mask >> from & 1) == 0) from_absent |= LaneMask{1} << lane;
        if (op.d >= 0) warp.out(op.d)[lane] = values[static_cast<std::size_t>(from) & 31];
    });
    put(warp, op.p, mask, found);
    if (from_absent != 0 && warp.worker->finds_uninitialised) {
        note_shuffle(warp, op, static_cast<std::uint32_t>(std::countr_zero(from_absent)));
    }
}

// Op::q: the predicate, Op::flag: its complement.
LaneMask votes(const Warp& warp, const Op& op, LaneMask mask) {
    const LaneMask source = op.q >= 0 ? warp.predicates[op.q] : op.q == ~1 ? ~LaneMask{0} : 0;
    return (op.flag ? ~source : source) & mask;
}
enum class Vote { all, any, uni, ballot };
template <Vote how>
void vote(Warp& warp, const Op& op, LaneMask mask) {
    const LaneMask yes = votes(warp, op, mask);
    if (how == Vote::ballot) {
        Row& d = warp.out(op.d);
        for_lanes(mask, [&](std::uint32_t lane) { d[lane] = yes; });
        return;
    }
    const bool answer = how == Vote::all ? yes == mask : how == Vote::any ? yes != 0 : yes == mask || yes == 0;
    put(warp, op.p, mask, answer ? mask : 0);
}

template <bool all>
void match(Warp& warp, const Op& op, LaneMask mask) {
    const Row values = warp.in(op.a);
    const std::uint64_t bits = mask_of(op.bytes);
    Row& d = warp.out(op.d);
    const auto first = static_cast<std::size_t>(std::countr_zero(mask));
    LaneMask same_as_first = 0;
    for_lanes(mask, [&](std::uint32_t lane) {
        LaneMask same = 0;
        for_lanes(mask, [&](std::uint32_t other) {
            same |= LaneMask{((values[lane] ^ values[other]) & bits) == 0} << other;
        });
        same_as_first |= LaneMask{((values[lane] ^ values[first]) & bits) == 0} << lane;
        if (!all) d[lane] = same;
    });
    if (!all) return;
    const bool answer = same_as_first == mask;
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = answer ? mask : 0; });
    put(warp, op.p, mask, answer ? mask : 0);
}

enum class Reduce { add, min, max, and_, or_, xor_ };
template <class T, Reduce how>
void reduce(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    T out = from_slot<T>(a[static_cast<std::size_t>(std::countr_zero(mask))]);
    for_lanes(mask & (mask - 1), [&](std::uint32_t lane) {
        const T value = from_slot<T>(a[lane]);
        switch (how) {
            case Reduce::add:
                out = static_cast<T>(static_cast<std::uint32_t>(out) + static_cast<std::uint32_t>(value));
                break;
            case Reduce::min: out = value < out ? value : out; break;
            case Reduce::max: out = out < value ? value : out; break;
            case Reduce::and_: out = static_cast<T>(out & value); break;
            case Reduce::or_: out = static_cast<T>(out | value); break;
            case Reduce::xor_: out = static_cast<T>(out ^ value); break;
        }
    });
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = to_slot(out); });
}

void active(Warp& warp, const Op& op, LaneMask mask) {
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = mask; });
}
void elect(Warp& warp, const Op& op, LaneMask mask) {
    const LaneMask leader = mask & (0 - mask);
    if (op.d >= 0) {
        Row& d = warp.out(op.d);
        for_lanes(mask, [&](std::uint32_t lane) { d[lane] = static_cast<std::uint32_t>(std::countr_zero(mask)); });
    }
    put(warp, op.p, mask, leader);
}
void nothing(Warp&, const Op&, LaneMask) {}

void trap(Warp& warp, const Op& op, LaneMask mask) {
    fail(warp, op, static_cast<std::uint32_t>(std::countr_zero(mask)), FaultKind::launch_failed,
         op.flag ? "brkpt was executed, and there is no debugger" : "trap was executed");
}

// The results of bar.red. Op::a holds the barrier's number.
const Barrier& barrier_of(Warp& warp, const Op& op, LaneMask mask) {
    return warp.block->barriers[warp.in(op.a)[static_cast<std::size_t>(std::countr_zero(mask))] & 15];
}
void counted(Warp& warp, const Op& op, LaneMask mask) {
    const std::uint32_t count = barrier_of(warp, op, mask).result_count;
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = count; });
}
void all_true(Warp& warp, const Op& op, LaneMask mask) {
    const Barrier& barrier = barrier_of(warp, op, mask);
    put(warp, op.p, mask, barrier.result_count == barrier.result_threads ? mask : 0);
}
void any_true(Warp& warp, const Op& op, LaneMask mask) {
    put(warp, op.p, mask, barrier_of(warp, op, mask).result_count != 0 ? mask : 0);
}

enum class Special : std::uint8_t {
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    laneid,
    warpid,
    nwarpid,
    smid,
    nsmid,
    gridid,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    clock,
    clock_hi,
    clock64,
    globaltimer,
    globaltimer_lo,
    globaltimer_hi,
    dynamic_smem,
    total_smem,
    grid_low,
    grid_high,
    warp_size,
    zero,  // counters of a profiler, which does not run; the graph of a launch, which is none of the device's
    dynamic_start,
    clusterid_x,
    clusterid_y,
    clusterid_z,
    nclusterid_x,
    nclusterid_y,
    nclusterid_z,
    cluster_ctaid_x,
    cluster_ctaid_y,
    cluster_ctaid_z,
    cluster_nctaid_x,
    cluster_nctaid_y,
    cluster_nctaid_z,
    cluster_ctarank,
    cluster_nctarank,
    is_explicit_cluster,
    count
};
constexpr std::pair<std::string_view, Special> specials[] = {{"%tid.x", Special::tid_x},
                                                             {"%tid.y", Special::tid_y},
                                                             {"%tid.z", Special::tid_z},
                                                             {"%ntid.x", Special::ntid_x},
                                                             {"%ntid.y", Special::ntid_y},
                                                             {"%ntid.z", Special::ntid_z},
                                                             {"%ctaid.x", Special::ctaid_x},
                                                             {"%ctaid.y", Special::ctaid_y},
                                                             {"%ctaid.z", Special::ctaid_z},
                                                             {"%nctaid.x", Special::nctaid_x},
                                                             {"%nctaid.y", Special::nctaid_y},
                                                             {"%nctaid.z", Special::nctaid_z},
                                                             {"%laneid", Special::laneid},
                                                             {"%warpid", Special::warpid},
                                                             {"%nwarpid", Special::nwarpid},
                                                             {"%smid", Special::smid},
                                                             {"%nsmid", Special::nsmid},
                                                             {"%gridid", Special::gridid},
                                                             {"%lanemask_eq", Special::lanemask_eq},
                                                             {"%lanemask_le", Special::lanemask_le},
                                                             {"%lanemask_lt", Special::lanemask_lt},
                                                             {"%lanemask_ge", Special::lanemask_ge},
                                                             {"%lanemask_gt", Special::lanemask_gt},
                                                             {"%clock", Special::clock},
                                                             {"%clock_hi", Special::clock_hi},
                                                             {"%clock64", Special::clock64},
                                                             {"%globaltimer", Special::globaltimer},
                                                             {"%globaltimer_lo", Special::globaltimer_lo},
                                                             {"%globaltimer_hi", Special::globaltimer_hi},
                                                             {"%dynamic_smem_size", Special::dynamic_smem},
                                                             {"%total_smem_size", Special::total_smem},
                                                             {"%envreg2", Special::grid_low},
                                                             {"%envreg1", Special::grid_high},
                                                             {"%clusterid.x", Special::clusterid_x},
                                                             {"%clusterid.y", Special::clusterid_y},
                                                             {"%clusterid.z", Special::clusterid_z},
                                                             {"%nclusterid.x", Special::nclusterid_x},
                                                             {"%nclusterid.y", Special::nclusterid_y},
                                                             {"%nclusterid.z", Special::nclusterid_z},
                                                             {"%cluster_ctaid.x", Special::cluster_ctaid_x},
                                                             {"%cluster_ctaid.y", Special::cluster_ctaid_y},
                                                             {"%cluster_ctaid.z", Special::cluster_ctaid_z},
                                                             {"%cluster_nctaid.x", Special::cluster_nctaid_x},
                                                             {"%cluster_nctaid.y", Special::cluster_nctaid_y},
                                                             {"%cluster_nctaid.z", Special::cluster_nctaid_z},
                                                             {"%cluster_ctarank", Special::cluster_ctarank},
                                                             {"%cluster_nctarank", Special::cluster_nctarank},
                                                             {"%is_explicit_cluster", Special::is_explicit_cluster},
                                                             {"%pm0", Special::zero},
                                                             {"%pm1", Special::zero},
                                                             {"%pm2", Special::zero},
                                                             {"%pm3", Special::zero},
                                                             {"%pm4", Special::zero},
                                                             {"%pm5", Special::zero},
                                                             {"%pm6", Special::zero},
                                                             {"%pm7", Special::zero},
                                                             {"%pm0_64", Special::zero},
                                                             {"%pm1_64", Special::zero},
                                                             {"%pm2_64", Special::zero},
                                                             {"%pm3_64", Special::zero},
                                                             {"%pm4_64", Special::zero},
                                                             {"%pm5_64", Special::zero},
                                                             {"%pm6_64", Special::zero},
                                                             {"%pm7_64", Special::zero},
                                                             {"%current_graph_exec", Special::zero},
                                                             {"WARP_SZ", Special::warp_size},
                                                             {dynamic_shared_name, Special::dynamic_start}};

std::uint64_t nanoseconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

template <Special what>
std::uint64_t special_value(const Warp& warp, const Execution::State& state, std::uint32_t lane) {
    const Dimensions &block = state.shape.block, &grid = state.shape.grid, &at = warp.block->at,
                     &cluster = state.shape.cluster;
    const std::uint32_t thread = warp.number * lanes + lane;
    // Where grid.sync() is lawful, the environment registers hold the address of its workspace.
    const std::uint64_t workspace = state.shape.cooperative ? grid_window : 0;
    switch (what) {
        case Special::tid_x: return thread % block.x;
        case Special::tid_y: return thread / block.x % block.y;
        case Special::tid_z: return thread / block.x / block.y;
        case Special::ntid_x: return block.x;
        case Special::ntid_y: return block.y;
        case Special::ntid_z: return block.z;
        case Special::ctaid_x: return at.x;
        case Special::ctaid_y: return at.y;
        case Special::ctaid_z: return at.z;
        case Special::nctaid_x: return grid.x;
        case Special::nctaid_y: return grid.y;
        case Special::nctaid_z: return grid.z;
        case Special::laneid: return lane;
        case Special::warpid: return warp.number;
        case Special::nwarpid: return (state.threads + lanes - 1) / lanes;
        case Special::smid: return warp.block->number % state.shape.multiprocessors;
        case Special::nsmid: return state.shape.multiprocessors;
        case Special::lanemask_eq: return LaneMask{1} << lane;
        case Special::lanemask_lt: return (LaneMask{1} << lane) - 1;
        case Special::lanemask_le: return ((LaneMask{1} << lane) - 1) | (LaneMask{1} << lane);
        case Special::lanemask_ge: return ~((LaneMask{1} << lane) - 1);
        case Special::lanemask_gt: return ~(((LaneMask{1} << lane) - 1) | (LaneMask{1} << lane));
        case Special::clock:
        case Special::globaltimer_lo: return nanoseconds() & 0xffffffff;
        case Special::clock_hi:
        case Special::globaltimer_hi: return nanoseconds() >> 32;
        case Special::clock64:
        case Special::globaltimer: return nanoseconds();
        case Special::dynamic_smem: return state.shape.dynamic_shared_bytes;
        case Special::total_smem: return warp.block->shared.size();
        case Special::grid_low: return workspace & 0xffffffff;
        case Special::grid_high: return workspace >> 32;
        case Special::warp_size: return lanes;
        case Special::clusterid_x: return at.x / cluster.x;
        case Special::clusterid_y: return at.y / cluster.y;
        case Special::clusterid_z: return at.z / cluster.z;
        case Special::nclusterid_x: return grid.x / cluster.x;
        case Special::nclusterid_y: return grid.y / cluster.y;
        case Special::nclusterid_z: return grid.z / cluster.z;
        case Special::cluster_ctaid_x: return at.x % cluster.x;
        case Special::cluster_ctaid_y: return at.y % cluster.y;
        case Special::cluster_ctaid_z: return at.z % cluster.z;
        case Special::cluster_nctaid_x: return cluster.x;
        case Special::cluster_nctaid_y: return cluster.y;
        case Special::cluster_nctaid_z: return cluster.z;
        case Special::cluster_ctarank: return warp.block->rank;
        case Special::cluster_nctarank: return std::uint64_t{cluster.x} * cluster.y * cluster.z;
        case Special::is_explicit_cluster: return state.shape.explicit_cluster ? 1 : 0;
        case Special::dynamic_start: return state.entry->shared_bytes;
        default: return 0;
    }
}
template <Special what>
void special(Warp& warp, const Op& op, LaneMask mask) {
    const Execution::State& state = *warp.worker->state;
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = special_value<what>(warp, state, lane); });
}
template <std::size_t... at>
Run chosen(Special what, std::index_sequence<at...>) {
    constexpr Run rows[] = {special<static_cast<Special>(at)>...};
    return rows[static_cast<std::size_t>(what)];
}

struct NamedRun {
    std::string_view name;
    Run run;
};
using U = std::uint32_t;
using S = std::int32_t;
constexpr NamedRun between_lanes[] = {{"shfl.up", shuffle<Shuffle::up>},
                                      {"shfl.down", shuffle<Shuffle::down>},
                                      {"shfl.bfly", shuffle<Shuffle::butterfly>},
                                      {"shfl.idx", shuffle<Shuffle::index>},
                                      {"vote.all", vote<Vote::all>},
                                      {"vote.any", vote<Vote::any>},
                                      {"vote.uni", vote<Vote::uni>},
                                      {"vote.ballot", vote<Vote::ballot>},
                                      {"match.any", match<false>},
                                      {"match.all", match<true>},
                                      {"redux.add.u32", reduce<U, Reduce::add>},
                                      {"redux.add.s32", reduce<S, Reduce::add>},
                                      {"redux.min.u32", reduce<U, Reduce::min>},
                                      {"redux.min.s32", reduce<S, Reduce::min>},
                                      {"redux.max.u32", reduce<U, Reduce::max>},
                                      {"redux.max.s32", reduce<S, Reduce::max>},
                                      {"redux.and.b32", reduce<U, Reduce::and_>},
                                      {"redux.or.b32", reduce<U, Reduce::or_>},
                                      {"redux.xor.b32", reduce<U, Reduce::xor_>},
                                      {"activemask", active},
                                      {"elect", elect},
                                      {"bar.warp", nothing}};

}  // namespace

Run warp_run(std::string_view name) {
    for (const NamedRun& row : between_lanes) {
        if (row.name == name) return row.run;
    }
    return nullptr;
}

Run barrier_run(std::string_view name) {
    if (name == "red.popc") return counted;
    if (name == "red.and") return all_true;
    if (name == "red.or") return any_true;
    return nothing;
}

Run special_run(std::string_view name, std::string_view part) {
    const std::string whole = std::string(name) + std::string(part);
    for (const auto& [known, what] : specials) {
        if (known == whole) return chosen(what, std::make_index_sequence<static_cast<std::size_t>(Special::count)>());
    }
    return nullptr;
}

Run nothing_run() {
    return nothing;
}
Run trap_run() {
    return trap;
}

}  // namespace isthmus::ptx
