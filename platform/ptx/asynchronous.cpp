// SPDX-License-Identifier: Apache-2.0
// mbarrier objects, and copies that a thread starts and waits for later (cp.async). A copy of cp.async is done when its
// thread waits for it or hands it to an mbarrier object, so that a missing wait is seen.
#include "mbarrier_state.hpp"
#include "operations.hpp"
#include "state.hpp"

#include <algorithm>
#include <cstring>

namespace isthmus::ptx {
namespace {

// ---- mbarrier objects

struct Object {
    std::byte* place = nullptr;  // nullptr: it is refused
    MbarrierState state;
};

// The codes of the faults are those of an H200.
void refuse(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, const std::string& why,
            FaultKind kind = FaultKind::launch_failed) {
    fail(warp, op, lane, kind, "the mbarrier object at " + in_hex(address) + ": " + why);
}

// The block whose shared memory has this byte, and where; nullptr: none of the cluster's has.
Block* owner_of(Warp& warp, const std::byte* place, std::uint32_t& offset) {
    for (Block* const block : warp.block->cluster->blocks) {
        if (block == nullptr || place < block->shared.data() || place >= block->shared.data() + block->shared.size())
            continue;
        offset = static_cast<std::uint32_t>(place - block->shared.data());
        return block;
    }
    return nullptr;
}

Object object_at(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, bool is_new = false) {
    Object out;
    std::byte* const place = reach(warp, op, lane, address, 8, true);
    if (place == nullptr) return out;
    std::uint32_t offset = 0;
    Block* const owner = owner_of(warp, place, offset);
    if (owner == nullptr) {
        refuse(warp, op, lane, address, "it does not lie in shared memory", FaultKind::illegal_instruction);
        return out;
    }
    if (is_new) {
        owner->mbarriers.insert(offset);
    } else if (owner->mbarriers.count(offset) == 0) {
        return refuse(warp, op, lane, address, "nothing has initialised it (mbarrier.init)"), out;
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, place, sizeof bits);
    out = {place, MbarrierState::of(bits)};
    return out;
}
void keep(const Object& object) {
    const std::uint64_t bits = object.state.bits();
    std::memcpy(object.place, &bits, sizeof bits);
}

// Op: a and value: the object; b: a count, c: transactions; d: the state before; value2: bit 0: it is not wanted.
template <MbarrierDo what>
void on_object(Warp& warp, const Op& op, LaneMask mask) {
    warp.worker->op = &op;
    const Row &base = warp.in(op.a), &counts = warp.in(op.b), &transactions = warp.in(op.c);
    for (LaneMask rest = mask; rest != 0 && !warp.worker->stop; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        const std::uint64_t address = base[lane] + op.value;
        const auto count = static_cast<std::uint32_t>(counts[lane]);
        Object object = object_at(warp, op, lane, address, what == MbarrierDo::init);
        if (object.place == nullptr) return;
        const std::uint64_t before = object.state.bits();
        const char* why = nullptr;
        switch (what) {
            case MbarrierDo::init: why = init(object.state, count); break;
            case MbarrierDo::inval: {
                std::uint32_t offset = 0;
                owner_of(warp, object.place, offset)->mbarriers.erase(offset);
                break;
            }
            case MbarrierDo::expect: why = add_transactions(object.state, count); break;
            case MbarrierDo::complete: why = complete_transactions(object.state, count); break;
            case MbarrierDo::arrive:
            case MbarrierDo::drop: {
                const auto expected = static_cast<std::uint32_t>(transactions[lane]);
                why = arrive(object.state, {count, expected, what == MbarrierDo::drop, !op.flag});
                if ((op.value2 & 1) == 0) warp.out(op.d)[lane] = before;
                break;
            }
        }
        if (why != nullptr) return refuse(warp, op, lane, address, why);
        keep(object);
        if (what == MbarrierDo::init && warp.worker->finds_uninitialised) note_write(warp, 8);
    }
}

// Tests of test_wait that fail before others have a turn: most programs repeat them until they succeed.
constexpr std::uint32_t failed_tests_of_turn = 64;

// Op: b: the state or the parity (flag); p: whether its phase has ended; mode: 1: try_wait, which lets others run.
void test(Warp& warp, const Op& op, LaneMask mask) {
    warp.worker->op = &op;
    const Row &base = warp.in(op.a), &asked = warp.in(op.b);
    LaneMask ended = 0;
    for (LaneMask rest = mask; rest != 0 && !warp.worker->stop; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        const Object object = object_at(warp, op, lane, base[lane] + op.value);
        if (object.place == nullptr) return;
        const bool yes =
            op.flag ? has_ended_by_parity(object.state, asked[lane]) : has_ended(object.state, asked[lane]);
        ended |= LaneMask{yes} << lane;
    }
    if (op.p >= 0) warp.predicates[op.p] = (warp.predicates[op.p] & ~mask) | ended;
    warp.test_failed = ended == 0;
    if (op.mode == 1 ? ended != mask : ended == 0 && ++warp.failed_tests % failed_tests_of_turn == 0) warp.waits = true;
}

void pending(Warp& warp, const Op& op, LaneMask mask) {
    const Row& states = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = MbarrierState::of(states[lane]).pending; });
}

// ---- copies of a thread

AsyncCopies& copies_of(Warp& warp) {
    if (!warp.copies) warp.copies = std::make_unique<AsyncCopies>();
    return *warp.copies;
}

void do_copy(const AsyncCopies::Copy& copy) {
    std::byte bytes[16] = {};
    if (copy.from != nullptr) std::memcpy(bytes, copy.from, copy.from_bytes);
    std::memcpy(copy.to, bytes, copy.bytes);
    if (copy.written == nullptr) return;
    std::memset(copy.written, 1, copy.bytes);
    if (copy.from_written != nullptr) std::memcpy(copy.written, copy.from_written, copy.from_bytes);
}

// Where a copy reads from; last_written: of its first byte. The address is a multiple of the whole copy's bytes, but
// memory must be there only for those that are read.
const std::byte* source_of(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, std::uint32_t reads) {
    if (reads == op.bytes || address % op.bytes != 0) return reach(warp, op, lane, address, op.bytes, false);
    if (reach(warp, op, lane, address + reads - 1, 1, false) == nullptr) return nullptr;
    return reach(warp, op, lane, address, 1, false);
}

// Op: a and value: to shared memory; b and value2: from global memory; bytes; c: the bytes to read, or p: whether none
// are; extra: a second slot of windows.
void copy(Warp& warp, const Op& op, LaneMask mask) {
    warp.worker->op = &op;
    Op to_op = op, from_op = op;
    to_op.space = Space::shared;
    from_op.space = Space::global;
    const Row &to = warp.in(op.a), &from = warp.in(op.b), &reads = warp.in(op.c);
    const LaneMask ignored = op.p >= 0 ? warp.predicates[op.p] ^ (op.flag ? ~LaneMask{0} : 0) : 0;
    AsyncCopies& copies = copies_of(warp);
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        AsyncCopies::Copy one;
        one.bytes = op.bytes;
        one.from_bytes = (ignored >> lane & 1) != 0 ? 0 : static_cast<std::uint32_t>(reads[lane]);
        if (one.from_bytes > one.bytes) {
            return fail(warp, op, lane, FaultKind::illegal_instruction, "cp.async reads more bytes than it writes");
        }
        one.to = reach(warp, to_op, lane, to[lane] + op.value, op.bytes, true);
        if (one.to == nullptr) return;
        one.written = warp.worker->last_written;
        if (one.from_bytes != 0) {
            const std::uint64_t address = from[lane] + op.value2;
            one.from = source_of(warp, from_op, lane, address, one.from_bytes);
            if (one.from == nullptr) return;
            one.from_written = warp.worker->last_written;
        }
        copies.open[lane].push_back({one, copies.committed[lane]});
    }
}

void commit(Warp& warp, const Op&, LaneMask mask) {
    AsyncCopies& copies = copies_of(warp);
    for_lanes(mask, [&](std::uint32_t lane) { ++copies.committed[lane]; });
}

// Op::value: how many of the newest groups may stay open; flag: also what is in no group yet is waited for.
void wait(Warp& warp, const Op& op, LaneMask mask) {
    if (!warp.copies) return;
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::uint64_t committed = warp.copies->committed[lane];
        warp.copies->finish(lane, op.flag ? ~std::uint64_t{0} : committed < op.value ? 0 : committed - op.value);
    });
}

// cp.async.mbarrier.arrive. Without .noinc (flag) the arrival is expected by the instruction itself.
void arrive_after_copies(Warp& warp, const Op& op, LaneMask mask) {
    warp.worker->op = &op;
    const Row& base = warp.in(op.a);
    for (LaneMask rest = mask; rest != 0 && !warp.worker->stop; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        const std::uint64_t address = base[lane] + op.value;
        Object object = object_at(warp, op, lane, address);
        if (object.place == nullptr) return;
        if (warp.copies) warp.copies->finish(lane, ~std::uint64_t{0});
        if (!op.flag) continue;
        if (const char* const why = arrive(object.state, {})) return refuse(warp, op, lane, address, why);
        keep(object);
    }
}

// ---- copies in bulk: done at once, and told to the mbarrier object. Op: a and value: to; b and value2: from; c:
// bytes; d: the mbarrier object (p: -2: none); mode: 1: from shared to global memory.
void copy_in_bulk(Warp& warp, const Op& op, LaneMask mask) {
    warp.worker->op = &op;
    constexpr std::uint32_t unit = 16;
    Op to_op = op, from_op = op, object_op = op;
    to_op.space = op.mode == 1 ? Space::global : Space::shared;
    from_op.space = static_cast<Space>(op.count);
    object_op.space = Space::shared;
    const Row &to = warp.in(op.a), &from = warp.in(op.b), &sizes = warp.in(op.c);
    for (LaneMask rest = mask; rest != 0 && !warp.worker->stop; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        const auto bytes = static_cast<std::uint32_t>(sizes[lane]);
        if (bytes % unit != 0) {
            return fail(warp, op, lane, FaultKind::misaligned,
                        "a copy of " + std::to_string(bytes) + " bytes in bulk: they are not a multiple of 16");
        }
        for (std::uint32_t at = 0; at < bytes; at += unit) {
            const std::uint64_t source = from[lane] + op.value2 + at;
            const std::byte* const read = reach(warp, from_op, lane, source, unit, false);
            if (read == nullptr) return;
            if (warp.worker->finds_uninitialised) note_read(warp, from_op, lane, source, unit);
            std::byte* const written = reach(warp, to_op, lane, to[lane] + op.value + at, unit, true);
            if (written == nullptr) return;
            if (warp.worker->finds_uninitialised) note_write(warp, unit);
            std::memcpy(written, read, unit);
        }
        if (op.flag) continue;
        const std::uint64_t address = warp.in(op.d)[lane];
        Object object = object_at(warp, object_op, lane, address);
        if (object.place == nullptr) return;
        if (const char* const why = complete_transactions(object.state, bytes))
            return refuse(warp, op, lane, address, why);
        keep(object);
    }
}

}  // namespace

void AsyncCopies::finish(std::uint32_t lane, std::uint64_t groups) {
    auto& list = open[lane];
    const auto end = std::find_if(list.begin(), list.end(), [&](const InGroup& one) { return one.group >= groups; });
    for (auto one = list.begin(); one != end; ++one) do_copy(one->copy);
    list.erase(list.begin(), end);
}

Run mbarrier_run(MbarrierDo what) {
    switch (what) {
        case MbarrierDo::init: return on_object<MbarrierDo::init>;
        case MbarrierDo::inval: return on_object<MbarrierDo::inval>;
        case MbarrierDo::expect: return on_object<MbarrierDo::expect>;
        case MbarrierDo::complete: return on_object<MbarrierDo::complete>;
        case MbarrierDo::arrive: return on_object<MbarrierDo::arrive>;
        case MbarrierDo::drop: return on_object<MbarrierDo::drop>;
    }
    return nullptr;
}
std::string awaited(Warp& warp, const Op& test, std::uint32_t lane) {
    const std::uint64_t address = warp.in(test.a)[lane] + test.value;
    const Object object = object_at(warp, test, lane, address);
    std::string out = "it waits at the mbarrier object at " + in_hex(address);
    if (object.place == nullptr) return out;
    out += ", whose phase still expects " + std::to_string(object.state.pending) +
           (object.state.pending == 1 ? " arrival" : " arrivals");
    if (object.state.transactions != 0) out += " and " + std::to_string(object.state.transactions) + " bytes";
    return out;
}

Run mbarrier_test_run() {
    return test;
}
Run mbarrier_pending_run() {
    return pending;
}
Run async_run(AsyncDo what) {
    switch (what) {
        case AsyncDo::copy: return copy;
        case AsyncDo::commit: return commit;
        case AsyncDo::wait: return wait;
        case AsyncDo::arrive: return arrive_after_copies;
        case AsyncDo::bulk: return copy_in_bulk;
    }
    return nullptr;
}

}  // namespace isthmus::ptx
