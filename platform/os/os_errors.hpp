// SPDX-License-Identifier: Apache-2.0
// Error entries: host memory and shared libraries.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto no_host_bytes =
    error_entry("O001", Code::invalid_argument,
                "0 bytes of host memory were asked for",
                "ask for at least 1");
inline constexpr auto more_than_an_address_space =
    error_entry("O002", Code::invalid_argument,
                "{bytes:number} bytes of host memory were asked for, more than an address space has",
                "ask for less");
// Code: not_permitted for EPERM, else out_of_memory.
inline constexpr auto host_memory_not_mapped =
    error_entry("O003", Code::ok,
                "{bytes:number} bytes of host memory were asked for: {reason}",
                "ask for less, or raise the limit of the address space (ulimit -v)");
inline constexpr auto system_without_huge_pages =
    error_entry("O004", Code::unsupported,
                "huge pages were asked for, but this system has none",
                "set vm.nr_hugepages, or /sys/kernel/mm/transparent_hugepage/enabled to madvise and ask for prefault");
inline constexpr auto huge_pages_not_mapped =
    error_entry("O005", Code::unsupported,
                "huge pages were asked for, but they could not be mapped",
                "set vm.nr_hugepages, or /sys/kernel/mm/transparent_hugepage/enabled to madvise and ask for prefault");
inline constexpr auto huge_pages_refused =
    error_entry("O006", Code::unsupported,
                "huge pages were asked for, but the pool of huge pages is empty and transparent huge pages are refused "
                "(madvise: {reason})",
                "set vm.nr_hugepages, or /sys/kernel/mm/transparent_hugepage/enabled to madvise and ask for prefault");
inline constexpr auto ordinary_pages_instead_of_huge =
    error_entry("O007", Code::unsupported,
                "huge pages were asked for, and the system gave ordinary ones for some or all of it",
                "set vm.nr_hugepages, or /sys/kernel/mm/transparent_hugepage/enabled to madvise and ask for prefault");
inline constexpr auto huge_pages_before_touch =
    error_entry("O008", Code::unsupported,
                "transparent huge pages were asked for; whether they come shows when pages are touched (prefault)",
                "set vm.nr_hugepages, or /sys/kernel/mm/transparent_hugepage/enabled to madvise and ask for prefault");
inline constexpr auto system_without_numa_nodes =
    error_entry("O009", Code::unsupported,
                "memory on NUMA node {node:number} was asked for, but this system states no NUMA nodes",
                "ask without a node");
inline constexpr auto no_such_numa_node =
    error_entry("O010", Code::invalid_argument,
                "memory on NUMA node {node:number} was asked for, but there is no such node (nodes: {nodes})",
                "name one of these nodes");
inline constexpr auto numa_node_without_memory =
    error_entry("O011", Code::unsupported,
                "memory on NUMA node {node:number} was asked for, but that node has no memory",
                "name a node that has memory");
inline constexpr auto numa_node_outside_cpuset =
    error_entry("O012", Code::not_permitted,
                "memory on NUMA node {node:number} was asked for, but the cpuset of this process forbids that node",
                "widen the container's cpuset.mems (docker: --cpuset-mems), or ask without strict");
inline constexpr auto device_states_no_closest_node =
    error_entry("O013", Code::unsupported,
                "memory near the device was asked for, but the device states no closest node",
                "name a node (Locality::node), or ask without strict");
inline constexpr auto closest_node_without_cpus =
    error_entry("O014", Code::unsupported,
                "memory near the device was asked for, but the node it states ({node:number}) has no CPUs: it is the "
                "memory of a GPU or an expander",
                "name that node (Locality::node) if it is meant");
// Code: unsupported if the system states no nodes, else not_permitted.
inline constexpr auto no_node_to_interleave =
    error_entry("O015", Code::ok,
                "interleaved memory was asked for, but no node with CPUs and memory is open to this process (nodes: "
                "{nodes})",
                "ask without strict");
inline constexpr auto no_such_locality =
    error_entry("O016", Code::invalid_argument,
                "a locality that does not exist was asked for",
                "see placement.hpp");
inline constexpr auto binding_forbidden =
    error_entry("O017", Code::not_permitted,
                "binding host memory to NUMA node {nodes} is forbidden here (a container's seccomp filter, mostly)",
                "docker: --cap-add SYS_NICE; or ask without strict");
inline constexpr auto system_without_numa_calls =
    error_entry("O018", Code::unsupported,
                "binding host memory to NUMA node {nodes}: this system has no NUMA calls (emulation, or a kernel without "
                "NUMA)",
                "ask without strict");
inline constexpr auto binding_to_unknown_node =
    error_entry("O019", Code::invalid_argument,
                "binding host memory to NUMA node {nodes}: the system knows no such node with memory open to this process",
                "name a node of /sys/devices/system/node/has_memory");
inline constexpr auto binding_without_memory =
    error_entry("O020", Code::out_of_memory,
                "binding host memory to NUMA node {nodes}: the kernel is out of memory",
                "free memory");
inline constexpr auto binding_failed =
    error_entry("O021", Code::system_error,
                "binding host memory to NUMA node {nodes}: {reason}",
                "ask without strict");
// Code: out_of_memory for ENOMEM, else system_error.
inline constexpr auto pages_not_touched =
    error_entry("O022", Code::ok,
                "touching {bytes:number} bytes of host memory: {reason}",
                "ask for less, or on another node");
inline constexpr auto page_places_not_stated =
    error_entry("O023", Code::unverified,
                "the system does not say where pages lie (move_pages: {reason})",
                "docker: --cap-add SYS_NICE; or ask without strict");
inline constexpr auto some_page_places_not_stated =
    error_entry("O024", Code::unverified,
                "the system does not say where {absent:number} of {pages:number} pages lie",
                "docker: --cap-add SYS_NICE; or ask without strict");
inline constexpr auto node_of_thread_not_stated =
    error_entry("O025", Code::unverified,
                "the system does not say on which node this thread runs",
                "docker: --cap-add SYS_NICE; or ask without strict");
inline constexpr auto pages_lie_elsewhere =
    error_entry("O026", Code::system_error,
                "{outside:number} of {pages:number} pages lie elsewhere, the first on node {node:number}",
                "free memory on the node that was asked for");
inline constexpr auto lock_limit_too_small =
    error_entry("O027", Code::system_limit,
                "locking {bytes:number} bytes: {reason} (RLIMIT_MEMLOCK is {limit:number} bytes)",
                "raise the limit: ulimit -l, LimitMEMLOCK= of the service, docker --ulimit memlock=-1");
inline constexpr auto lock_refused_without_limit =
    error_entry("O028", Code::system_limit,
                "locking {bytes:number} bytes: {reason} (RLIMIT_MEMLOCK is unlimited)",
                "raise the limit: ulimit -l, LimitMEMLOCK= of the service, docker --ulimit memlock=-1");
inline constexpr auto lock_failed =
    error_entry("O029", Code::system_error,
                "locking {bytes:number} bytes: {reason}",
                "raise the limit: ulimit -l, LimitMEMLOCK= of the service, docker --ulimit memlock=-1");
inline constexpr auto host_addresses_not_reservable =
    error_entry("O030", Code::invalid_argument,
                "{bytes:number} bytes of host addresses cannot be reserved",
                "check the size for zero, an overflow or a negative number");
inline constexpr auto reserved_memory_refused =
    error_entry("O031", Code::out_of_memory,
                "{bytes:number} bytes of host memory {step}: {reason}",
                "ask for less, or raise the limits of the process (ulimit -v) and of the system's overcommitment");
inline constexpr auto reserved_memory_not_given_back =
    error_entry("O032", Code::system_error,
                "host memory could not be given back: {reason}",
                "unlock the memory first (munlock), or let the buffer go as a whole");
inline constexpr auto no_file_for_mirrored_memory =
    error_entry("O033", Code::system_limit,
                "memory at two addresses needs a file: {reason}",
                "raise the limit of open files (ulimit -n)");
inline constexpr auto shared_library_without_name =
    error_entry("O034", Code::invalid_argument,
                "a shared library was asked for without a name",
                "");
inline constexpr auto shared_library_not_opened =
    error_entry("O035", Code::no_driver,
                "opening {file}: {reason}",
                "install the library, or name another file");
inline constexpr auto dma_buf_not_open =
    error_entry("O036", Code::invalid_argument,
                "a dma-buf was to be mapped, but the descriptor is not open",
                "give an open dma-buf");
inline constexpr auto descriptor_of_no_dma_buf =
    error_entry("O037", Code::invalid_argument,
                "a dma-buf was to be mapped, but the descriptor is another file's",
                "mmap() a memfd or a file, and adopt() that; a camera exports dma-bufs by VIDIOC_EXPBUF");
// size 0: the kernel does not say.
inline constexpr auto range_leaves_dma_buf =
    error_entry("O038", Code::invalid_argument,
                "{bytes:number} bytes from byte {offset:number} on leave the dma-buf, which has {size:number}",
                "give no more than what the dma-buf has");
inline constexpr auto dma_buf_without_mmap =
    error_entry("O039", Code::unsupported,
                "the driver that exported the dma-buf cannot map it for the CPU",
                "let the frames come in memory of this library (V4L2: USERPTR), or in a dma-buf of a heap (/dev/dma_heap)");
// Code: by errno.
inline constexpr auto dma_buf_system_failure =
    error_entry("O040", Code::ok,
                "a dma-buf could not be mapped: {call}: {reason}",
                "see the error of the system");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
