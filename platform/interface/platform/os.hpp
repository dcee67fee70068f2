// The operating-system floor: pages, NUMA, limits, dlopen. Everything that the library asks of the system goes
// through SystemCalls, so that tests can answer in its place.
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

// The system calls of the floor, each with the semantics of its namesake (−1 and errno). real() is the system.
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
    std::size_t (*page_size_bytes)();  // 4 KiB or 64 KiB, mostly
    static const SystemCalls& real() noexcept;
};

std::size_t page_size_bytes() noexcept;

// What the system states about this machine; reads /proc and /sys, never fails (absent facts stay at their default).
MachineFacts machine_facts();

// What the system states of the PCI device with this bus id (function 0); nothing where it does not list the device.
// Reads six files of /sys; never fails.
std::optional<PciPlace> pci_place(int domain, int bus, int device);

// The truth about ordinary host memory now: what /proc/meminfo calls available, without what lies on nodes that have no
// CPUs (the memory of GPUs), and the smaller of it and what the memory cgroup and its ancestors leave. 0 and 0 where
// the system does not say.
struct HostMemory {
    std::uint64_t total_bytes = 0;
    std::uint64_t available_bytes = 0;
    bool cgroup_decides = false;  // available_bytes is what a memory cgroup leaves
};
HostMemory host_memory();
// Its total_bytes alone, within the limit that machine_facts() found (0: none). No usage is read, for which the system
// may have to gather the counts of every CPU.
std::uint64_t host_total_bytes(std::uint64_t limit_bytes);

// What the system states about memory that is there already, over all of [address, address + bytes).
struct MappingFacts {
    bool known = false;           // false: it does not say; the rest means nothing then
    bool mapped = false;          // every byte
    bool readable = false;        // … of which may be read
    bool writable = false;        // … and written
    bool driver_mapping = false;  // some of it is a driver's own (VM_IO, VM_PFNMAP): no pages that could be pinned
    bool device_mapping = false;  // … and not the GPU driver's, whose pinned memory looks the same
};
// Reads /proc/self/smaps once: as long as the process has mappings, some 0.1 ms to milliseconds. Never fails.
MappingFacts mapping_facts(const void* address, std::size_t bytes);

// Threads that a caller lends for a large piece of work: the library starts none.
struct Workers {
    unsigned count = 1;
    // Calls task(0) … task(count - 1), each once, on any threads, and returns when all have returned. Empty: the
    // calling thread does it all.
    std::function<void(unsigned count, const std::function<void(unsigned)>& task)> run;
};

// Page-aligned host memory with placement; unmaps on destruction. Movable. Asking for a place (near_device, node,
// interleaved) touches every page, because only pages that exist can be verified. Without `strict`, whatever could
// not be had stands in report(); with it, the same is an error:
//   not_permitted (mbind or cpuset forbids), unsupported (no NUMA calls, node without memory, no huge pages),
//   invalid_argument (no such node, 0 bytes), system_limit (RLIMIT_MEMLOCK), unverified (move_pages forbidden).
// Large mappings are touched by `touchers` together; pages that follow the first toucher (local, or anywhere) by the
// caller alone. `calls` must outlive the pages.
class HostPages {
public:
    static Result<HostPages> allocate(std::size_t bytes, const HostPlacement& placement, int near_node,
                                      const MachineFacts& machine, const SystemCalls& calls = SystemCalls::real(),
                                      const Workers& touchers = {});
    HostPages() = default;
    HostPages(HostPages&& other) noexcept;
    HostPages& operator=(HostPages&& other) noexcept;
    ~HostPages();

    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }  // as asked; the mapping is rounded up to pages
    const PlacementReport& report() const noexcept { return report_; }

    // Looks again where the pages lie and renews report(): for memory that was registered with a driver since, which
    // may have moved it and, where the GPU uses the CPU's page tables, has not locked it. Strict placement: an Error of
    // the kinds above, and the pages stay as they are. Not thread-safe.
    Result<void> verify_again();

private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t mapped_bytes_ = 0;
    PlacementReport report_;
    struct Wish {
        std::vector<int> nodes;          // where pages may lie; empty: they are not looked for
        PlacementReport before_looking;  // what was known before
        bool strict = false;
    };
    Wish wish_;
    const SystemCalls* calls_ = nullptr;
};

// A shared library opened by name. Never closed: a driver that was loaded stays until the process ends.
class SharedLibrary {
public:
    // Code::no_driver with the loader's own text. Symbols are bound now and stay local.
    static Result<SharedLibrary> open(const std::string& file);
    void* symbol(const char* name) const noexcept;  // nullptr: absent
    std::string path() const;                       // where the loader found it; empty: unknown

private:
    void* handle_ = nullptr;
};

// Does any part of the range belong to a file (hugetlbfs and shared memory included)? Also yes where that cannot be
// found out. Reads /proc/self/maps: not for hot paths.
bool may_be_file_mapped(std::uint64_t address, std::uint64_t bytes);

// The value of an environment variable, or empty; ignored in set-user-ID programs (secure_getenv).
std::string environment(const char* name);

}  // namespace isthmus::platform::os
