// SPDX-License-Identifier: Apache-2.0
// SystemAtomics: aligned loads and stores of words that CPU and GPU share; each names its memory order. The protocols
// beside this file use this policy in production; tests run the same templates under a model of weak memory
// (tests/protocols).
#pragma once

#include <isthmus/detail/host_device.hpp>

#include <cstdint>
#include <thread>

namespace isthmus {
inline namespace v0 {
namespace protocol {

// Loads and stores only, at system scope: these work between CPU and GPU on every machine, also where the link carries
// no read-modify-write. A policy has these members. Cell is the location of a word, and `cell + n` the n-th word behind
// it. A stamped word is 64 bits, aligned, loaded and stored indivisibly; stamped_cell(place, n) is the n-th from
// `place`.
struct SystemAtomics {
    using Cell = std::uint32_t*;
    ISTHMUS_KERNEL_FUNCTION static Cell stamped_cell(Cell place, std::uint64_t at) noexcept { return place + 2 * at; }

    ISTHMUS_KERNEL_FUNCTION std::uint32_t load_acquire(Cell cell) const noexcept {
#if defined(__CUDA_ARCH__)
        std::uint32_t value;
        asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(cell) : "memory");
        return value;
#else
        return __atomic_load_n(cell, __ATOMIC_ACQUIRE);
#endif
    }
    ISTHMUS_KERNEL_FUNCTION std::uint32_t load_relaxed(Cell cell) const noexcept {
#if defined(__CUDA_ARCH__)
        std::uint32_t value;
        asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(value) : "l"(cell));
        return value;
#else
        return __atomic_load_n(cell, __ATOMIC_RELAXED);
#endif
    }
    ISTHMUS_KERNEL_FUNCTION void store_release(Cell cell, std::uint32_t value) const noexcept {
#if defined(__CUDA_ARCH__)
        asm volatile("st.release.sys.u32 [%0], %1;" : : "l"(cell), "r"(value) : "memory");
#else
        __atomic_store_n(cell, value, __ATOMIC_RELEASE);
#endif
    }
    ISTHMUS_KERNEL_FUNCTION void store_relaxed(Cell cell, std::uint32_t value) const noexcept {
#if defined(__CUDA_ARCH__)
        asm volatile("st.relaxed.sys.u32 [%0], %1;" : : "l"(cell), "r"(value));
#else
        __atomic_store_n(cell, value, __ATOMIC_RELAXED);
#endif
    }

    ISTHMUS_KERNEL_FUNCTION std::uint64_t load_stamped_acquire(Cell cell) const noexcept {
#if defined(__CUDA_ARCH__)
        std::uint64_t value;
        asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(cell) : "memory");
        return value;
#else
        return __atomic_load_n(reinterpret_cast<Stamped*>(cell), __ATOMIC_ACQUIRE);
#endif
    }
    ISTHMUS_KERNEL_FUNCTION std::uint64_t load_stamped_relaxed(Cell cell) const noexcept {
#if defined(__CUDA_ARCH__)
        std::uint64_t value;
        asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(cell));
        return value;
#else
        return __atomic_load_n(reinterpret_cast<Stamped*>(cell), __ATOMIC_RELAXED);
#endif
    }
    // Two adjacent stamped words, the first on a 16-byte boundary. Each word is indivisible, the pair is not. On a GPU
    // this is one access, because a thread's accesses over a link run one after the other.
    ISTHMUS_KERNEL_FUNCTION void load_stamped_pair_acquire(Cell first, std::uint64_t (&values)[2]) const noexcept {
#if defined(__CUDA_ARCH__)
        asm volatile("ld.acquire.sys.v2.u64 {%0, %1}, [%2];"
                     : "=l"(values[0]), "=l"(values[1])
                     : "l"(first)
                     : "memory");
#else
        values[0] = load_stamped_acquire(first);
        values[1] = load_stamped_acquire(stamped_cell(first, 1));
#endif
    }
    ISTHMUS_KERNEL_FUNCTION void load_stamped_pair_relaxed(Cell first, std::uint64_t (&values)[2]) const noexcept {
#if defined(__CUDA_ARCH__)
        asm volatile("ld.relaxed.sys.v2.u64 {%0, %1}, [%2];" : "=l"(values[0]), "=l"(values[1]) : "l"(first));
#else
        values[0] = load_stamped_relaxed(first);
        values[1] = load_stamped_relaxed(stamped_cell(first, 1));
#endif
    }
    ISTHMUS_KERNEL_FUNCTION void store_stamped_release(Cell cell, std::uint64_t value) const noexcept {
#if defined(__CUDA_ARCH__)
        asm volatile("st.release.sys.u64 [%0], %1;" : : "l"(cell), "l"(value) : "memory");
#else
        __atomic_store_n(reinterpret_cast<Stamped*>(cell), value, __ATOMIC_RELEASE);
#endif
    }
    ISTHMUS_KERNEL_FUNCTION void store_stamped_relaxed(Cell cell, std::uint64_t value) const noexcept {
#if defined(__CUDA_ARCH__)
        asm volatile("st.relaxed.sys.u64 [%0], %1;" : : "l"(cell), "l"(value));
#else
        __atomic_store_n(reinterpret_cast<Stamped*>(cell), value, __ATOMIC_RELAXED);
#endif
    }

    // Polls of a ring between two polls of the stop command; polling the command costs one more round trip over the
    // link.
    static constexpr std::uint32_t looks_between_commands = 16;

    // Pause between two polls of a word that the other side has not changed yet; `looks` is the number of polls so far.
    // On a GPU the pause leaves the other warps and the link free. On the CPU it yields the core after a while, because
    // there may be no other core; the yield is a system call, and comes only after the time that an answer over a link
    // takes.
    ISTHMUS_KERNEL_FUNCTION void pause(std::uint32_t looks) const noexcept {
#if defined(__CUDA_ARCH__)
        if (looks > 64) __nanosleep(100);
#else
        if (looks > 512) {
            std::this_thread::yield();
        } else if (looks > 64) {
            relax();
        }
#endif
    }

    // Leaves execution resources to the core's other hardware thread: 5 to 70 ns.
    static void relax() noexcept {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("isb");
#endif
    }

private:
    using Stamped [[gnu::may_alias]] = std::uint64_t;
};

}  // namespace protocol
}  // namespace v0
}  // namespace isthmus
