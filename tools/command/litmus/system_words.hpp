// SPDX-License-Identifier: Apache-2.0
// Words that CPU and GPU use at the same time, with the order and the scope of each access. The trials are made of
// them. Except for deliberate errors they are AtomicRef, so that the trials test what programs use.
#pragma once

#include <isthmus/atomic_ref.hpp>
#include <isthmus/detail/atomic_word.hpp>
#include <isthmus/detail/host_device.hpp>

#include <cstdint>

#if defined(__SSE2__) && !defined(__CUDACC__)
#include <emmintrin.h>
#endif

namespace isthmus::tools::litmus {

using Word = std::uint32_t;

// How one side accesses words. `ordered`: with the orders of its role; otherwise all accesses are relaxed. `narrow`:
// the GPU uses gpu scope instead of system scope, which is a deliberate error.
struct Access {
    bool ordered = true;
    bool narrow = false;
};

ISTHMUS_KERNEL_FUNCTION Word load_relaxed(Word* word, Access how) {
    if (how.narrow) return detail::load_word<AtomicScope::gpu, detail::Order::relaxed>(word);
    return AtomicRef<Word>(*word).load_relaxed();
}
ISTHMUS_KERNEL_FUNCTION Word load_acquire(Word* word, Access how) {
    if (!how.ordered) return load_relaxed(word, how);
    if (how.narrow) return detail::load_word<AtomicScope::gpu, detail::Order::acquire>(word);
    return AtomicRef<Word>(*word).load_acquire();
}
ISTHMUS_KERNEL_FUNCTION void store_relaxed(Word* word, Word value, Access how) {
    if (how.narrow) return detail::store_word<AtomicScope::gpu, detail::Order::relaxed>(word, value);
    AtomicRef<Word>(*word).store_relaxed(value);
}
ISTHMUS_KERNEL_FUNCTION void store_release(Word* word, Word value, Access how) {
    if (!how.ordered) return store_relaxed(word, value, how);
    if (how.narrow) return detail::store_word<AtomicScope::gpu, detail::Order::release>(word, value);
    AtomicRef<Word>(*word).store_release(value);
}
ISTHMUS_KERNEL_FUNCTION void fence(Access how) {
    if (!how.ordered) return;
#if defined(__CUDA_ARCH__)
    if (how.narrow) return cuda::atomic_thread_fence(cuda::std::memory_order_seq_cst, cuda::thread_scope_device);
#endif
    fence_seq_cst();
}
ISTHMUS_KERNEL_FUNCTION void add_one(Word* word, Access how) {
    if (!how.ordered) return store_relaxed(word, load_relaxed(word, how) + 1, how);
    if (how.narrow) {
        detail::update_word<detail::Update::add, AtomicScope::gpu, detail::Order::relaxed>(word, Word{1});
    } else {
        AtomicRef<Word>(*word).add_relaxed(1);
    }
}
// A load that may be answered from a cache that is not coherent.
ISTHMUS_KERNEL_FUNCTION Word load_cached(Word* word) {
#if defined(__CUDA_ARCH__)
    Word value;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(word)) : "memory");
    return value;
#else
    return load_relaxed(word, {});
#endif
}

// 16 bytes, as two values of 8. Whole: one access, which every GPU since Volta and every CPU with AVX or LSE2 makes in
// one piece (aligned to 16). Not whole: two accesses, of which another agent may see one without the other.
struct Wide {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};

ISTHMUS_KERNEL_FUNCTION Wide load_wide(Word* at, bool whole) {
    Wide out;
#if defined(__CUDA_ARCH__)
    const auto address = __cvta_generic_to_global(at);
    if (whole) {
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 3)
        asm volatile("{ .reg .b128 wide; ld.relaxed.sys.global.b128 wide, [%2]; mov.b128 {%0, %1}, wide; }"
                     : "=l"(out.low), "=l"(out.high)
                     : "l"(address)
                     : "memory");
#else
        asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(out.low), "=l"(out.high)
                     : "l"(address)
                     : "memory");
#endif
    } else {
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(out.low) : "l"(address) : "memory");
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(out.high) : "l"(address + 8) : "memory");
    }
#else
    const auto* const halves = reinterpret_cast<const volatile std::uint64_t*>(at);
#if defined(__SSE2__) && !defined(__CUDACC__)
    if (whole) {
        __m128i wide;
        asm volatile("movdqa %1, %0" : "=x"(wide) : "m"(*reinterpret_cast<const __m128i*>(at)) : "memory");
        alignas(16) std::uint64_t both[2];
        _mm_store_si128(reinterpret_cast<__m128i*>(both), wide);
        return {both[0], both[1]};
    }
#elif defined(__aarch64__) && !defined(__CUDACC__)
    if (whole) {
        asm volatile("ldp %0, %1, [%2]" : "=r"(out.low), "=r"(out.high) : "r"(at) : "memory");
        return out;
    }
#endif
    (void)whole;
    out.low = halves[0];
    out.high = halves[1];
#endif
    return out;
}

ISTHMUS_KERNEL_FUNCTION void store_wide(Word* at, Wide value, bool whole) {
#if defined(__CUDA_ARCH__)
    const auto address = __cvta_generic_to_global(at);
    if (whole) {
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 3)
        asm volatile(
            "{ .reg .b128 wide; mov.b128 wide, {%0, %1}; st.relaxed.sys.global.b128 [%2], wide; }" ::"l"(value.low),
            "l"(value.high), "l"(address)
            : "memory");
#else
        asm volatile("st.volatile.global.v2.u64 [%2], {%0, %1};" ::"l"(value.low), "l"(value.high), "l"(address)
                     : "memory");
#endif
    } else {
        asm volatile("st.relaxed.sys.global.u64 [%1], %0;" ::"l"(value.low), "l"(address) : "memory");
        asm volatile("st.relaxed.sys.global.u64 [%1], %0;" ::"l"(value.high), "l"(address + 8) : "memory");
    }
#else
    auto* const halves = reinterpret_cast<volatile std::uint64_t*>(at);
#if defined(__SSE2__) && !defined(__CUDACC__)
    if (whole) {
        const __m128i wide = _mm_set_epi64x(static_cast<long long>(value.high), static_cast<long long>(value.low));
        asm volatile("movdqa %1, %0" : "=m"(*reinterpret_cast<__m128i*>(at)) : "x"(wide) : "memory");
        return;
    }
#elif defined(__aarch64__) && !defined(__CUDACC__)
    if (whole) {
        asm volatile("stp %0, %1, [%2]" ::"r"(value.low), "r"(value.high), "r"(at) : "memory");
        return;
    }
#endif
    (void)whole;
    halves[0] = value.low;
    halves[1] = value.high;
#endif
}

}  // namespace isthmus::tools::litmus
