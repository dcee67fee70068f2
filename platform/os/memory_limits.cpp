// SPDX-License-Identifier: Apache-2.0
// Memory that a cgroup and its ancestors leave to this process, and the total of ordinary host memory.
#include "fact_parsers.hpp"

#include "text_pieces.hpp"

namespace isthmus::platform::os {
namespace {

bool has_word(std::string_view list, std::string_view word) {
    while (!list.empty()) {
        if (next(list, ',') == word) return true;
    }
    return false;
}

struct CgroupMount {
    std::string root;   // the cgroup at the top of the mount
    std::string point;  // where it is mounted
};

// Blanks in paths are encoded as \040 (proc_pid_mountinfo(5)).
std::string unescaped(std::string_view path) {
    std::string text;
    while (!path.empty()) {
        const std::optional<unsigned> code =
            path.size() >= 4 && path[0] == '\\' ? number<unsigned>(path.substr(1, 3), 8) : std::nullopt;
        text += code ? static_cast<char>(*code) : path[0];
        path.remove_prefix(code ? 4 : 1);
    }
    return text;
}

// mountinfo: id parent major:minor root point options [tags] - type source super_options
std::optional<CgroupMount> find_mount(std::string_view mountinfo, bool unified) {
    while (!mountinfo.empty()) {
        const std::string_view line = next(mountinfo, '\n');
        const std::size_t dash = line.find(" - ");
        if (dash == std::string_view::npos) continue;
        std::string_view tail = line.substr(dash + 3);
        const std::string_view type = next(tail, ' ');
        next(tail, ' ');
        const bool fits = unified ? type == "cgroup2" : type == "cgroup" && has_word(tail, "memory");
        if (!fits) continue;
        std::string_view head = line.substr(0, dash);
        for (int field = 0; field < 3; ++field) next(head, ' ');
        const std::string_view root = next(head, ' ');
        const std::string_view point = next(head, ' ');
        if (!point.empty()) return CgroupMount{unescaped(root), unescaped(point)};
    }
    return std::nullopt;
}

// From the innermost directory to the mount point. A container may see a path that its mount does not show (no cgroup
// namespace): then only the mount point remains, which is the container's own cgroup.
void add_directories(std::vector<CgroupDirectory>& out, const CgroupMount& mount, std::string_view path, bool unified) {
    std::string_view below = path;
    if (mount.root != "/") {
        const bool within = below.substr(0, mount.root.size()) == mount.root &&
                            (below.size() == mount.root.size() || below[mount.root.size()] == '/');
        if (within) {
            below.remove_prefix(mount.root.size());
        } else {
            below = {};
        }
    }
    if (below.find("..") != std::string_view::npos) below = {};
    while (below.size() > 1) {
        out.push_back({mount.point + std::string(below), unified});
        below = below.substr(0, below.rfind('/'));
    }
    out.push_back({mount.point, unified});
}

}  // namespace

std::optional<std::uint64_t> parse_cgroup_bytes(std::string_view text) {
    const std::optional<std::uint64_t> bytes = number<std::uint64_t>(trim(text));
    // Version 1 means "no limit" by the largest page-aligned 63-bit number.
    if (!bytes || *bytes >= (std::uint64_t{1} << 62)) return std::nullopt;
    return bytes;
}

std::vector<CgroupDirectory> cgroup_directories(std::string_view self_cgroup, std::string_view mountinfo) {
    std::vector<CgroupDirectory> directories;
    while (!self_cgroup.empty()) {
        std::string_view line = next(self_cgroup, '\n');
        const std::string_view hierarchy = next(line, ':');
        const std::string_view controllers = next(line, ':');
        if (line.empty()) continue;
        const bool unified = hierarchy == "0" && controllers.empty();
        if (!unified && !has_word(controllers, "memory")) continue;
        if (const std::optional<CgroupMount> mount = find_mount(mountinfo, unified)) {
            add_directories(directories, *mount, line, unified);
        }
    }
    return directories;
}

std::optional<std::uint64_t> parse_memory_stat(std::string_view stat, std::string_view key) {
    while (!stat.empty()) {
        std::string_view line = next(stat, '\n');
        if (next(line, ' ') == key) return number<std::uint64_t>(trim(line));
    }
    return std::nullopt;
}

std::optional<CgroupMemory> cgroup_memory(const CgroupTexts& texts) {
    std::optional<std::uint64_t> limit = parse_cgroup_bytes(texts.limit);
    const auto tighten = [&](std::optional<std::uint64_t> other) {
        if (other) limit = std::min(limit.value_or(*other), *other);
    };
    tighten(parse_cgroup_bytes(texts.high));
    // Version 1 states the limits of its ancestors, including those invisible in a container.
    if (!texts.unified) {
        if (const auto above = parse_memory_stat(texts.stat, "hierarchical_memory_limit")) {
            tighten(parse_cgroup_bytes(std::to_string(*above)));
        }
    }
    if (!limit) return std::nullopt;
    const std::uint64_t usage = parse_cgroup_bytes(texts.usage).value_or(0);
    const std::uint64_t cache =
        parse_memory_stat(texts.stat, texts.unified ? "inactive_file" : "total_inactive_file").value_or(0);
    const std::uint64_t used = usage - std::min(cache, usage);
    return CgroupMemory{*limit, *limit - std::min(used, *limit)};
}

HostMemory combine_host_memory(std::string_view meminfo, const std::vector<std::string>& memory_only_nodes,
                               const std::vector<CgroupTexts>& cgroups) {
    HostMemory memory;
    memory.total_bytes = parse_meminfo(meminfo, "MemTotal").value_or(0);
    memory.available_bytes = parse_meminfo(meminfo, "MemAvailable").value_or(0);
    const auto take = [](std::uint64_t& from, std::uint64_t bytes) { from -= std::min(from, bytes); };
    for (const std::string& node : memory_only_nodes) {
        take(memory.total_bytes, parse_meminfo(node, "MemTotal").value_or(0));
        // Nodes do not state their available memory; their free memory is the least part of it counted as available.
        take(memory.available_bytes, parse_meminfo(node, "MemFree").value_or(0));
    }
    memory.available_bytes = std::min(memory.available_bytes, memory.total_bytes);
    if (memory.total_bytes == 0) return memory;  // the system says nothing: a limit alone is no amount of memory
    for (const CgroupTexts& texts : cgroups) {
        const std::optional<CgroupMemory> left = cgroup_memory(texts);
        if (!left) continue;
        memory.total_bytes = std::min(memory.total_bytes, left->limit_bytes);
        if (left->available_bytes >= memory.available_bytes) continue;
        memory.available_bytes = left->available_bytes;
        memory.cgroup_decides = true;
    }
    return memory;
}

}  // namespace isthmus::platform::os
