// SPDX-License-Identifier: Apache-2.0
// Reads the system's files about this machine; the parsers interpret them.
#include <platform/os.hpp>

#include "fact_parsers.hpp"
#include "text_file.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>

namespace isthmus::platform::os {
namespace {

constexpr const char* nodes_directory = "/sys/devices/system/node/";

std::string node_directory(int id) {
    return nodes_directory + ("node" + std::to_string(id)) + "/";
}

std::vector<NumaNode> numa_nodes() {
    std::vector<NumaNode> nodes;
    for (const int id : parse_id_list(read_text(nodes_directory + std::string("online")))) {
        const std::string directory = node_directory(id);
        NumaNode node;
        node.id = id;
        node.cpus = one_line(read_text(directory + "cpulist"));
        node.cpu_count = static_cast<int>(parse_id_list(node.cpus).size());
        node.memory_bytes = parse_meminfo(read_text(directory + "meminfo"), "MemTotal").value_or(0);
        nodes.push_back(node);
    }
    return nodes;
}

bool libnuma_answers() {
#if defined(ISTHMUS_HAVE_LIBNUMA)
    std::vector<unsigned long> mask(4096 / sizeof(unsigned long), 0);
    errno = 0;
    return SystemCalls::real().get_mempolicy_allowed(mask.data(), mask.size() * sizeof(unsigned long) * 8) == 0;
#else
    return false;
#endif
}

int count_imex_channels() {
    DIR* directory = ::opendir("/dev/nvidia-caps-imex-channels");
    if (!directory) return 0;
    int count = 0;
    while (const dirent* entry = ::readdir(directory)) {
        count += std::string_view(entry->d_name).substr(0, 7) == "channel" ? 1 : 0;
    }
    ::closedir(directory);
    return count;
}

std::uint64_t memlock_limit_bytes() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 0;
    return limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<std::uint64_t>::max() : limit.rlim_cur;
}

enum class CgroupFiles { limits, limits_and_usage };

std::vector<CgroupTexts> own_cgroups(CgroupFiles wanted) {
    std::vector<CgroupTexts> all;
    for (const CgroupDirectory& directory :
         cgroup_directories(read_text("/proc/self/cgroup"), read_text("/proc/self/mountinfo"))) {
        const bool unified = directory.unified;
        const std::string base = directory.path + "/memory.";
        CgroupTexts texts;
        texts.unified = unified;
        texts.limit = read_text(base + (unified ? "max" : "limit_in_bytes"));
        if (unified) texts.high = read_text(base + "high");
        // Version 1 has a limit among its statistics too.
        if (wanted == CgroupFiles::limits_and_usage || !unified) texts.stat = read_text(base + "stat");
        if (wanted == CgroupFiles::limits_and_usage) {
            texts.usage = read_text(base + (unified ? "current" : "usage_in_bytes"));
        }
        all.push_back(std::move(texts));
    }
    return all;
}

// The meminfo of each node without CPUs.
std::vector<std::string> memory_only_nodes() {
    std::vector<std::string> nodes;
    for (const int id : parse_id_list(read_text(nodes_directory + std::string("has_memory")))) {
        const std::string directory = node_directory(id);
        // An empty line: no CPUs. No text at all: the file cannot be read, so nothing is known.
        const std::string cpus = read_text(directory + "cpulist");
        if (!cpus.empty() && parse_id_list(cpus).empty()) nodes.push_back(read_text(directory + "meminfo"));
    }
    return nodes;
}

std::uint64_t memory_limit_bytes() {
    std::uint64_t smallest = 0;
    for (const CgroupTexts& texts : own_cgroups(CgroupFiles::limits)) {
        const std::optional<CgroupMemory> memory = cgroup_memory(texts);
        if (memory && (smallest == 0 || memory->limit_bytes < smallest)) smallest = memory->limit_bytes;
    }
    return smallest;
}

}  // namespace

MachineFacts machine_facts() {
    MachineFacts facts;
    utsname system{};
    if (::uname(&system) == 0) facts.kernel_release = system.release;
    facts.cpu_name = parse_cpu_name(read_text_up_to("/proc/cpuinfo", "model name"));
    facts.page_size_bytes = page_size_bytes();
    facts.huge_page_bytes =
        static_cast<std::size_t>(parse_meminfo(read_text("/proc/meminfo"), "Hugepagesize").value_or(0));
    facts.numa_nodes = numa_nodes();
    facts.libnuma = libnuma_answers();
    facts.nvidia_params = parse_parameters(read_text("/proc/driver/nvidia/params"));
    facts.imex_channels_major = parse_device_major(read_text("/proc/devices"), "nvidia-caps-imex-channels");
    facts.imex_channel_files = count_imex_channels();
    facts.memory_limit_bytes = memory_limit_bytes();
    facts.memlock_limit_bytes = memlock_limit_bytes();
    return facts;
}

std::optional<PciPlace> pci_place(int domain, int bus, int device) {
    char id[32];
    std::snprintf(id, sizeof id, "%04x:%02x:%02x.0", static_cast<unsigned>(domain), static_cast<unsigned>(bus),
                  static_cast<unsigned>(device));
    const std::string directory = "/sys/bus/pci/devices/" + std::string(id) + "/";
    const auto file = [&](const char* name) { return read_text(directory + name); };
    return parse_pci_place({file("current_link_speed"), file("current_link_width"), file("max_link_speed"),
                            file("max_link_width"), file("numa_node"), file("local_cpulist")});
}

HostMemory host_memory() {
    return combine_host_memory(read_text("/proc/meminfo"), memory_only_nodes(),
                               own_cgroups(CgroupFiles::limits_and_usage));
}

std::uint64_t host_total_bytes(std::uint64_t limit_bytes) {
    CgroupTexts limit;
    limit.unified = true;
    limit.limit = limit_bytes == 0 ? "max" : std::to_string(limit_bytes);
    return combine_host_memory(read_text("/proc/meminfo"), memory_only_nodes(), {limit}).total_bytes;
}

bool may_be_file_mapped(std::uint64_t address, std::uint64_t bytes) {
    return range_has_file(read_text("/proc/self/maps"), address, bytes).value_or(true);
}

}  // namespace isthmus::platform::os
