// SPDX-License-Identifier: Apache-2.0
// Closes memory to CPU threads and opens it to GPU workers: with protection keys where the processor has them, else
// by page protection while no GPU work runs. Turns a worker's fault into a code, and explains a CPU thread's fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace isthmus::sim {

enum class Why : std::uint8_t { device_memory, device_work_unfinished, no_access };

class Protection {
public:
    // ISTHMUS_SIM_PROTECTION=keys, pages or off overrides what is found.
    explicit Protection(int devices);

    // Does a forked child have the memory? Observed on driver 580: it reads what its parent pinned, and touching its
    // parent's managed memory is SIGSEGV.
    enum class InChild : std::uint8_t { missing, copied };
    // Fresh zeroed memory, open to all; nullptr: the system has none. Nobody can touch what lies just before and behind
    // it, nor just before and behind what reserve() and reserve_aligned() give.
    void* map(std::size_t bytes, std::size_t& mapped_bytes, InChild in_child = InChild::missing);
    // An address range that nobody can touch: the GPU's own name for memory that lies elsewhere.
    void* reserve(std::size_t bytes, std::size_t& mapped_bytes);
    void unmap(void* pointer, std::size_t mapped_bytes);

    // A range that nobody can touch, on a multiple of `alignment`, at `hint` if that is free. unmap() gives it back.
    void* reserve_aligned(std::size_t bytes, std::size_t alignment, void* hint);
    // Puts bytes of a file into such a range, closed to all; false: the system refuses.
    bool map_file(void* at, std::size_t bytes, int file, std::size_t offset);
    void unmap_file(void* at, std::size_t bytes);  // leaves the range reserved
    // Whom a mapped file's bytes are open to: the CPU and all devices; else one device's key (-1: nobody).
    struct Opening {
        bool host = false;
        int device = -1;
        bool writable = false;
    };
    void open_file(void* at, std::size_t bytes, int owner, const Opening& to);

    void close(void* pointer, std::size_t mapped_bytes, int device, Why why);
    void open(void* pointer, std::size_t mapped_bytes);

    // Around GPU work, on the thread that does it. `devices`: whose memory it may reach, as bits.
    void gpu_work_begins(std::uint64_t devices);
    void gpu_work_ends();
    void thread_begins();  // a new thread has its creator's keys

    // Installs the handler for SIGSEGV and SIGBUS, once per process. Handlers installed later hide GPU faults.
    static void install_handler();
    // Runs work on the calling thread; false: it touched what nobody may touch, at `fault`. Destructors in between
    // do not run.
    static bool run_guarded(const std::function<void()>& work, std::uintptr_t& fault);

    const char* means() const noexcept;

private:
    struct Closed {
        std::size_t bytes;
        int access;  // while GPU work runs
    };
    enum class Means : std::uint8_t { keys, pages, off };
    Means means_ = Means::off;
    std::vector<int> keys_;  // by device
    std::mutex mutex_;       // the rest: page protection
    std::map<void*, Closed> closed_;
    int gpu_work_ = 0;
};

}  // namespace isthmus::sim
