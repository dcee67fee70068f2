// SPDX-License-Identifier: Apache-2.0
// Closes memory to CPU threads and opens it to GPU workers: with protection keys where the processor has them,
// otherwise by page protection while no GPU work runs. Turns a worker's fault into a code, and explains a CPU thread's
// fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace isthmus::sim {

enum class Why : std::uint8_t { device_memory, device_work_unfinished, no_access, released };

class Protection {
public:
    // ISTHMUS_SIM_PROTECTION=keys, pages or off overrides the detected method.
    explicit Protection(int devices);

    // Whether a forked child has the memory. Observed on driver 580: a child reads its parent's pinned memory, and
    // access to its parent's managed memory is SIGSEGV.
    enum class InChild : std::uint8_t { missing, copied };
    // Maps zeroed memory, open to all; nullptr: the system has none. The guards directly before and after it are
    // inaccessible, as for reserve() and reserve_aligned().
    void* map(std::size_t bytes, std::size_t& mapped_bytes, InChild in_child = InChild::missing);
    // Reserves an inaccessible address range: the GPU's address of memory that is mapped elsewhere.
    void* reserve(std::size_t bytes, std::size_t& mapped_bytes);
    void unmap(void* pointer, std::size_t mapped_bytes);

    // Reserves an inaccessible range at a multiple of `alignment`, at `hint` if that is free. unmap() releases it.
    void* reserve_aligned(std::size_t bytes, std::size_t alignment, void* hint);
    // Maps bytes of a file into such a range, closed to all; false: the system refuses.
    bool map_file(void* at, std::size_t bytes, int file, std::size_t offset);
    void unmap_file(void* at, std::size_t bytes);  // the range stays reserved
    // The access to a mapped file: `host`: the CPU and all devices; otherwise only one device's key (-1: none).
    struct Opening {
        bool host = false;
        int device = -1;
        bool writable = false;
    };
    void open_file(void* at, std::size_t bytes, int owner, const Opening& to);

    // To the CPU; GPU work may access it.
    void close(void* pointer, std::size_t mapped_bytes, int device, Why why);
    // From all: memory that was released and that its program keeps. GPU work costs nothing more beside it.
    void withdraw(void* pointer, std::size_t mapped_bytes, int device);
    void open(void* pointer, std::size_t mapped_bytes);

    // Surround GPU work, on its thread. `devices`: one bit for each device whose memory it may access.
    void gpu_work_begins(std::uint64_t devices);
    void gpu_work_ends();
    void thread_begins();  // a new thread has the rights of its creator

    // Installs the handler for SIGSEGV and SIGBUS, once per process. Handlers installed later hide GPU faults.
    static void install_handler();
    // Runs work on the calling thread; false: it accessed closed memory at `fault`. Destructors between that access and
    // this function do not run.
    static bool run_guarded(const std::function<void()>& work, std::uintptr_t& fault);

    const char* means() const noexcept;

private:
    struct Closed {
        std::size_t bytes;
        int access;  // rights while GPU work runs
    };
    enum class Means : std::uint8_t { keys, pages, off };
    Means means_ = Means::off;
    std::vector<int> keys_;  // by device
    std::mutex mutex_;       // guards the members below: page protection
    std::map<void*, Closed> closed_;
    int gpu_work_ = 0;
};

}  // namespace isthmus::sim
