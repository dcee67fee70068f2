// SPDX-License-Identifier: Apache-2.0
// multimem_...(): kernel functions over one word in the memory of every device of a multicast object (multicast.hpp). A
// load combines the words of all devices; a store or an update goes to each of them. Their addresses are those of a
// Mapping of the object, which a kernel takes as a number: multimem_at<float>(mapping.address(), i).
//
// GPU: the multimem instructions (PTX ISA 8.1), relaxed, at system scope. They need compute capability 9.0: a kernel
// that uses them for an older architecture does not compile. Each word is accessed in one piece; the words of several
// devices are not, and no order among devices is promised. Between an access to the same memory at its own address and
// one of these stands an alias_fence() and whatever orders the devices. CPU: a thread that plays a GPU reaches the
// memory of every device, also of what other processes have bound, and faults where the GPU would. Elsewhere no
// multicast object exists, and an address stands for one memory.
#pragma once

#include <isthmus/detail/atomic_word.hpp>
#include <isthmus/detail/host_device.hpp>

#include <cstdint>
#include <type_traits>

namespace isthmus {
inline namespace v0 {
namespace detail {

template <class T>
inline constexpr bool multimem_integer =
    std::is_integral_v<T> && !std::is_same_v<T, bool> && (sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
inline constexpr bool multimem_word = multimem_integer<T> || std::is_same_v<T, float> || std::is_same_v<T, double>;
template <class T>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr bool multimem_compiles = false;
#else
inline constexpr bool multimem_compiles = true;
#endif

// EMIT(operation, type, register) for this update of a T, in the words of PTX.
#define ISTHMUS_DETAIL_MULTIMEM_SIZED(EMIT, operation, type4, type8) \
    if constexpr (sizeof(T) == 4) {                                  \
        EMIT(operation, type4, "r");                                 \
    } else {                                                         \
        EMIT(operation, type8, "l");                                 \
    }
#define ISTHMUS_DETAIL_MULTIMEM_ORDERED(EMIT, operation)             \
    if constexpr (std::is_signed_v<T>) {                             \
        ISTHMUS_DETAIL_MULTIMEM_SIZED(EMIT, operation, "s32", "s64") \
    } else {                                                         \
        ISTHMUS_DETAIL_MULTIMEM_SIZED(EMIT, operation, "u32", "u64") \
    }
#define ISTHMUS_DETAIL_MULTIMEM(EMIT)                            \
    if constexpr (std::is_same_v<T, float>) {                    \
        EMIT("add", "f32", "f");                                 \
    } else if constexpr (std::is_same_v<T, double>) {            \
        EMIT("add", "f64", "d");                                 \
    } else if constexpr (update == Update::add) {                \
        ISTHMUS_DETAIL_MULTIMEM_SIZED(EMIT, "add", "u32", "u64") \
    } else if constexpr (update == Update::min) {                \
        ISTHMUS_DETAIL_MULTIMEM_ORDERED(EMIT, "min")             \
    } else if constexpr (update == Update::max) {                \
        ISTHMUS_DETAIL_MULTIMEM_ORDERED(EMIT, "max")             \
    } else if constexpr (update == Update::bit_and) {            \
        ISTHMUS_DETAIL_MULTIMEM_SIZED(EMIT, "and", "b32", "b64") \
    } else if constexpr (update == Update::bit_or) {             \
        ISTHMUS_DETAIL_MULTIMEM_SIZED(EMIT, "or", "b32", "b64")  \
    } else {                                                     \
        ISTHMUS_DETAIL_MULTIMEM_SIZED(EMIT, "xor", "b32", "b64") \
    }

#if !defined(__CUDA_ARCH__)
// Calls use(word) for the word of every device.
template <class T, class Use>
ISTHMUS_KERNEL_FUNCTION void for_each_replica(T* word, bool writes, Use use) {
#if defined(ISTHMUS_DETAIL_PLAYS_GPU)
    if (const SimulatedGpu* const gpu = simulated_gpu) {
        constexpr std::uint32_t most = 64;  // devices of an object
        void* replicas[most];
        MultimemRequest request{word, replicas, sizeof(T), writes ? 1u : 0u, most, -1};
        const UpdateInfo access{&request, multimem_access, sizeof request, 0};
        (void)gpu->begin(&access);
        if (request.count < 0) __builtin_trap();  // a simulator that knows no multimem access
        for (std::int32_t at = 0; at < request.count; ++at) use(static_cast<T*>(replicas[at]));
        return;
    }
#endif
    (void)writes;
    use(word);
}
#endif

template <Update update, class T>
ISTHMUS_KERNEL_FUNCTION T multimem_load(const T* word) {
    static_assert(multimem_compiles<T>,
                  "multimem instructions need compute capability 9.0: compile this kernel for "
                  "architectures from 90 on");
    static_assert(update == Update::add ? multimem_word<T> : multimem_integer<T>,
                  "a multimem load adds words of 4 or 8 bytes; its other operations take integers");
#if defined(__CUDA_ARCH__)
    T value{};
#define ISTHMUS_DETAIL_EMIT(operation, type, letter)                                      \
    asm volatile("multimem.ld_reduce.relaxed.sys.global." operation "." type " %0, [%1];" \
                 : "=" letter(value)                                                      \
                 : "l"(__cvta_generic_to_global(word))                                    \
                 : "memory")
    ISTHMUS_DETAIL_MULTIMEM(ISTHMUS_DETAIL_EMIT)
#undef ISTHMUS_DETAIL_EMIT
    return value;
#else
    T value{};
    bool first = true;
    for_each_replica(const_cast<T*>(word), false, [&](T* replica) {
        const T one = std::atomic_ref<T>(*replica).load(std::memory_order_relaxed);
        value = first ? one : updated<update>(value, one);
        first = false;
    });
    return value;
#endif
}

template <Update update, class T>
ISTHMUS_KERNEL_FUNCTION void multimem_update(T* word, T value) {
    static_assert(multimem_compiles<T>,
                  "multimem instructions need compute capability 9.0: compile this kernel for "
                  "architectures from 90 on");
    static_assert(update == Update::add ? multimem_word<T> : multimem_integer<T>,
                  "a multimem update adds words of 4 or 8 bytes; its other operations take integers");
#if defined(__CUDA_ARCH__)
#define ISTHMUS_DETAIL_EMIT(operation, type, letter)                   \
    asm volatile("multimem.red.relaxed.sys.global." operation "." type \
                 " [%0], %1;" ::"l"(__cvta_generic_to_global(word)),   \
                 letter(value)                                         \
                 : "memory")
    ISTHMUS_DETAIL_MULTIMEM(ISTHMUS_DETAIL_EMIT)
#undef ISTHMUS_DETAIL_EMIT
#else
    for_each_replica(word, true, [&](T* replica) { (void)update_on_host<update, Order::relaxed>(replica, value); });
#endif
}
#undef ISTHMUS_DETAIL_MULTIMEM
#undef ISTHMUS_DETAIL_MULTIMEM_ORDERED
#undef ISTHMUS_DETAIL_MULTIMEM_SIZED

}  // namespace detail

// Word `index` of a mapping that begins at `address`.
template <class T>
ISTHMUS_KERNEL_FUNCTION T* multimem_at(std::uint64_t address, std::uint64_t index) {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address)) + index;
}

// The sum, least, greatest, ... of the words of all devices. Sums: integers, which wrap, float and double, whose order
// of addition is the hardware's; the others: integers. Of 4 or 8 bytes, and aligned to them.
template <class T>
ISTHMUS_KERNEL_FUNCTION T multimem_load_add(const T* word) {
    return detail::multimem_load<detail::Update::add>(word);
}
template <class T>
ISTHMUS_KERNEL_FUNCTION T multimem_load_min(const T* word) {
    return detail::multimem_load<detail::Update::min>(word);
}
template <class T>
ISTHMUS_KERNEL_FUNCTION T multimem_load_max(const T* word) {
    return detail::multimem_load<detail::Update::max>(word);
}
template <class T>
ISTHMUS_KERNEL_FUNCTION T multimem_load_and(const T* word) {
    return detail::multimem_load<detail::Update::bit_and>(word);
}
template <class T>
ISTHMUS_KERNEL_FUNCTION T multimem_load_or(const T* word) {
    return detail::multimem_load<detail::Update::bit_or>(word);
}
template <class T>
ISTHMUS_KERNEL_FUNCTION T multimem_load_xor(const T* word) {
    return detail::multimem_load<detail::Update::bit_xor>(word);
}

// Updates the word of every device; the old values are not returned. Types as for the loads.
template <class T>
ISTHMUS_KERNEL_FUNCTION void multimem_add(T* word, std::type_identity_t<T> value) {
    detail::multimem_update<detail::Update::add>(word, value);
}
template <class T>
ISTHMUS_KERNEL_FUNCTION void multimem_min(T* word, std::type_identity_t<T> value) {
    detail::multimem_update<detail::Update::min>(word, value);
}
template <class T>
ISTHMUS_KERNEL_FUNCTION void multimem_max(T* word, std::type_identity_t<T> value) {
    detail::multimem_update<detail::Update::max>(word, value);
}
template <class T>
ISTHMUS_KERNEL_FUNCTION void multimem_and(T* word, std::type_identity_t<T> value) {
    detail::multimem_update<detail::Update::bit_and>(word, value);
}
template <class T>
ISTHMUS_KERNEL_FUNCTION void multimem_or(T* word, std::type_identity_t<T> value) {
    detail::multimem_update<detail::Update::bit_or>(word, value);
}
template <class T>
ISTHMUS_KERNEL_FUNCTION void multimem_xor(T* word, std::type_identity_t<T> value) {
    detail::multimem_update<detail::Update::bit_xor>(word, value);
}

// Stores to the word of every device.
template <class T>
ISTHMUS_KERNEL_FUNCTION void multimem_store(T* word, std::type_identity_t<T> value) {
    static_assert(detail::multimem_compiles<T>,
                  "multimem instructions need compute capability 9.0: compile this kernel "
                  "for architectures from 90 on");
    static_assert(detail::multimem_word<T>, "a multimem store takes words of 4 or 8 bytes");
#if defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<T, float>) {
        asm volatile("multimem.st.relaxed.sys.global.f32 [%0], %1;" ::"l"(__cvta_generic_to_global(word)), "f"(value)
                     : "memory");
    } else if constexpr (std::is_same_v<T, double>) {
        asm volatile("multimem.st.relaxed.sys.global.f64 [%0], %1;" ::"l"(__cvta_generic_to_global(word)), "d"(value)
                     : "memory");
    } else if constexpr (sizeof(T) == 4) {
        asm volatile("multimem.st.relaxed.sys.global.b32 [%0], %1;" ::"l"(__cvta_generic_to_global(word)), "r"(value)
                     : "memory");
    } else {
        asm volatile("multimem.st.relaxed.sys.global.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(word)), "l"(value)
                     : "memory");
    }
#else
    detail::for_each_replica(word, true,
                             [&](T* replica) { std::atomic_ref<T>(*replica).store(value, std::memory_order_relaxed); });
#endif
}

}  // namespace v0
}  // namespace isthmus
