// SPDX-License-Identifier: Apache-2.0
// atom and red. Updates are the host's atomic ones, unless the memory says that the device's are not whole.
#include "numbers.hpp"
#include "state.hpp"

#include <cmath>

namespace isthmus::ptx {
namespace {

template <class T>
std::uint64_t number_changed(AtomicKind kind, T old, T operand) {
    using U = std::make_unsigned_t<T>;
    switch (kind) {
        case AtomicKind::add: return to_slot(static_cast<T>(static_cast<U>(old) + static_cast<U>(operand)));
        case AtomicKind::min: return to_slot(operand < old ? operand : old);
        case AtomicKind::max: return to_slot(old < operand ? operand : old);
        case AtomicKind::and_: return to_slot(static_cast<T>(old & operand));
        case AtomicKind::or_: return to_slot(static_cast<T>(old | operand));
        case AtomicKind::xor_: return to_slot(static_cast<T>(old ^ operand));
        case AtomicKind::inc: return to_slot(static_cast<T>(old >= operand ? 0 : old + 1));
        case AtomicKind::dec: return to_slot(static_cast<T>(old == 0 || old > operand ? operand : old - 1));
        default: return to_slot(operand);
    }
}

std::uint64_t half_changed(HalfFormat format, AtomicKind kind, std::uint16_t old, std::uint16_t operand) {
    const double a = number_of(format, old), b = number_of(format, operand);
    if (kind == AtomicKind::add) return half_of(format, odd_sum(a, b), Rounding::nearest);
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? (std::isnan(b) ? 0x7fff : operand) : old;
    const bool operand_first = a == b ? std::signbit(b) : b < a;
    return (kind == AtomicKind::min) == operand_first ? operand : old;
}

// CUatomicOperation.
std::uint32_t driver_operation(AtomicKind kind, bool of_floats) {
    switch (kind) {
        case AtomicKind::add: return of_floats ? 10 : 0;
        case AtomicKind::min: return of_floats ? 11 : 1;
        case AtomicKind::max: return of_floats ? 12 : 2;
        case AtomicKind::inc: return 3;
        case AtomicKind::dec: return 4;
        case AtomicKind::and_: return 5;
        case AtomicKind::or_: return 6;
        case AtomicKind::xor_: return 7;
        case AtomicKind::exch: return 8;
        case AtomicKind::cas: return 9;
    }
    return 0;
}

template <class T>
class Change final : public Update {
public:
    Change(const Op& op, std::uint64_t operand, std::uint64_t compared, bool ftz)
        : op_(op), operand_(operand), compared_(compared), ftz_(ftz) {
        const auto type = static_cast<Type>(op.extra);
        is_signed = ptx::is_signed(type);
        operation = driver_operation(static_cast<AtomicKind>(op.mode), is_float(type));
    }
    std::uint64_t changed(std::uint64_t old) override {
        return changed_by(static_cast<AtomicKind>(op_.mode), static_cast<Type>(op_.extra), ftz_, old, operand_,
                          compared_);
    }

private:
    const Op& op_;
    std::uint64_t operand_, compared_;
    bool ftz_;
};

template <class T>
std::uint64_t updated(std::byte* at, Update& update) {
    auto* const word = reinterpret_cast<T*>(at);
    T old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &old, static_cast<T>(update.changed(old)), true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
    }
    return old;
}

template <class T>
void update(Warp& warp, const Op& op, LaneMask mask) {
    Worker& worker = *warp.worker;
    worker.op = &op;
    const Row &base = warp.in(op.a), &operand = warp.in(op.b), &compared = warp.in(op.c);
    for_lanes(mask, [&](std::uint32_t lane) {
        std::byte* const at = reach(warp, op, lane, base[lane] + op.value, sizeof(T), true);
        if (at == nullptr) return;
        if (worker.finds_uninitialised) {
            if (static_cast<AtomicKind>(op.mode) != AtomicKind::exch) {
                note_read(warp, op, lane, base[lane] + op.value, sizeof(T));
            }
            note_write(warp, sizeof(T));
        }
        // PTX ISA, atom.add.f32: flushes subnormal numbers in global memory, not in shared memory.
        const bool shared = op.space == Space::shared || (base[lane] & window_mask) == shared_window;
        Change<T> change(op, operand[lane], compared[lane], !shared);
        const std::uint64_t old =
            worker.last_whole ? updated<T>(at, change) : worker.state->memory->update(at, sizeof(T), change);
        if ((op.value2 & 1) == 0) warp.out(op.d)[lane] = old;
    });
}

}  // namespace

std::uint64_t changed_by(AtomicKind kind, Type type, bool ftz, std::uint64_t old, std::uint64_t operand,
                         std::uint64_t compared) noexcept {
    if (kind == AtomicKind::exch) return operand;
    // cas: the operand is what is compared, and the third one the new value.
    if (kind == AtomicKind::cas) {
        const std::uint64_t all = mask_of(size_bytes(type));
        return (old & all) == (operand & all) ? compared : old;
    }
    switch (type) {
        case Type::s32: return number_changed(kind, from_slot<std::int32_t>(old), from_slot<std::int32_t>(operand));
        case Type::s64: return number_changed(kind, from_slot<std::int64_t>(old), from_slot<std::int64_t>(operand));
        case Type::u32:
        case Type::b32: return number_changed(kind, from_slot<std::uint32_t>(old), from_slot<std::uint32_t>(operand));
        case Type::u64:
        case Type::b64: return number_changed(kind, old, operand);
        case Type::f32: {
            const float a = from_slot<float>(old), b = from_slot<float>(operand);
            return to_slot(canonical(ftz ? flushed(flushed(a) + flushed(b)) : a + b));
        }
        case Type::f64: return to_slot(from_slot<double>(old) + from_slot<double>(operand));
        case Type::f16:
        case Type::bf16: {
            const HalfFormat format = type == Type::f16 ? half_format : bfloat_format;
            return half_changed(format, kind, static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(operand));
        }
        case Type::f16x2:
        case Type::bf16x2: {
            const HalfFormat format = type == Type::f16x2 ? half_format : bfloat_format;
            const auto part = [&](unsigned shift) {
                return half_changed(format, kind, static_cast<std::uint16_t>(old >> shift),
                                    static_cast<std::uint16_t>(operand >> shift))
                       << shift;
            };
            return part(0) | part(16);
        }
        default: return old;
    }
}

Run atomic_run(std::uint32_t bytes) {
    switch (bytes) {
        case 2: return update<std::uint16_t>;
        case 4: return update<std::uint32_t>;
        case 8: return update<std::uint64_t>;
        default: return nullptr;
    }
}

}  // namespace isthmus::ptx
