// SPDX-License-Identifier: Apache-2.0
// AtomicRef: one word that CPU and GPU access at the same time. It does not check that the access is lawful:
// Buffer::atomics_on_host() and a launch with an AtomicView do; an AtomicRef made directly is unguarded.
#pragma once

#include <isthmus/atomic_set.hpp>
#include <isthmus/detail/atomic_word.hpp>
#include <isthmus/detail/host_fence.hpp>

#include <cstdint>
#include <type_traits>

namespace isthmus {
inline namespace v0 {

namespace detail {
template <class T>
inline constexpr bool is_atomic_word = (std::is_integral_v<T> || std::is_floating_point_v<T>)&&(sizeof(T) == 4 ||
                                                                                                sizeof(T) == 8) &&
                                       !std::is_same_v<T, bool>;
// Whether T has this operation and it was requested.
template <class T, AtomicSet asked, AtomicSet wanted>
inline constexpr bool grants = !std::is_const_v<T> && std::is_integral_v<T> && contains(asked, wanted);
template <class T, AtomicSet asked>
inline constexpr bool grants_add =
    !std::is_const_v<T> && contains(asked, std::is_floating_point_v<T> ? AtomicSet::float_add : AtomicSet::add);
}  // namespace detail

// The scope is all CPU threads and all GPUs, or the threads of one GPU. The name of each operation states its memory
// order. Updates return the old value; integers wrap. Only the requested operations compile. A value without ownership,
// free to copy and to use on any thread; the word must be aligned to its size. Lock-free on both sides. The order of
// concurrent updates is not promised (G6, order_free_updates): float and double have only add and sub, whose sums
// depend on it.
template <class T, AtomicSet operations = AtomicSet::all, AtomicScope scope = AtomicScope::system>
class AtomicRef {
    static_assert(detail::is_atomic_word<std::remove_const_t<T>>,
                  "isthmus: atomics are for integers, float and double of 4 and 8 bytes (pointers differ between the "
                  "sides: share offsets)");
    using V = std::remove_const_t<T>;
    static_assert(std::atomic_ref<V>::is_always_lock_free,
                  "isthmus: a lock on one side means nothing to the other one");
    using Order = detail::Order;
    using Update = detail::Update;

public:
    using value_type = V;
    static constexpr AtomicSet granted = operations;
    ISTHMUS_KERNEL_FUNCTION constexpr explicit AtomicRef(T& word) noexcept : word_(&word) {}

    ISTHMUS_KERNEL_FUNCTION V load_relaxed() const noexcept { return load<Order::relaxed>(); }
    ISTHMUS_KERNEL_FUNCTION V load_acquire() const noexcept { return load<Order::acquire>(); }
    ISTHMUS_KERNEL_FUNCTION V load_seq_cst() const noexcept { return load<Order::seq_cst>(); }
    ISTHMUS_KERNEL_FUNCTION void store_relaxed(V value) const noexcept { store<Order::relaxed>(value); }
    ISTHMUS_KERNEL_FUNCTION void store_release(V value) const noexcept { store<Order::release>(value); }
    ISTHMUS_KERNEL_FUNCTION void store_seq_cst(V value) const noexcept { store<Order::seq_cst>(value); }

#define ISTHMUS_DETAIL_UPDATE(name, update, condition)                                    \
    ISTHMUS_KERNEL_FUNCTION V name##relaxed(V value) const noexcept requires(condition) { \
        return detail::update_word<Update::update, scope, Order::relaxed>(word_, value);  \
    }                                                                                     \
    ISTHMUS_KERNEL_FUNCTION V name##acq_rel(V value) const noexcept requires(condition) { \
        return detail::update_word<Update::update, scope, Order::acq_rel>(word_, value);  \
    }
    ISTHMUS_DETAIL_UPDATE(add_, add, (detail::grants_add<T, operations>))
    ISTHMUS_DETAIL_UPDATE(sub_, subtract, (detail::grants_add<T, operations>))
    ISTHMUS_DETAIL_UPDATE(min_, min, (detail::grants<T, operations, AtomicSet::min>))
    ISTHMUS_DETAIL_UPDATE(max_, max, (detail::grants<T, operations, AtomicSet::max>))
    ISTHMUS_DETAIL_UPDATE(and_, bit_and, (detail::grants<T, operations, AtomicSet::bit_and>))
    ISTHMUS_DETAIL_UPDATE(or_, bit_or, (detail::grants<T, operations, AtomicSet::bit_or>))
    ISTHMUS_DETAIL_UPDATE(xor_, bit_xor, (detail::grants<T, operations, AtomicSet::bit_xor>))
    ISTHMUS_DETAIL_UPDATE(exchange_, exchange, (detail::grants<T, operations, AtomicSet::exchange>))
#undef ISTHMUS_DETAIL_UPDATE

    // Stores `desired` if the word holds `expected`; otherwise writes the word's value to `expected`. Never fails
    // spuriously.
    ISTHMUS_KERNEL_FUNCTION bool compare_exchange_relaxed(V& expected, V desired) const noexcept
        requires(detail::grants<T, operations, AtomicSet::compare_exchange>) {
        return detail::compare_word<scope, Order::relaxed>(word_, expected, desired);
    }
    ISTHMUS_KERNEL_FUNCTION bool compare_exchange_acq_rel(V& expected, V desired) const noexcept
        requires(detail::grants<T, operations, AtomicSet::compare_exchange>) {
        return detail::compare_word<scope, Order::acq_rel>(word_, expected, desired);
    }

private:
    template <Order order>
    ISTHMUS_KERNEL_FUNCTION V load() const noexcept {
        return detail::load_word<scope, order>(word_);
    }
    template <Order order>
    ISTHMUS_KERNEL_FUNCTION void store(V value) const noexcept {
        static_assert(!std::is_const_v<T>, "isthmus: the word is const");
        detail::store_word<scope, order>(word_, value);
    }
    T* word_;
};

// For kernels whose words nothing else accesses meanwhile: lawful in all memory that the GPU can access (the CPU reads
// the words after the kernel has ended). AtomicRef needs a machine that allows concurrent access.
template <class T, AtomicSet operations = AtomicSet::all>
using GpuAtomicRef = AtomicRef<T, operations, AtomicScope::gpu>;

// A sequentially consistent fence at system scope (std::atomic_thread_fence, seq_cst): orders what this thread did
// before it with what it does after it.
ISTHMUS_KERNEL_FUNCTION void fence_seq_cst() noexcept {
#if defined(__CUDA_ARCH__)
    cuda::atomic_thread_fence(cuda::std::memory_order_seq_cst, cuda::thread_scope_system);
#else
    detail::host_fence<std::memory_order_seq_cst>();
#endif
}

}  // namespace v0
}  // namespace isthmus
