// SPDX-License-Identifier: Apache-2.0
// Each check names the source that it read, so that the user can read the same.
#include "doctor_system.hpp"

#include "common/console.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace isthmus::tools {
namespace {

using Found = std::optional<Diagnosis>;

}  // namespace

// Machine code runs on GPUs of its major version and of its minor version or a later one; on Tegra boards it needs
// exactly its version. PTX runs on every GPU from its version on.
GpuCode gpu_code(const KernelCodeFacts& kernels, const DeviceSighting& device) noexcept {
    if (!kernels.known) return GpuCode::unknown;
    const int version = device.compute_major * 10 + device.compute_minor;
    for (const int code : kernels.machine_code) {
        const bool later = code / 10 == device.compute_major && code <= version;
        if (device.integrated ? code == version : later) return GpuCode::ready;
    }
    return kernels.ptx != 0 && kernels.ptx <= version ? GpuCode::compiled : GpuCode::none;
}

// Only the try counts: in a user namespace CAP_SYS_NICE is present but gives no real-time priority.
Found no_realtime(const DoctorFacts& facts) {
    if (facts.realtime != Seen::no) return std::nullopt;
    const bool has_limit = facts.realtime_priority_limit > 0;
    const bool has_capability = facts.sys_nice == Seen::yes;
    const std::string limit =
        facts.realtime_priority_limit == unlimited ? "unlimited" : std::to_string(facts.realtime_priority_limit);
    return Diagnosis{
        facts.real_time.wanted ? Weight::problem : Weight::note,
        fmt::format("SCHED_FIFO is refused ({}), so that threads wait for others under load; RLIMIT_RTPRIO "
                    "is {}, and the process has {} CAP_SYS_NICE",
                    facts.realtime_failure, limit, has_capability ? "a" : "no"),
        has_limit || has_capability
            ? "give it outside of a user namespace (a rootless container has the host's limit), or, where "
              "the kernel has real-time groups, give this one time: cpu.rt_runtime_us"
            : "ulimit -r 99 (rtprio in /etc/security/limits.d), LimitRTPRIO=99 of the service, docker "
              "--cap-add SYS_NICE or --ulimit rtprio=99"};
}

Found numa_balancing(const DoctorFacts& facts) {
    const auto has_memory = [](const NumaNode& node) { return node.memory_bytes > 0; };
    const auto nodes = std::count_if(facts.machine.numa_nodes.begin(), facts.machine.numa_nodes.end(), has_memory);
    if (facts.numa_balancing != Seen::yes || nodes < 2) return std::nullopt;
    // Where the GPU uses the CPU's page tables, a page that NUMA balancing unmapped faults on the GPU too.
    const auto& devices = facts.opening.devices;
    const bool gpu_faults = std::any_of(devices.begin(), devices.end(),
                                        [](const DeviceSighting& device) { return device.pageable_access; });
    return Diagnosis{gpu_faults || facts.real_time.wanted ? Weight::warning : Weight::note,
                     fmt::format("kernel.numa_balancing is on, with {} nodes that have memory: the kernel unmaps pages "
                                 "from time to time to see who uses them, and each next use faults{}",
                                 nodes, gpu_faults ? ", the GPU's use of ordinary memory too" : ""),
                     "sysctl kernel.numa_balancing=0 where memory is placed on purpose (NVIDIA asks for it on Grace "
                     "Hopper)"};
}

Found shared_memory_folder(const DoctorFacts& facts) {
    const SharedMemoryFolderFacts& folder = facts.shared_memory;
    constexpr std::uint64_t small = std::uint64_t{64} << 20;  // default size in containers
    constexpr const char* remedy = "docker --shm-size=1g (or --ipc=host); mount -o remount,size=1g /dev/shm";
    constexpr const char* users =
        "isthmus itself shares frames without it; NCCL, PyTorch's workers and other programs beside it do not";
    if (folder.there == Seen::no) {
        return Diagnosis{Weight::note, fmt::format("there is no /dev/shm that this process may write; {}", users),
                         "mount -t tmpfs tmpfs /dev/shm; docker --shm-size=1g"};
    }
    if (folder.there != Seen::yes || (folder.size_bytes > small && folder.free_bytes >= folder.size_bytes / 16)) {
        return std::nullopt;
    }
    return Diagnosis{Weight::note,
                     fmt::format("/dev/shm has {}, of which {} are free; {}", size_text(folder.size_bytes),
                                 size_text(folder.free_bytes), users),
                     folder.size_bytes > small ? "remove what nobody uses from /dev/shm, or make it larger: mount -o "
                                                 "remount,size=… /dev/shm"
                                               : remedy};
}

Found missing_gpu_code(const DoctorFacts& facts) {
    if (facts.machine.simulated) return std::nullopt;  // the simulator does not run compiled kernels
    for (std::size_t number = 0; number < facts.opening.devices.size(); ++number) {
        const DeviceSighting& device = facts.opening.devices[number];
        const GpuCode code = gpu_code(facts.kernels, device);
        if (code == GpuCode::unknown || code == GpuCode::ready) continue;
        std::string has = facts.kernels.machine_code.empty()
                              ? std::string("no machine code")
                              : fmt::format("machine code for {}", fmt::join(facts.kernels.machine_code, ", "));
        if (facts.kernels.ptx != 0) has += fmt::format(" and PTX for {}", facts.kernels.ptx);
        const std::string evidence =
            fmt::format("{} has compute capability {}.{}, and the kernels of this command have {}",
                        device_words(facts, number), device.compute_major, device.compute_minor, has);
        if (code == GpuCode::none) {
            return Diagnosis{Weight::problem,
                             evidence + ": isthmus run, litmus and view --corners cannot run them on this GPU",
                             "install an isthmus with GPU code for this GPU; until then --device cpu, or --machine"};
        }
        return Diagnosis{Weight::note, evidence + ": the driver compiles them when they are first used",
                         "nothing to mend where a slow first start does not matter; keep the driver's cache "
                         "(~/.nv/ComputeCache, CUDA_CACHE_PATH) between runs of containers"};
    }
    return std::nullopt;
}

Found clocks(const DoctorFacts& facts) {
    std::string evidence;
    const auto other = [](const std::string& governor) { return governor != "performance"; };
    if (std::any_of(facts.cpu_governors.begin(), facts.cpu_governors.end(), other))
        evidence = fmt::format("the CPUs' clock governor is {}", fmt::join(facts.cpu_governors, ", "));
    if (facts.gpu_clock_least_hz < facts.gpu_clock_most_hz) {
        evidence += fmt::format("{}the board's GPU runs between {} and {} MHz", evidence.empty() ? "" : "; ",
                                facts.gpu_clock_least_hz / 1000000, facts.gpu_clock_most_hz / 1000000);
    }
    if (evidence.empty()) return std::nullopt;
    return Diagnosis{facts.real_time.wanted ? Weight::warning : Weight::note,
                     evidence + ": clocks follow the load, so that short work is slow and times differ",
                     facts.tegra ? "for measuring and real time: jetson_clocks (as root)"
                                 : "for measuring and real time: cpupower frequency-set -g performance, and nvidia-smi "
                                   "-lgc for the GPU's clocks (as root)"};
}

Found power_mode(const DoctorFacts& facts) {
    const PowerMode* current = nullptr;
    const PowerMode* fastest = nullptr;
    for (const PowerMode& mode : facts.power_modes) {
        if (mode.id == facts.power_mode) current = &mode;
        if (fastest == nullptr && mode.name.rfind("MAXN", 0) == 0) fastest = &mode;
    }
    if (current == nullptr || fastest == nullptr || current->name.rfind("MAXN", 0) == 0) return std::nullopt;
    return Diagnosis{
        facts.real_time.wanted ? Weight::warning : Weight::note,
        fmt::format("the board's power mode is {} ({}): fewer processors or lower clocks than {} ({})", current->name,
                    current->id, fastest->name, fastest->id),
        fmt::format("nvpmodel -m {} (as root; some modes need a restart), where power and cooling allow", fastest->id)};
}

}  // namespace isthmus::tools
