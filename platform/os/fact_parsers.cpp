// SPDX-License-Identifier: Apache-2.0
// Parsers of /proc and /sys texts. Input may be truncated or unfamiliar; unknown parts are left out.
#include "fact_parsers.hpp"

#include "text_pieces.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace isthmus::platform::os {
namespace {

struct ArmCore {
    unsigned implementer;
    unsigned part;
    std::string_view name;
};
// Cores of the machines in this project and of common servers, from Arm's MIDR_EL1 tables.
constexpr std::array<ArmCore, 18> arm_cores = {{
    {0x41, 0xd03, "Arm Cortex-A53"},
    {0x41, 0xd07, "Arm Cortex-A57"},
    {0x41, 0xd08, "Arm Cortex-A72"},
    {0x41, 0xd0b, "Arm Cortex-A76"},
    {0x41, 0xd0c, "Arm Neoverse N1"},
    {0x41, 0xd40, "Arm Neoverse V1"},
    {0x41, 0xd42, "Arm Cortex-A78AE"},
    {0x41, 0xd49, "Arm Neoverse N2"},
    {0x41, 0xd4f, "Arm Neoverse V2"},
    {0x41, 0xd83, "Arm Neoverse V3AE"},
    {0x41, 0xd84, "Arm Neoverse V3"},
    {0x41, 0xd85, "Arm Cortex-X925"},
    {0x41, 0xd87, "Arm Cortex-A725"},
    {0x41, 0xd8e, "Arm Neoverse N3"},
    {0x4e, 0x003, "NVIDIA Denver 2"},
    {0x4e, 0x004, "NVIDIA Carmel"},
    {0xc0, 0xac3, "Ampere-1"},
    {0x48, 0xd01, "HiSilicon TSV110"},
}};

std::string arm_name(unsigned implementer, unsigned part) {
    for (const ArmCore& core : arm_cores) {
        if (core.implementer == implementer && core.part == part) return std::string(core.name);
    }
    std::array<char, 16> digits{};
    std::string name = "Arm core, implementer 0x";
    name.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), implementer, 16).ptr);
    name += ", part 0x";
    name.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), part, 16).ptr);
    return name;
}

std::optional<unsigned> hexadecimal(std::string_view text) {
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) text.remove_prefix(2);
    return number<unsigned>(text, 16);
}

}  // namespace

std::vector<int> parse_id_list(std::string_view text) {
    std::vector<int> ids;
    text = trim(text);
    while (!text.empty()) {
        std::string_view part = next(text, ',');
        const std::optional<int> first = number<int>(trim(next(part, '-')));
        const std::optional<int> last = part.empty() ? first : number<int>(trim(part));
        // A range beyond any machine's size means a damaged file.
        if (!first || !last || *first < 0 || *last < *first || *last - *first > 65536) continue;
        for (int id = *first; id <= *last; ++id) ids.push_back(id);
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
}

std::string one_line(std::string_view text) {
    return std::string(trim(next(text, '\n')));
}

namespace {

// "32.0 GT/s PCIe" → 32000, "2.5 GT/s" → 2500; 0 if the text states no speed.
int parse_link_speed(std::string_view text) {
    text = trim(text);
    std::string_view amount = next(text, ' ');
    if (text.substr(0, 4) != "GT/s") return 0;
    const std::optional<int> whole = number<int>(next(amount, '.'));
    const std::optional<int> tenths = amount.empty() ? 0 : number<int>(amount.substr(0, 1));
    if (!whole || !tenths || *whole < 0 || *whole > 10000) return 0;
    return *whole * 1000 + *tenths * 100;
}

int parse_lanes(std::string_view text) {
    const std::optional<int> lanes = number<int>(trim(text));
    return lanes && *lanes > 0 && *lanes <= 32 ? *lanes : 0;  // 63 and 255: width unknown
}

}  // namespace

std::optional<PciPlace> parse_pci_place(const PciTexts& texts) {
    const bool none = texts.speed.empty() && texts.lanes.empty() && texts.max_speed.empty() &&
                      texts.max_lanes.empty() && texts.numa_node.empty() && texts.near_cpus.empty();
    if (none) return std::nullopt;
    PciPlace place;
    place.speed_mt_per_s = parse_link_speed(texts.speed);
    place.lanes = parse_lanes(texts.lanes);
    place.max_speed_mt_per_s = parse_link_speed(texts.max_speed);
    place.max_lanes = parse_lanes(texts.max_lanes);
    place.numa_node = std::max(-1, number<int>(trim(texts.numa_node)).value_or(-1));
    place.near_cpus = one_line(texts.near_cpus);
    return place;
}

std::vector<std::pair<std::string, std::string>> parse_parameters(std::string_view text) {
    std::vector<std::pair<std::string, std::string>> parameters;
    while (!text.empty()) {
        std::string_view line = next(text, '\n');
        if (line.find(':') == std::string_view::npos) continue;
        const std::string_view key = trim(next(line, ':'));
        std::string_view value = trim(line);
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
        if (!key.empty()) parameters.emplace_back(key, value);
    }
    return parameters;
}

std::string parse_cpu_name(std::string_view cpuinfo) {
    std::optional<unsigned> implementer;
    std::vector<std::string> cores;  // big and little ones, each once
    while (!cpuinfo.empty()) {
        std::string_view line = next(cpuinfo, '\n');
        const std::string_view key = trim(next(line, ':'));
        const std::string_view value = trim(line);
        if (key == "model name") return std::string(value);
        if (key == "CPU implementer") implementer = hexadecimal(value);
        if (key != "CPU part" || !implementer) continue;
        const std::optional<unsigned> part = hexadecimal(value);
        if (!part) continue;
        std::string core = arm_name(*implementer, *part);
        if (std::find(cores.begin(), cores.end(), core) == cores.end()) cores.push_back(std::move(core));
    }
    std::string name;
    for (const std::string& core : cores) name.append(name.empty() ? "" : " + ").append(core);
    return name;
}

std::optional<std::uint64_t> parse_meminfo(std::string_view meminfo, std::string_view key) {
    while (!meminfo.empty()) {
        std::string_view line = next(meminfo, '\n');
        const std::string_view left = trim(next(line, ':'));
        const bool fits = left == key || (left.size() > key.size() && left.substr(left.size() - key.size()) == key &&
                                          left[left.size() - key.size() - 1] == ' ');
        if (!fits) continue;
        std::string_view value = trim(line);
        const std::optional<std::uint64_t> amount = number<std::uint64_t>(next(value, ' '));
        if (!amount) return std::nullopt;
        if (trim(value) != "kB") return amount;
        if (*amount > (std::uint64_t{1} << 53)) return std::nullopt;
        return *amount * 1024;
    }
    return std::nullopt;
}

int parse_device_major(std::string_view devices, std::string_view name) {
    bool character = false;
    while (!devices.empty()) {
        std::string_view line = trim(next(devices, '\n'));
        if (line == "Character devices:") character = true;
        if (line == "Block devices:") character = false;
        const std::optional<int> major = number<int>(next(line, ' '));
        if (character && major && trim(line) == name) return *major;
    }
    return -1;
}

bool mapping_is_huge(std::string_view smaps, std::uint64_t address) {
    bool inside = false;
    std::uint64_t size_bytes = 0;
    while (!smaps.empty()) {
        const std::string_view line = next(smaps, '\n');
        std::string_view rest = line;
        std::string_view range = next(rest, ' ');
        const std::optional<std::uint64_t> begin = number<std::uint64_t>(next(range, '-'), 16);
        const std::optional<std::uint64_t> end = number<std::uint64_t>(range, 16);
        if (begin && end) {
            if (inside) return false;
            inside = *begin <= address && address < *end;
            size_bytes = *end - *begin;
        } else if (inside) {
            if (const auto huge = parse_meminfo(line, "AnonHugePages")) return *huge >= size_bytes && size_bytes > 0;
        }
    }
    return false;
}

std::optional<bool> range_has_file(std::string_view maps, std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t last = address + bytes;
    while (!maps.empty() && address < last) {  // lines are in ascending order
        std::string_view rest = next(maps, '\n');
        std::string_view range = next(rest, ' ');
        const std::optional<std::uint64_t> begin = number<std::uint64_t>(next(range, '-'), 16);
        const std::optional<std::uint64_t> end = number<std::uint64_t>(range, 16);
        for (int field = 0; field < 3; ++field) (void)next(rest, ' ');  // permissions, offset, device
        const std::optional<std::uint64_t> inode = number<std::uint64_t>(next(rest, ' '));
        if (!begin || !end || !inode || *end <= address) continue;
        if (*begin > address) return std::nullopt;
        if (*inode != 0) return true;
        address = *end;
    }
    return address < last ? std::nullopt : std::optional<bool>(false);
}

namespace {

struct MappingLine {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string_view permissions;
    std::string_view path;  // empty: anonymous
};
// "7f28-7f29 rw-p 00000000 fe:00 332383   /usr/lib/x" begins a mapping; other lines describe the previous one.
std::optional<MappingLine> mapping_line(std::string_view line) {
    std::string_view range = next(line, ' ');
    const std::optional<std::uint64_t> begin = number<std::uint64_t>(next(range, '-'), 16);
    const std::optional<std::uint64_t> end = number<std::uint64_t>(range, 16);
    if (!begin || !end) return std::nullopt;
    MappingLine mapping{*begin, *end, next(line, ' '), {}};
    for (int field = 0; field < 3; ++field) (void)next(line, ' ');  // offset, device, inode
    mapping.path = trim(line);
    return mapping;
}

// Files that GPU drivers map their pinned memory from: those of NVIDIA, Tegra and WSL, shared anonymous memory, and
// dma-buf buffers.
bool may_be_of_gpu_driver(std::string_view path) {
    if (path.empty()) return true;
    for (const std::string_view begin :
         {"/dev/nvidia", "/dev/nvhost", "/dev/nvmap", "/dev/dxg", "/dev/zero", "/dmabuf", "anon_inode:"}) {
        if (path.substr(0, begin.size()) == begin) return true;
    }
    return false;
}

bool has_flag(std::string_view flags, std::string_view wanted) {
    while (!flags.empty()) {
        if (trim(next(flags, ' ')) == wanted) return true;
    }
    return false;
}

}  // namespace

// The kernel lists mappings in ascending order.
MappingFacts parse_mapping(std::string_view smaps, std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t end = address + bytes;
    if (bytes == 0 || end < address || smaps.empty()) return {};
    MappingFacts facts{true, false, true, true, false, false};
    std::uint64_t reached = address;
    bool inside = false;
    bool of_gpu_driver = false;
    while (!smaps.empty()) {
        std::string_view line = next(smaps, '\n');
        if (const std::optional<MappingLine> mapping = mapping_line(line)) {
            if (inside) return {};  // the previous mapping has no flags
            inside = mapping->begin <= reached && reached < mapping->end && reached < end;
            if (!inside) continue;
            facts.readable = facts.readable && mapping->permissions.find('r') != std::string_view::npos;
            facts.writable = facts.writable && mapping->permissions.find('w') != std::string_view::npos;
            of_gpu_driver = may_be_of_gpu_driver(mapping->path);
            reached = mapping->end;
        } else if (inside && next(line, ':') == "VmFlags") {
            const bool pageless = has_flag(line, "io") || has_flag(line, "pf");
            facts.driver_mapping = facts.driver_mapping || pageless;
            facts.device_mapping = facts.device_mapping || (pageless && !of_gpu_driver);
            inside = false;
        }
    }
    if (inside) return {};
    facts.mapped = reached >= end;
    return facts;
}

}  // namespace isthmus::platform::os
