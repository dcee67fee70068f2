// SPDX-License-Identifier: Apache-2.0
// SystemCalls::real(): the system's own calls, and process queries that need no parser.
#include <platform/os.hpp>

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#if defined(ISTHMUS_HAVE_LIBNUMA)
#include <numaif.h>
#endif

namespace isthmus::platform::os {
namespace {

// libnuma's numaif.h functions are plain system calls; without libnuma they are made here, with the same result. Its
// numa_* functions are not used, because they print.
#if defined(ISTHMUS_HAVE_LIBNUMA)
long call_mbind(void* address, unsigned long bytes, int mode, const unsigned long* mask, unsigned long max_node,
                unsigned flags) {
    return ::mbind(address, bytes, mode, mask, max_node, flags);
}
long call_move_pages(int pid, unsigned long count, void** pages, const int* nodes, int* status, int flags) {
    return ::move_pages(pid, count, pages, nodes, status, flags);
}
long call_get_mempolicy_allowed(unsigned long* mask, unsigned long max_node) {
    return ::get_mempolicy(nullptr, mask, max_node, nullptr, MPOL_F_MEMS_ALLOWED);
}
#else
long call_mbind(void* address, unsigned long bytes, int mode, const unsigned long* mask, unsigned long max_node,
                unsigned flags) {
    return ::syscall(SYS_mbind, address, bytes, mode, mask, max_node, flags);
}
long call_move_pages(int pid, unsigned long count, void** pages, const int* nodes, int* status, int flags) {
    return ::syscall(SYS_move_pages, pid, count, pages, nodes, status, flags);
}
long call_get_mempolicy_allowed(unsigned long* mask, unsigned long max_node) {
    return ::syscall(SYS_get_mempolicy, nullptr, mask, max_node, nullptr, MPOL_F_MEMS_ALLOWED);
}
#endif

int call_current_node() {
    unsigned cpu = 0;
    unsigned node = 0;
    return ::syscall(SYS_getcpu, &cpu, &node, nullptr) == 0 ? static_cast<int>(node) : -1;
}

}  // namespace

const SystemCalls& SystemCalls::real() noexcept {
    static constexpr SystemCalls calls = {::mmap,
                                          ::munmap,
                                          ::madvise,
                                          ::mlock,
                                          ::munlock,
                                          call_mbind,
                                          call_move_pages,
                                          call_get_mempolicy_allowed,
                                          call_current_node,
                                          os::page_size_bytes};
    return calls;
}

std::size_t page_size_bytes() noexcept {
    const long size = ::sysconf(_SC_PAGESIZE);
    return size > 0 ? static_cast<std::size_t>(size) : 4096;
}

std::string environment(const char* name) {
    const char* value = ::secure_getenv(name);
    return value ? std::string(value) : std::string();
}

}  // namespace isthmus::platform::os
