// SystemAtomics: aligned loads and stores of words that CPU and GPU see of each other, each with its order in its name.
// The policy with which the protocols beside this file run for real; tests run the same templates under a model of weak
// memory (tests/protocols).
#pragma once

#include <isthmus/detail/host_device.hpp>

#include <cstdint>
#include <thread>

namespace isthmus::inline v0::protocol {

// Loads and stores only, at system scope: the one thing that works between CPU and GPU on every machine, also where the
// link carries no read-modify-write. A policy has these members; Cell is where a word lies, and `cell + n` is the n-th
// word behind it. A stamped word is 64 bits, aligned, which come and go in one piece; stamped_cell(place, n) is the
// n-th from a place on.
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
    // Two that follow each other, the first of them on a boundary of 16 bytes; each comes in one piece, not both. On a
    // GPU one access: those of a thread to a memory behind a link go over it one after the other.
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

    // How many looks at a ring pass before the command to stop is looked at: one more round trip over the link.
    static constexpr std::uint32_t looks_between_commands = 16;

    // Between two looks at a word that the other side has not changed yet; `looks` so far. On a GPU it keeps the other
    // warps and the link free; on the CPU it gives the core away after a while, for there may be no other: a system
    // call, and so not within the time that an answer over a link takes.
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

    // Leaves the core's other thread the room that looking would take: 5 to 70 ns.
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

}  // namespace isthmus::inline v0::protocol
