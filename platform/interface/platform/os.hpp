// SPDX-License-Identifier: Apache-2.0
// The operating-system layer: pages, NUMA, limits, dlopen. All requests to the system go through SystemCalls, so that
// tests can replace them.
#pragma once

#include <isthmus/facts.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::platform::os {

// System calls, each with the semantics of its namesake (−1 and errno). real() calls the system.
struct SystemCalls {
    void* (*mmap)(void* address, std::size_t bytes, int protection, int flags, int fd, long offset);
    int (*munmap)(void* address, std::size_t bytes);
    int (*madvise)(void* address, std::size_t bytes, int advice);
    int (*mlock)(const void* address, std::size_t bytes);
    int (*munlock)(const void* address, std::size_t bytes);
    long (*mbind)(void* address, unsigned long bytes, int mode, const unsigned long* mask, unsigned long max_node,
                  unsigned flags);
    long (*move_pages)(int pid, unsigned long count, void** pages, const int* nodes, int* status, int flags);
    long (*get_mempolicy_allowed)(unsigned long* mask, unsigned long max_node);
    int (*current_node)();             // of the CPU that runs the caller; -1: unknown
    std::size_t (*page_size_bytes)();  // usually 4 KiB or 64 KiB
    static const SystemCalls& real() noexcept;
};

std::size_t page_size_bytes() noexcept;

// Facts about this machine from /proc and /sys; never fails (absent facts keep their default).
MachineFacts machine_facts();

// Facts about the PCI device with this bus id (function 0); nothing if the system does not list it. Reads six files of
// /sys; never fails.
std::optional<PciPlace> pci_place(int domain, int bus, int device);

// Current ordinary host memory. Available: the smaller of /proc/meminfo's figure without nodes that have no CPUs
// (memory of GPUs), and what the memory cgroup and its ancestors leave. 0 and 0 if the system does not say.
struct HostMemory {
    std::uint64_t total_bytes = 0;
    std::uint64_t available_bytes = 0;
    bool cgroup_decides = false;  // available_bytes is what a memory cgroup leaves
};
HostMemory host_memory();
// Only total_bytes, within the limit that machine_facts() found (0: none). Reads no usage, for which the system may
// have to gather counts of every CPU.
std::uint64_t host_total_bytes(std::uint64_t limit_bytes);

// The system's facts about existing memory, over all of [address, address + bytes).
struct MappingFacts {
    bool known = false;           // false: the system does not say, and the other fields mean nothing
    bool mapped = false;          // every byte is mapped
    bool readable = false;        // every byte may be read
    bool writable = false;        // every byte may be written
    bool driver_mapping = false;  // some of it is a driver's mapping (VM_IO, VM_PFNMAP): no pages that could be pinned
    bool device_mapping = false;  // and not the GPU driver's, whose pinned memory has the same flags
};
// Reads /proc/self/smaps once: about 0.1 ms to milliseconds, growing with the process's mappings. Never fails.
MappingFacts mapping_facts(const void* address, std::size_t bytes);

// Threads that a caller lends for a large task: the library starts none.
struct Workers {
    unsigned count = 1;
    // Calls task(0) … task(count - 1), each once, on any threads; returns when all have returned. Empty: the calling
    // thread does everything.
    std::function<void(unsigned count, const std::function<void(unsigned)>& task)> run;
};

// Page-aligned host memory with placement; unmaps on destruction. Movable. A requested place (near_device, node,
// interleaved) touches every page, because only existing pages can be verified. Without `strict`, unmet wishes are
// stated in report(); with it, they are errors:
//   not_permitted (mbind or cpuset forbids), unsupported (no NUMA calls, node without memory, no huge pages),
//   invalid_argument (no such node, 0 bytes), system_limit (RLIMIT_MEMLOCK), unverified (move_pages forbidden).
// Large mappings are touched by `touchers` together; pages placed by first touch (local, or anywhere) by the caller
// alone. `calls` must outlive the pages. `alignment`: a power of two, at most a huge page where huge pages are asked
// for.
class HostPages {
public:
    static Result<HostPages> allocate(std::size_t bytes, const HostPlacement& placement, int near_node,
                                      const MachineFacts& machine, const SystemCalls& calls = SystemCalls::real(),
                                      const Workers& touchers = {}, std::size_t alignment = 1);
    HostPages() = default;
    HostPages(HostPages&& other) noexcept;
    HostPages& operator=(HostPages&& other) noexcept;
    ~HostPages();

    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }  // as requested; the mapping is rounded up to pages
    const PlacementReport& report() const noexcept { return report_; }

    // Verifies the pages' places again and renews report(): registering memory with a driver may have moved it and, if
    // the GPU uses the CPU's page tables, has not locked it. Strict placement: an Error of the kinds above; the pages
    // stay as they are. Not thread-safe.
    Result<void> verify_again();

private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t mapped_bytes_ = 0;
    PlacementReport report_;
    struct Wish {
        std::vector<int> nodes;          // where pages may lie; empty: not verified
        PlacementReport before_looking;  // what was known before verifying
        bool strict = false;
    };
    Wish wish_;
    const SystemCalls* calls_ = nullptr;
};

// A shared library opened by name. Never closed: a loaded driver stays until the process ends.
class SharedLibrary {
public:
    // Code::no_driver with the loader's own text. Symbols are bound at once and stay local.
    static Result<SharedLibrary> open(const std::string& file);
    void* symbol(const char* name) const noexcept;  // nullptr: absent
    std::string path() const;                       // where the loader found it; empty: unknown

private:
    void* handle_ = nullptr;
};

// Does any part of the range belong to a file (hugetlbfs and shared memory included)? Also true if that cannot be
// determined. Reads /proc/self/maps: not for hot paths.
bool may_be_file_mapped(std::uint64_t address, std::uint64_t bytes);

// The value of an environment variable, or empty; ignored in set-user-ID programs (secure_getenv).
std::string environment(const char* name);

// A whole regular file, also of /proc and /sys; never throws. Others (devices, pipes, sockets) are EINVAL.
struct FileText {
    std::string text;
    int error = 0;       // errno of the call that failed, EFBIG for more than `most_bytes`; 0: the text is whole
    std::string reason;  // the system's words for it
};
FileText read_file(const std::string& path, std::size_t most_bytes);

}  // namespace isthmus::platform::os
