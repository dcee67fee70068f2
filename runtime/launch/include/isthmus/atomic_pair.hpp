// SPDX-License-Identifier: Apache-2.0
// AtomicRef<Pair64>: two 8-byte words that host and device load and store as one indivisible 16-byte access.
#pragma once

#include <isthmus/atomic_ref.hpp>
#include <isthmus/export.hpp>

#include <cstdint>

namespace isthmus {
inline namespace v0 {

struct alignas(16) Pair64 {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    friend constexpr bool operator==(const Pair64&, const Pair64&) noexcept = default;
};

// true: this CPU guarantees that aligned 16-byte loads and stores are indivisible. x86 with AVX does (Intel's and AMD's
// manuals), Arm with LSE2 (FEAT_LSE2) does. Buffer<Pair64>::atomics_on_host checks this. GPUs guarantee it from compute
// capability 7.0 on. Thread-safe.
ISTHMUS_API bool host_has_pairs() noexcept;

namespace detail {
#if defined(__CUDA_ARCH__)
static_assert(__CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1204,
              "isthmus: indivisible loads of 16 bytes need CUDA 12.4");
__device__ __forceinline__ Pair64 load_pair(const Pair64* from) noexcept {
    Pair64 pair;
    asm volatile("{ .reg .b128 both; ld.relaxed.sys.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
                 : "=l"(pair.first), "=l"(pair.second)
                 : "l"(from)
                 : "memory");
    return pair;
}
__device__ __forceinline__ void store_pair(Pair64* to, Pair64 pair) noexcept {
    asm volatile("{ .reg .b128 both; mov.b128 both, {%0, %1}; st.relaxed.sys.b128 [%2], both; }"
                 :
                 : "l"(pair.first), "l"(pair.second), "l"(to)
                 : "memory");
}
#elif defined(__x86_64__)
// One instruction each, which no compiler splits. x86 does not reorder loads with loads, or stores with stores.
inline Pair64 load_pair(const Pair64* from) noexcept {
    using Register = long long __attribute__((vector_size(16)));
    Register both;
    asm volatile("movdqa %1, %0" : "=x"(both) : "m"(*from) : "memory");
    return {static_cast<std::uint64_t>(both[0]), static_cast<std::uint64_t>(both[1])};
}
inline void store_pair(Pair64* to, Pair64 pair) noexcept {
    using Register = long long __attribute__((vector_size(16)));
    const Register both = {static_cast<long long>(pair.first), static_cast<long long>(pair.second)};
    asm volatile("movdqa %1, %0" : "=m"(*to) : "x"(both) : "memory");
}
#elif defined(__aarch64__)
inline Pair64 load_pair(const Pair64* from) noexcept {
    Pair64 pair;
    asm volatile("ldp %0, %1, %2" : "=r"(pair.first), "=r"(pair.second) : "Q"(*from) : "memory");
    return pair;
}
inline void store_pair(Pair64* to, Pair64 pair) noexcept {
    asm volatile("stp %1, %2, %0" : "=Q"(*to) : "r"(pair.first), "r"(pair.second) : "memory");
}
#else
#error "isthmus: pairs are for x86-64 and 64-bit Arm"
#endif

ISTHMUS_KERNEL_FUNCTION void pair_fence() noexcept {
#if defined(__CUDA_ARCH__)
    cuda::atomic_thread_fence(cuda::std::memory_order_acq_rel, cuda::thread_scope_system);
#else
    host_fence<std::memory_order_acq_rel>();
#endif
}
}  // namespace detail

// Loads and stores only: a 16-byte read-modify-write is not lock-free on every CPU.
template <AtomicSet operations, AtomicScope scope>
class AtomicRef<Pair64, operations, scope> {
    static_assert(operations == AtomicSet::load_store, "isthmus: pairs are loaded and stored, not updated");

public:
    using value_type = Pair64;
    static constexpr AtomicSet granted = operations;
    ISTHMUS_KERNEL_FUNCTION constexpr explicit AtomicRef(Pair64& pair) noexcept : pair_(&pair) {}

    ISTHMUS_KERNEL_FUNCTION Pair64 load_relaxed() const noexcept { return detail::load_pair(pair_); }
    ISTHMUS_KERNEL_FUNCTION Pair64 load_acquire() const noexcept {
        const Pair64 pair = detail::load_pair(pair_);
        detail::pair_fence();
        return pair;
    }
    ISTHMUS_KERNEL_FUNCTION void store_relaxed(Pair64 pair) const noexcept { detail::store_pair(pair_, pair); }
    ISTHMUS_KERNEL_FUNCTION void store_release(Pair64 pair) const noexcept {
        detail::pair_fence();
        detail::store_pair(pair_, pair);
    }

private:
    Pair64* pair_;
};

}  // namespace v0
}  // namespace isthmus
