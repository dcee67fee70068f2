// SPDX-License-Identifier: Apache-2.0
// Operations between the lanes of a warp, barriers' results, and trap.
#include "named_run.hpp"
#include "operations.hpp"
#include "state.hpp"

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
    return named(between_lanes, name);
}

Run barrier_run(std::string_view name) {
    if (name == "red.popc") return counted;
    if (name == "red.and") return all_true;
    if (name == "red.or") return any_true;
    return nothing;
}

Run nothing_run() {
    return nothing;
}
Run trap_run() {
    return trap;
}

}  // namespace isthmus::ptx
