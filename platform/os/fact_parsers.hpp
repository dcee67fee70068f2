// SPDX-License-Identifier: Apache-2.0
// Parsers of the system's text files: pure functions of their content.
#pragma once

#include <isthmus/facts.hpp>

#include <platform/os.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus::platform::os {

// "0-1,10" → 0 1 10. Malformed parts are left out.
std::vector<int> parse_id_list(std::string_view text);

// The content of a one-line file without its line end.
std::string one_line(std::string_view text);

// Files of a PCI device's sysfs directory, as read; empty: absent. parse_pci_place() returns nothing if all are absent.
struct PciTexts {
    std::string speed;  // current_link_speed: "32.0 GT/s PCIe", "Unknown"
    std::string lanes;  // current_link_width: "16"; 0 or 255 without a link
    std::string max_speed;
    std::string max_lanes;
    std::string numa_node;  // "-1": none
    std::string near_cpus;  // local_cpulist
};
std::optional<PciPlace> parse_pci_place(const PciTexts& texts);

// "key: value" lines in order, both trimmed, quotes around the value removed (/proc/driver/nvidia/params).
std::vector<std::pair<std::string, std::string>> parse_parameters(std::string_view text);

// The CPU's name from /proc/cpuinfo: "model name" on x86; on Arm, where the file has only numbers, the core's name.
std::string parse_cpu_name(std::string_view cpuinfo);

// "MemAvailable:  123 kB" or "Node 0 MemTotal: 123 kB" → bytes.
std::optional<std::uint64_t> parse_meminfo(std::string_view meminfo, std::string_view key);

// The major number of a character device in /proc/devices; -1: absent.
int parse_device_major(std::string_view devices, std::string_view name);

// A limit or usage file of a memory cgroup. Nothing for "max" and for version 1's "no limit" number.
std::optional<std::uint64_t> parse_cgroup_bytes(std::string_view text);

// Directories whose memory limits apply to this process, innermost first, from /proc/self/cgroup and
// /proc/self/mountinfo. `unified`: the directory has the files of version 2.
struct CgroupDirectory {
    std::string path;
    bool unified = false;
};
std::vector<CgroupDirectory> cgroup_directories(std::string_view self_cgroup, std::string_view mountinfo);

// "inactive_file 123" of memory.stat.
std::optional<std::uint64_t> parse_memory_stat(std::string_view stat, std::string_view key);

// The files of one such directory, as read; empty: absent.
struct CgroupTexts {
    bool unified = false;
    std::string limit;  // memory.max, or memory.limit_in_bytes
    std::string high;   // memory.high: above it the group is throttled and reclaimed; version 2 only
    std::string usage;  // memory.current, or memory.usage_in_bytes
    std::string stat;   // memory.stat
};
struct CgroupMemory {
    std::uint64_t limit_bytes = 0;
    std::uint64_t available_bytes = 0;  // what is left, plus the file cache that is reclaimed first
};
// Nothing: no limit is set.
std::optional<CgroupMemory> cgroup_memory(const CgroupTexts& texts);

// Ordinary host memory, from /proc/meminfo, the meminfo of each node without CPUs (memory of a GPU: the system counts
// it in its totals, but does not use it for ordinary memory) and the applicable limits, of which the tightest counts.
HostMemory combine_host_memory(std::string_view meminfo, const std::vector<std::string>& memory_only_nodes,
                               const std::vector<CgroupTexts>& cgroups);

// From /proc/self/smaps: does the mapping at `address` consist of huge pages only?
bool mapping_is_huge(std::string_view smaps, std::uint64_t address);
// Facts that hold for a whole range, which may span several mappings. A mapping without flags: not known.
MappingFacts parse_mapping(std::string_view smaps, std::uint64_t address, std::uint64_t bytes);

// From /proc/self/maps: does any part of the range belong to a file, hugetlbfs and shared memory included? Nothing:
// part of the range is not mapped.
std::optional<bool> range_has_file(std::string_view maps, std::uint64_t address, std::uint64_t bytes);

}  // namespace isthmus::platform::os
