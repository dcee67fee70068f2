// What the system's text files say: pure functions over their content.
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

// A file of one line without its end.
std::string one_line(std::string_view text);

// The files of a PCI device's directory in sysfs, as read; empty: absent. Nothing where all are absent.
struct PciTexts {
    std::string speed;  // current_link_speed: "32.0 GT/s PCIe", "Unknown"
    std::string lanes;  // current_link_width: "16"; 0 or 255 where the link has none
    std::string most_speed;
    std::string most_lanes;
    std::string numa_node;  // "-1": none
    std::string near_cpus;  // local_cpulist
};
std::optional<PciPlace> parse_pci_place(const PciTexts& texts);

// "key: value" lines in order, both trimmed, quotes around the value removed (/proc/driver/nvidia/params).
std::vector<std::pair<std::string, std::string>> parse_parameters(std::string_view text);

// The CPU's name from /proc/cpuinfo: "model name" on x86, the core's name on Arm (where only numbers stand there).
std::string parse_cpu_name(std::string_view cpuinfo);

// "MemAvailable:  123 kB" or "Node 0 MemTotal: 123 kB" → bytes.
std::optional<std::uint64_t> parse_meminfo(std::string_view meminfo, std::string_view key);

// The number of a character device in /proc/devices; -1: absent.
int parse_device_major(std::string_view devices, std::string_view name);

// A limit or usage file of a memory cgroup. "max" and version 1's "no limit" number are nothing.
std::optional<std::uint64_t> parse_cgroup_bytes(std::string_view text);

// Directories whose memory limits hold for this process, innermost first, from /proc/self/cgroup and
// /proc/self/mountinfo. `unified` tells whether a directory has the files of version 2.
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
    std::string high;   // memory.high: above it the group is slowed down and reclaimed; version 2 only
    std::string usage;  // memory.current, or memory.usage_in_bytes
    std::string stat;   // memory.stat
};
struct CgroupMemory {
    std::uint64_t limit_bytes = 0;
    std::uint64_t available_bytes = 0;  // what is left, and the file cache that is given up first
};
// Nothing: no limit stands there.
std::optional<CgroupMemory> cgroup_memory(const CgroupTexts& texts);

// What ordinary host memory there is, from /proc/meminfo, the meminfo of each node without CPUs (memory of a GPU: the
// system counts it in its totals, and ordinary memory does not go there) and the limits that hold: the tightest counts.
HostMemory combine_host_memory(std::string_view meminfo, const std::vector<std::string>& memory_only_nodes,
                               const std::vector<CgroupTexts>& cgroups);

// From /proc/self/smaps: whether the mapping at `address` consists of huge pages only.
bool mapping_is_huge(std::string_view smaps, std::uint64_t address);
// … and what holds for all of a range, which may span several mappings. A mapping without flags: not known.
MappingFacts parse_mapping(std::string_view smaps, std::uint64_t address, std::uint64_t bytes);

// From /proc/self/maps: whether any part of the range belongs to a file, hugetlbfs and shared memory included. Nothing:
// some part of it is not mapped at all.
std::optional<bool> range_has_file(std::string_view maps, std::uint64_t address, std::uint64_t bytes);

}  // namespace isthmus::platform::os
