// SPDX-License-Identifier: Apache-2.0
// Atomic operations of each side: libcu++ in GPU code, the C++ library elsewhere. In kernel files, a simulated GPU
// whose link carries no atomics splits updates into load and store, as such a GPU does.
#pragma once

#include <isthmus/atomic_set.hpp>
#include <isthmus/detail/host_device.hpp>

#include <atomic>
#include <cstdint>
#include <type_traits>
#if defined(ISTHMUS_DETAIL_PLAYS_GPU)
#include <isthmus/detail/play_gpu.hpp>
#endif
#if defined(__CUDACC__)
#include <cuda/atomic>
#endif

namespace isthmus {
inline namespace v0 {
namespace detail {

enum class Order : std::uint8_t { relaxed, acquire, release, acq_rel, seq_cst };
// Operations that return the old value.
enum class Update : std::uint8_t { add, subtract, min, max, bit_and, bit_or, bit_xor, exchange };

constexpr std::memory_order host_order(Order order) noexcept {
    switch (order) {
        case Order::relaxed: return std::memory_order_relaxed;
        case Order::acquire: return std::memory_order_acquire;
        case Order::release: return std::memory_order_release;
        case Order::acq_rel: return std::memory_order_acq_rel;
        case Order::seq_cst: break;
    }
    return std::memory_order_seq_cst;
}

template <Update update, class T>
constexpr T updated(T old, T value) noexcept {
    if constexpr (update == Update::exchange) {
        return value;
    } else if constexpr (update == Update::min) {
        return value < old ? value : old;
    } else if constexpr (update == Update::max) {
        return old < value ? value : old;
    } else if constexpr (std::is_floating_point_v<T>) {
        return update == Update::add ? old + value : old - value;
    } else {
        using U = std::make_unsigned_t<T>;  // wraps
        const auto a = static_cast<U>(old), b = static_cast<U>(value);
        if constexpr (update == Update::add) return static_cast<T>(a + b);
        if constexpr (update == Update::subtract) return static_cast<T>(a - b);
        if constexpr (update == Update::bit_and) return static_cast<T>(a & b);
        if constexpr (update == Update::bit_or) return static_cast<T>(a | b);
        if constexpr (update == Update::bit_xor) return static_cast<T>(a ^ b);
    }
}

template <Update update, Order order, class T>
T update_on_host(T* word, T value) noexcept {
    constexpr std::memory_order how = host_order(order);
    const std::atomic_ref<T> ref(*word);
    if constexpr (update == Update::add) return ref.fetch_add(value, how);
    if constexpr (update == Update::subtract) return ref.fetch_sub(value, how);
    if constexpr (update == Update::exchange) return ref.exchange(value, how);
    if constexpr (update == Update::bit_and) return ref.fetch_and(value, how);
    if constexpr (update == Update::bit_or) return ref.fetch_or(value, how);
    if constexpr (update == Update::bit_xor) return ref.fetch_xor(value, how);
    if constexpr (update == Update::min || update == Update::max) {
        T old = ref.load(std::memory_order_relaxed);
        while (!ref.compare_exchange_weak(old, updated<update>(old, value), how, std::memory_order_relaxed)) {
        }
        return old;
    }
}

#if defined(ISTHMUS_DETAIL_PLAYS_GPU)
// The description of an update for the simulator; the numbers are those of AtomicOperation.
template <class T>
UpdateInfo described(Update update, const T* word) noexcept {
    constexpr bool is_float = std::is_floating_point_v<T>;
    constexpr std::uint32_t numbers[] = {is_float ? 10u : 0u, is_float ? 10u : 0u, 1, 2, 5, 6, 7, 8};
    return {word, numbers[static_cast<std::size_t>(update)], sizeof(T), std::is_signed_v<T> ? 1u : 0u};
}
inline bool in_two(const SimulatedGpu* gpu, const UpdateInfo& update) noexcept {
    return gpu->begin(&update) != 0;
}
// An update by a GPU whose link does not carry the operation: atomic among the GPU's threads, a load and a store for
// the CPU.
template <Update update, class T>
T update_in_two(const SimulatedGpu& gpu, T* word, T value) noexcept {
    const std::atomic_ref<T> ref(*word);
    const T old = ref.load();
    gpu.between();
    ref.store(updated<update>(old, value));
    gpu.end();
    return old;
}
template <class T>
bool compare_in_two(const SimulatedGpu& gpu, T* word, T& expected, T desired) noexcept {
    const std::atomic_ref<T> ref(*word);
    const T old = ref.load();
    gpu.between();
    const bool same = old == expected;
    if (same) ref.store(desired);
    gpu.end();
    if (!same) expected = old;
    return same;
}
#endif

#if defined(__CUDACC__)
__host__ __device__ constexpr cuda::std::memory_order device_order(Order order) noexcept {
    switch (order) {
        case Order::relaxed: return cuda::std::memory_order_relaxed;
        case Order::acquire: return cuda::std::memory_order_acquire;
        case Order::release: return cuda::std::memory_order_release;
        case Order::acq_rel: return cuda::std::memory_order_acq_rel;
        case Order::seq_cst: break;
    }
    return cuda::std::memory_order_seq_cst;
}
template <class T, AtomicScope scope>
using DeviceAtomic =
    cuda::atomic_ref<T, scope == AtomicScope::system ? cuda::thread_scope_system : cuda::thread_scope_device>;

template <Update update, AtomicScope scope, Order order, class T>
__device__ __forceinline__ T update_on_device(T* word, T value) noexcept {
    constexpr cuda::std::memory_order how = device_order(order);
    const DeviceAtomic<T, scope> ref(*word);
    if constexpr (update == Update::add) return ref.fetch_add(value, how);
    if constexpr (update == Update::subtract) return ref.fetch_sub(value, how);
    if constexpr (update == Update::min) return ref.fetch_min(value, how);
    if constexpr (update == Update::max) return ref.fetch_max(value, how);
    if constexpr (update == Update::bit_and) return ref.fetch_and(value, how);
    if constexpr (update == Update::bit_or) return ref.fetch_or(value, how);
    if constexpr (update == Update::bit_xor) return ref.fetch_xor(value, how);
    if constexpr (update == Update::exchange) return ref.exchange(value, how);
}
#endif

template <AtomicScope scope, Order order, class T>
ISTHMUS_KERNEL_FUNCTION T load_word(const T* word) noexcept {
    T* const plain = const_cast<T*>(word);  // a load changes nothing; std::atomic_ref of C++20 does not take const
#if defined(__CUDA_ARCH__)
    return DeviceAtomic<T, scope>(*plain).load(device_order(order));
#else
    return std::atomic_ref<T>(*plain).load(host_order(order));
#endif
}
template <AtomicScope scope, Order order, class T>
ISTHMUS_KERNEL_FUNCTION void store_word(T* word, T value) noexcept {
#if defined(__CUDA_ARCH__)
    DeviceAtomic<T, scope>(*word).store(value, device_order(order));
#else
    std::atomic_ref<T>(*word).store(value, host_order(order));
#endif
}
// Returns the old value.
template <Update update, AtomicScope scope, Order order, class T>
ISTHMUS_KERNEL_FUNCTION T update_word(T* word, T value) noexcept {
#if defined(__CUDA_ARCH__)
    return update_on_device<update, scope, order>(word, value);
#else
#if defined(ISTHMUS_DETAIL_PLAYS_GPU)
    if (const SimulatedGpu* const gpu = simulated_gpu; gpu != nullptr && in_two(gpu, described(update, word))) {
        return update_in_two<update>(*gpu, word, value);
    }
#endif
    return update_on_host<update, order>(word, value);
#endif
}
template <AtomicScope scope, Order order, class T>
ISTHMUS_KERNEL_FUNCTION bool compare_word(T* word, T& expected, T desired) noexcept {
    constexpr Order failed = order == Order::relaxed ? Order::relaxed : Order::acquire;
#if defined(__CUDA_ARCH__)
    return DeviceAtomic<T, scope>(*word).compare_exchange_strong(expected, desired, device_order(order),
                                                                 device_order(failed));
#else
#if defined(ISTHMUS_DETAIL_PLAYS_GPU)
    constexpr std::uint32_t compare_exchange = 9;
    if (const SimulatedGpu* const gpu = simulated_gpu;
        gpu != nullptr && in_two(gpu, {word, compare_exchange, sizeof(T), std::is_signed_v<T> ? 1u : 0u})) {
        return compare_in_two(*gpu, word, expected, desired);
    }
#endif
    return std::atomic_ref<T>(*word).compare_exchange_strong(expected, desired, host_order(order), host_order(failed));
#endif
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
