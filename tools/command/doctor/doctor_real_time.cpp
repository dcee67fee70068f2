// SPDX-License-Identifier: Apache-2.0
#include "doctor_real_time.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace isthmus::tools {
namespace {

using Found = std::optional<Diagnosis>;

// A wake-up that takes longer is felt by a loop of 1 kHz.
constexpr std::uint64_t long_latency_us = 50;

// 0 1 2 5 → "0-2,5"
std::string list_text(const std::vector<int>& cpus) {
    std::vector<std::string> ranges;
    for (std::size_t at = 0; at < cpus.size();) {
        std::size_t end = at + 1;
        while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
        ranges.push_back(end - at == 1 ? std::to_string(cpus[at]) : fmt::format("{}-{}", cpus[at], cpus[end - 1]));
        at = end;
    }
    return fmt::format("{}", fmt::join(ranges, ","));
}

bool contains(const std::vector<int>& cpus, int cpu) {
    return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end();
}

}  // namespace

Found no_preempt_rt(const DoctorFacts& facts) {
    const RealTimeFacts& seen = facts.real_time;
    if (!seen.wanted || seen.preempt_rt != Seen::no) return std::nullopt;
    return Diagnosis{
        Weight::warning,
        fmt::format("the kernel has no PREEMPT_RT{}: its drivers and interrupts may delay a real-time thread for "
                    "milliseconds",
                    seen.kernel_version.empty() ? std::string() : fmt::format(" ({})", seen.kernel_version)),
        facts.tegra
            ? "NVIDIA's real-time kernel for Jetson Linux (apt install nvidia-l4t-rt-kernel)"
            : "a real-time kernel: linux-image-rt-amd64 or -arm64 (Debian), Ubuntu Pro's realtime-kernel, kernel-rt "
              "(RHEL), or CONFIG_PREEMPT_RT; NVIDIA's module is built for it with IGNORE_PREEMPT_RT_PRESENCE=1"};
}

Found no_isolated_cpus(const DoctorFacts& facts) {
    const RealTimeFacts& seen = facts.real_time;
    if (!seen.wanted || seen.cpus != Seen::yes || seen.online.size() < 2) return std::nullopt;
    if (seen.isolated.empty()) {
        return Diagnosis{Weight::warning,
                         fmt::format("none of the CPUs {} is isolated: the kernel runs other threads on each of them",
                                     list_text(seen.online)),
                         "isolcpus=N nohz_full=N rcu_nocbs=N on the kernel's command line, or an isolated cpuset "
                         "(cpuset.cpus.partition), with CPUs that cpus_near() names; then RealTimeOptions::cpus"};
    }
    std::vector<int> ticking;
    std::copy_if(seen.isolated.begin(), seen.isolated.end(), std::back_inserter(ticking),
                 [&](int cpu) { return !contains(seen.tickless, cpu); });
    if (ticking.empty()) return std::nullopt;
    return Diagnosis{Weight::note,
                     fmt::format("the isolated CPUs {} have the scheduler's tick, which interrupts their threads",
                                 list_text(ticking)),
                     fmt::format("nohz_full={0} rcu_nocbs={0} on the kernel's command line", list_text(ticking))};
}

Found realtime_throttling(const DoctorFacts& facts) {
    const RealTimeFacts& seen = facts.real_time;
    if (!seen.wanted || !seen.runtime_us || *seen.runtime_us < 0 || *seen.runtime_us >= seen.period_us) {
        return std::nullopt;
    }
    return Diagnosis{
        Weight::note,
        fmt::format("kernel.sched_rt_runtime_us is {} of {} µs: real-time threads that run for longer "
                    "without sleeping stand still until the period ends",
                    *seen.runtime_us, seen.period_us),
        "nothing to mend where each loop sleeps; for threads that spin: sysctl kernel.sched_rt_runtime_us=-1 "
        "(then a thread that never sleeps keeps its CPU for good)"};
}

Found gpu_interrupts(const DoctorFacts& facts) {
    const RealTimeFacts& seen = facts.real_time;
    if (!seen.wanted || seen.isolated.empty()) return std::nullopt;
    std::vector<std::string> on_isolated;
    int first = -1;
    std::vector<int> others;
    std::copy_if(seen.online.begin(), seen.online.end(), std::back_inserter(others),
                 [&](int cpu) { return !contains(seen.isolated, cpu); });
    for (const Interrupt& one : seen.of_gpu) {
        const bool isolated =
            std::any_of(one.cpus.begin(), one.cpus.end(), [&](int cpu) { return contains(seen.isolated, cpu); });
        if (!isolated) continue;
        if (first < 0) first = one.number;
        on_isolated.push_back(fmt::format("{} ({}) on {}", one.number, one.name, list_text(one.cpus)));
    }
    if (on_isolated.empty()) return std::nullopt;
    return Diagnosis{
        Weight::warning,
        fmt::format("interrupts of the GPU may go to the isolated CPUs {}: {}", list_text(seen.isolated),
                    fmt::join(on_isolated, ", ")),
        fmt::format("echo {} > /proc/irq/{}/smp_affinity_list (as root) for each; irqaffinity= on the kernel's "
                    "command line; IRQBALANCE_BANNED_CPULIST={} for irqbalance, which changes them",
                    list_text(others), first, list_text(seen.isolated))};
}

Found deep_idle_states(const DoctorFacts& facts) {
    const RealTimeFacts& seen = facts.real_time;
    std::vector<std::string> slow;
    for (const IdleState& state : seen.idle_states) {
        if (state.latency_us > long_latency_us) slow.push_back(fmt::format("{} ({} µs)", state.name, state.latency_us));
    }
    if (!seen.wanted || slow.empty()) return std::nullopt;
    return Diagnosis{
        Weight::warning, fmt::format("idle CPUs may sleep in states that they leave late: {}", fmt::join(slow, ", ")),
        fmt::format("cpupower idle-set -D {} (as root), or keep /dev/cpu_dma_latency open with 0 written to "
                    "it while the loop runs",
                    long_latency_us)};
}

Found huge_pages_always(const DoctorFacts& facts) {
    if (!facts.real_time.wanted || facts.transparent_huge_pages != "always") return std::nullopt;
    return Diagnosis{
        Weight::note,
        "transparent huge pages are on for all memory: khugepaged moves pages in the background, and the next "
        "use of each waits for it",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root): memory that asks for huge pages "
        "(HostPlacement::page_size) still gets them"};
}

}  // namespace isthmus::tools
