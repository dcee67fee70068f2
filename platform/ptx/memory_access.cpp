// SPDX-License-Identifier: Apache-2.0
// Loads, stores and fences.
#include "operations.hpp"
#include "state.hpp"

#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace isthmus::ptx {
namespace {

template <class T>
std::uint64_t loaded(const std::byte* from, bool acquire) {
    const auto* const word = reinterpret_cast<const T*>(from);
    return acquire ? __atomic_load_n(word, __ATOMIC_ACQUIRE) : __atomic_load_n(word, __ATOMIC_RELAXED);
}
template <class T>
void stored(std::byte* to, std::uint64_t value, bool release) {
    auto* const word = reinterpret_cast<T*>(to);
    if (release) {
        __atomic_store_n(word, static_cast<T>(value), __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(word, static_cast<T>(value), __ATOMIC_RELAXED);
    }
}

template <class T>
std::uint64_t widened(const Op& op, std::uint64_t value) {
    if (!op.flag) return value;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::make_signed_t<T>>(value))) & op.value2;
}

template <class T>
void load(Warp& warp, const Op& op, LaneMask mask) {
    Worker& worker = *warp.worker;
    worker.op = &op;
    const Row& base = warp.in(op.a);
    const bool acquire = op.mode != 0;
    const bool records = worker.finds_uninitialised;
    const bool direct =
        !records && (op.space == Space::global || op.space == Space::constant || op.space == Space::generic);
    if (op.count == 1) {
        Row& d = warp.out(op.d);
        const CachedWindow cached = direct ? worker.windows[op.slot] : CachedWindow{};
        for_lanes(mask, [&](std::uint32_t lane) {
            const std::uint64_t address = base[lane] + op.value;
            const std::byte* from = quickly(cached, address, sizeof(T));
            if (from == nullptr) from = reach(warp, op, lane, address, sizeof(T), false);
            if (records && from != nullptr) note_read(warp, op, lane, address, sizeof(T));
            if (from != nullptr) d[lane] = widened<T>(op, loaded<T>(from, acquire));
        });
        return;
    }
    const std::int32_t* const places = warp.now.frame->function->extra.data() + op.extra;
    const std::uint32_t bytes = static_cast<std::uint32_t>(sizeof(T)) * op.count;
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::byte* const from = reach(warp, op, lane, base[lane] + op.value, bytes, false);
        if (from == nullptr) return;
        if (records) note_read(warp, op, lane, base[lane] + op.value, bytes);
        for (unsigned at = 0; at < op.count; ++at) {
            if (places[at] < 0) continue;  // a sink
            warp.out(places[at])[lane] = widened<T>(op, loaded<T>(from + at * sizeof(T), acquire));
        }
    });
}

template <class T>
void store(Warp& warp, const Op& op, LaneMask mask) {
    Worker& worker = *warp.worker;
    worker.op = &op;
    const Row& base = warp.in(op.a);
    const bool release = op.mode != 0;
    const bool records = worker.finds_uninitialised;
    const bool direct = !records && (op.space == Space::global || op.space == Space::generic);
    if (op.count == 1) {
        const Row& value = warp.in(op.b);
        const CachedWindow cached = direct ? worker.windows[op.slot] : CachedWindow{};
        for_lanes(mask, [&](std::uint32_t lane) {
            const std::uint64_t address = base[lane] + op.value;
            std::byte* to = quickly(cached, address, sizeof(T));
            if (to == nullptr) to = reach(warp, op, lane, address, sizeof(T), true);
            if (records && to != nullptr) note_write(warp, sizeof(T));
            if (to != nullptr) stored<T>(to, value[lane], release);
        });
        return;
    }
    const std::int32_t* const places = warp.now.frame->function->extra.data() + op.extra;
    const std::uint32_t bytes = static_cast<std::uint32_t>(sizeof(T)) * op.count;
    for_lanes(mask, [&](std::uint32_t lane) {
        std::byte* const to = reach(warp, op, lane, base[lane] + op.value, bytes, true);
        if (to == nullptr) return;
        if (records) note_write(warp, bytes);
        for (unsigned at = 0; at < op.count; ++at) stored<T>(to + at * sizeof(T), warp.in(places[at])[lane], release);
    });
}

// Memory of a thread or a block may lie in the host's memory with a lower alignment than its address has.
[[maybe_unused]] bool is_aligned(const std::byte* place) {
    return (reinterpret_cast<std::uintptr_t>(place) & 15) == 0;
}
struct Wide {
    std::uint64_t low, high;
};
// 16 bytes in one piece, where the processor has such an access: x86-64 with AVX, 64-bit Arm with LSE2.
Wide wide_loaded(const std::byte* from) {
    Wide out{};
#if defined(__SSE2__)
    if (is_aligned(from)) {
        __m128i both;
        asm volatile("movdqa %1, %0" : "=x"(both) : "m"(*reinterpret_cast<const __m128i*>(from)) : "memory");
        std::memcpy(&out, &both, sizeof out);
        return out;
    }
#elif defined(__aarch64__)
    if (is_aligned(from)) {
        asm volatile("ldp %0, %1, [%2]" : "=r"(out.low), "=r"(out.high) : "r"(from) : "memory");
        return out;
    }
#endif
    out = {loaded<std::uint64_t>(from, false), loaded<std::uint64_t>(from + 8, false)};
    return out;
}
void wide_stored(std::byte* to, const Wide& value) {
#if defined(__SSE2__)
    if (is_aligned(to)) {
        __m128i both;
        std::memcpy(&both, &value, sizeof both);
        asm volatile("movdqa %1, %0" : "=m"(*reinterpret_cast<__m128i*>(to)) : "x"(both) : "memory");
        return;
    }
#elif defined(__aarch64__)
    if (is_aligned(to)) {
        asm volatile("stp %0, %1, [%2]" ::"r"(value.low), "r"(value.high), "r"(to) : "memory");
        return;
    }
#endif
    stored<std::uint64_t>(to, value.low, false);
    stored<std::uint64_t>(to + 8, value.high, false);
}
void load_wide(Warp& warp, const Op& op, LaneMask mask) {
    warp.worker->op = &op;
    const Row& base = warp.in(op.a);
    const bool records = warp.worker->finds_uninitialised;
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::uint64_t address = base[lane] + op.value;
        const std::byte* const from = reach(warp, op, lane, address, 16, false);
        if (from == nullptr) return;
        if (records) note_read(warp, op, lane, address, 16);
        const Wide value = wide_loaded(from);
        warp.out(op.d)[lane] = value.low;
        warp.out(op.d + 1)[lane] = value.high;
    });
    if (op.mode != 0) __atomic_thread_fence(__ATOMIC_ACQUIRE);
}
void store_wide(Warp& warp, const Op& op, LaneMask mask) {
    warp.worker->op = &op;
    const Row& base = warp.in(op.a);
    const bool records = warp.worker->finds_uninitialised;
    if (op.mode != 0) __atomic_thread_fence(__ATOMIC_RELEASE);
    for_lanes(mask, [&](std::uint32_t lane) {
        std::byte* const to = reach(warp, op, lane, base[lane] + op.value, 16, true);
        if (to == nullptr) return;
        if (records) note_write(warp, 16);
        wide_stored(to, {warp.in(op.b)[lane], warp.in(op.b + 1)[lane]});
    });
}

void fence(Warp&, const Op&, LaneMask) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

}  // namespace

Run load_run(std::uint32_t bytes) {
    switch (bytes) {
        case 1: return load<std::uint8_t>;
        case 2: return load<std::uint16_t>;
        case 4: return load<std::uint32_t>;
        case 8: return load<std::uint64_t>;
        case 16: return load_wide;
        default: return nullptr;
    }
}
Run store_run(std::uint32_t bytes) {
    switch (bytes) {
        case 1: return store<std::uint8_t>;
        case 2: return store<std::uint16_t>;
        case 4: return store<std::uint32_t>;
        case 8: return store<std::uint64_t>;
        case 16: return store_wide;
        default: return nullptr;
    }
}
Run fence_run() {
    return fence;
}

}  // namespace isthmus::ptx
