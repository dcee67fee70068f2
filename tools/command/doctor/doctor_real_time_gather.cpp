// SPDX-License-Identifier: Apache-2.0
// Reads what doctor_real_time.cpp judges. A fact that cannot be read keeps its default, "not known".
#include "doctor_real_time.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace isthmus::tools {
namespace {

std::optional<std::string> text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::nullopt;
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (file.bad()) return std::nullopt;
    return text;
}

// Without the line end.
std::string line_of(const std::string& path) {
    const std::string text = text_of(path).value_or("");
    return text.substr(0, text.find('\n'));
}

std::optional<long> number_of(const std::string& path) {
    const std::string text = line_of(path);
    char* end = nullptr;
    const long number = std::strtol(text.c_str(), &end, 10);
    if (end == text.c_str()) return std::nullopt;
    return number;
}

// "0-2,5" → 0 1 2 5; "(null)", as nohz_full says where it is off, → none. Parts that are no numbers are left out.
std::vector<int> cpu_list(const std::string& text) {
    constexpr long most = 1 << 16;
    std::vector<int> cpus;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        char* end = nullptr;
        const long first = std::strtol(part.c_str(), &end, 10);
        if (end == part.c_str()) continue;
        const long last = *end == '-' ? std::strtol(end + 1, nullptr, 10) : first;
        for (long cpu = std::max(first, 0L); cpu <= std::min(last, most); ++cpu) cpus.push_back(static_cast<int>(cpu));
    }
    return cpus;
}

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code failed;
    for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
        names.push_back(at->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

// A line of /proc/interrupts: "  45:  12  0  PCI-MSI 524288-edge  nvidia". The drivers of boards are named gpu, nvgpu,
// host1x and after the GPU's unit (17000000.gpu, gk20a_stall).
bool of_nvidia(const std::string& name) {
    for (const char* word : {"nvidia", "nvgpu", "gk20a", "host1x", ".gpu", "ga10b", "gv11b"}) {
        if (name.find(word) != std::string::npos) return true;
    }
    return false;
}

void gather_interrupts(const std::string& root, RealTimeFacts& facts) {
    const std::optional<std::string> text = text_of(root + "/proc/interrupts");
    if (!text) return;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
        char* end = nullptr;
        const long number = std::strtol(line.c_str(), &end, 10);
        if (end == line.c_str() || *end != ':') continue;  // the head, and the kernel's own: "NMI:"
        const std::size_t last = line.find_last_not_of(' ');
        const std::size_t begin = line.rfind("  ", last);
        const std::string name = line.substr(begin + 2, last - begin - 1);
        if (begin == std::string::npos || !of_nvidia(name)) continue;
        const std::string cpus = line_of(root + "/proc/irq/" + std::to_string(number) + "/smp_affinity_list");
        facts.of_gpu.push_back({static_cast<int>(number), name, cpu_list(cpus)});
    }
}

// "CapEff:	000001fffeffffff" of /proc/self/status.
Seen has_ipc_lock(const std::string& status) {
    constexpr unsigned ipc_lock = 14;
    const std::size_t at = status.find("\nCapEff:");
    if (at == std::string::npos) return Seen::unknown;
    return (std::strtoull(status.c_str() + at + 8, nullptr, 16) >> ipc_lock & 1) != 0 ? Seen::yes : Seen::no;
}

void gather_idle_states(const std::string& root, RealTimeFacts& facts) {
    const std::string cpus = root + "/sys/devices/system/cpu/";
    for (const std::string& cpu : names_in(cpus)) {
        if (cpu.size() < 4 || cpu.compare(0, 3, "cpu") != 0 || std::isdigit(static_cast<unsigned char>(cpu[3])) == 0) {
            continue;
        }
        const std::string states = cpus + cpu + "/cpuidle/";
        for (const std::string& state : names_in(states)) {
            const std::string name = line_of(states + state + "/name");
            const std::optional<long> latency = number_of(states + state + "/latency");
            if (name.empty() || !latency) continue;
            facts.idle = Seen::yes;
            if (number_of(states + state + "/disable").value_or(0) != 0) continue;
            const auto same = [&](const IdleState& known) { return known.name == name; };
            if (std::none_of(facts.idle_states.begin(), facts.idle_states.end(), same)) {
                facts.idle_states.push_back({name, static_cast<std::uint64_t>(std::max(*latency, 0L))});
            }
        }
    }
}

}  // namespace

RealTimeFacts gather_real_time(const std::string& root) {
    RealTimeFacts facts;
    facts.wanted = true;
    facts.ipc_lock = has_ipc_lock(text_of(root + "/proc/self/status").value_or(""));
    facts.kernel_version = line_of(root + "/proc/sys/kernel/version");
    const bool named = facts.kernel_version.find("PREEMPT_RT") != std::string::npos;
    // Kernels without PREEMPT_RT have no /sys/kernel/realtime.
    if (line_of(root + "/sys/kernel/realtime") == "1" || named) {
        facts.preempt_rt = Seen::yes;
    } else if (!facts.kernel_version.empty()) {
        facts.preempt_rt = Seen::no;
    }
    const std::string cpus = root + "/sys/devices/system/cpu/";
    facts.online = cpu_list(line_of(cpus + "online"));
    facts.isolated = cpu_list(line_of(cpus + "isolated"));
    facts.tickless = cpu_list(line_of(cpus + "nohz_full"));
    if (text_of(cpus + "isolated") && !facts.online.empty()) facts.cpus = Seen::yes;
    facts.runtime_us = number_of(root + "/proc/sys/kernel/sched_rt_runtime_us");
    facts.period_us = number_of(root + "/proc/sys/kernel/sched_rt_period_us").value_or(1000000);
    gather_interrupts(root, facts);
    gather_idle_states(root, facts);
    return facts;
}

}  // namespace isthmus::tools
