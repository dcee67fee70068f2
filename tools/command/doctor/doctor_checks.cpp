// SPDX-License-Identifier: Apache-2.0
// The checks, one function each. An unknown fact leads to no finding.
#include "doctor_checks.hpp"

#include "doctor_real_time.hpp"
#include "doctor_sharing.hpp"
#include "doctor_system.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace isthmus::tools {
namespace {

using Found = std::optional<Diagnosis>;

bool gpu_expected(const DoctorFacts& facts) {
    return facts.gpus_on_bus > 0 || facts.tegra || facts.wsl || !facts.module_version.empty() ||
           !facts.device_files.empty();
}
bool init_said(const DoctorFacts& facts, int driver_code) {
    return facts.opening.absent && facts.opening.driver_code == driver_code;
}
std::string said(const DoctorFacts& facts) {
    const OpeningFacts& opening = facts.opening;
    // There is no driver code: the driver was not called, or the library judged its answer here.
    if (opening.call.empty() || opening.driver_code == 0) return opening.message;
    return fmt::format("{} returned {}: {}", opening.call, opening.driver_code, opening.message);
}
std::string hardware(const DoctorFacts& facts) {
    if (facts.wsl) return "this is WSL2";
    if (facts.tegra) return "this is a Tegra board";
    if (facts.gpus_on_bus > 0) return fmt::format("{} NVIDIA GPU(s) on the PCI bus", facts.gpus_on_bus);
    if (!facts.module_version.empty()) return fmt::format("kernel module {} is loaded", facts.module_version);
    return "device files exist";
}
int release_number(std::string_view release, int part) {
    int number = 0;
    for (const char character : release) {
        if (character >= '0' && character <= '9') {
            number = number < 100000 ? number * 10 + (character - '0') : number;
        } else if (character == '.' && part > 0) {
            --part;
            number = 0;
        } else {
            break;
        }
    }
    return part == 0 ? number : 0;
}
bool kernel_has_hmm(const std::string& release) {
    // HMM needs Linux 6.1.24, 6.2.11, or 6.3 and later, as documented for the open kernel module.
    const int version = release_number(release, 0) * 1000 + release_number(release, 1);
    const int patch = release_number(release, 2);
    return version >= 6003 || (version == 6002 && patch >= 11) || (version == 6001 && patch >= 24);
}

Found no_driver(const DoctorFacts& facts) {
    if (!facts.opening.absent || facts.opening.code != Code::no_driver) return std::nullopt;
    if (!gpu_expected(facts)) {
        return Diagnosis{Weight::note, facts.opening.message + "; no NVIDIA GPU was found either",
                         "nothing to mend: the CPU device works; install an NVIDIA driver where a GPU is there"};
    }
    return Diagnosis{Weight::problem, facts.opening.message + "; but " + hardware(facts),
                     facts.container ? "start the container with the driver's libraries: docker run --gpus all (needs "
                                       "nvidia-container-toolkit; on Jetson: --runtime nvidia)"
                                     : "install the NVIDIA driver (Debian: nvidia-driver; Ubuntu: ubuntu-drivers "
                                       "install; Jetson: nvidia-l4t-cuda), or add its folder to the loader's path"};
}

Found driver_too_old(const DoctorFacts& facts) {
    if (!facts.opening.absent || facts.opening.code != Code::driver_too_old) return std::nullopt;
    return Diagnosis{Weight::problem, said(facts),
                     "install a newer NVIDIA driver: docs/support.md names the oldest that works"};
}

Found stub_library(const DoctorFacts& facts) {
    const bool loaded = facts.opening.library.find("/stubs/") != std::string::npos;
    if (!init_said(facts, 34) && !loaded && facts.stub_folders.empty()) return std::nullopt;
    const Weight weight = loaded || init_said(facts, 34) ? Weight::problem : Weight::warning;
    std::string evidence = loaded ? "the loader opened " + facts.opening.library : std::string();
    if (init_said(facts, 34)) evidence += (evidence.empty() ? "" : "; ") + said(facts);
    if (!facts.stub_folders.empty()) {
        evidence +=
            fmt::format("{}LD_LIBRARY_PATH has {}", evidence.empty() ? "" : "; ", fmt::join(facts.stub_folders, ", "));
    }
    return Diagnosis{weight, evidence,
                     "take the toolkit's stubs folder out of LD_LIBRARY_PATH: it is for linking, not for running"};
}

Found module_mismatch(const DoctorFacts& facts) {
    if (!init_said(facts, 803)) return std::nullopt;
    return Diagnosis{Weight::problem,
                     fmt::format("{}; kernel module {}, library {}", said(facts),
                                 facts.module_version.empty() ? "unknown" : facts.module_version,
                                 facts.opening.library.empty() ? "unknown" : facts.opening.library),
                     facts.container ? "use the host's driver libraries in the container, not the image's own "
                                       "(remove libcuda.so.1 from the image)"
                                     : "after a driver update: restart, or unload and load the nvidia modules; remove "
                                       "leftover libcuda.so.1 of another version"};
}

Found compat_library(const DoctorFacts& facts) {
    if (!init_said(facts, 804)) return std::nullopt;
    return Diagnosis{Weight::problem, fmt::format("{}; library {}", said(facts), facts.opening.library),
                     "forward compatibility works on data-centre GPUs and Jetson only: remove the cuda-compat folder "
                     "from LD_LIBRARY_PATH, or update the driver"};
}

Found init_unknown(const DoctorFacts& facts) {
    if (!init_said(facts, 999)) return std::nullopt;
    return Diagnosis{Weight::problem, said(facts),
                     "look into the kernel's log (dmesg | grep -i -e nvrm -e xid); load nvidia_uvm (modprobe "
                     "nvidia-uvm); after suspend: reload it; else restart"};
}

Found open_files(const DoctorFacts& facts) {
    constexpr std::uint64_t fatal = 64;
    constexpr std::uint64_t small = 256;
    if (facts.open_files_limit >= small) return std::nullopt;
    const bool problem = facts.open_files_limit < fatal;
    return Diagnosis{problem ? Weight::problem : Weight::warning,
                     fmt::format("the process may open {} files; the driver opens some dozens, and says 'no device' "
                                 "(100) when it cannot",
                                 facts.open_files_limit),
                     "ulimit -n 1024, or LimitNOFILE= of the service"};
}

Found address_space(const DoctorFacts& facts) {
    if (facts.address_space_limit_bytes == unlimited) return std::nullopt;
    const bool fatal = init_said(facts, 2);
    return Diagnosis{fatal ? Weight::problem : Weight::warning,
                     fmt::format("the address space is limited to {} bytes{}", facts.address_space_limit_bytes,
                                 fatal ? ", and the driver ran out of memory" : "; the driver reserves more than RAM"),
                     "ulimit -v unlimited; limit memory with a cgroup instead"};
}

Found locked_memory(const DoctorFacts& facts) {
    constexpr std::uint64_t small = std::uint64_t{64} << 20;
    if (facts.machine.memlock_limit_bytes >= small) return std::nullopt;
    const bool hinders = facts.real_time.wanted && facts.real_time.ipc_lock != Seen::yes;
    return Diagnosis{hinders ? Weight::problem : Weight::note,
                     fmt::format("RLIMIT_MEMLOCK is {} bytes; CUDA's own pinning is not limited by it, but memory "
                                 "locked for real-time use is",
                                 facts.machine.memlock_limit_bytes),
                     "ulimit -l unlimited, LimitMEMLOCK=infinity of the service, docker --ulimit memlock=-1"};
}

Found memory_cgroup(const DoctorFacts& facts) {
    const std::uint64_t limit = facts.machine.memory_limit_bytes;
    if (limit == 0 || facts.memory_bytes == 0 || limit >= facts.memory_bytes) return std::nullopt;
    constexpr std::uint64_t small = std::uint64_t{1} << 30;
    return Diagnosis{limit < small ? Weight::warning : Weight::note,
                     fmt::format("the memory cgroup allows {} of {} bytes; pinned memory counts, and on machines with "
                                 "one DRAM so does the GPU's",
                                 limit, facts.memory_bytes),
                     "raise it where needed: docker --memory, MemoryMax= of the service"};
}

Found container_without_devices(const DoctorFacts& facts) {
    if (!facts.container || !facts.device_files.empty() || facts.wsl) return std::nullopt;
    const bool hidden = facts.gpus_on_bus > 0 || facts.tegra || !facts.module_version.empty();
    if (!hidden) return std::nullopt;
    return Diagnosis{Weight::problem, "this is a container without /dev/nvidia*, but " + hardware(facts),
                     "docker run --gpus all, or podman run --device nvidia.com/gpu=all; on Jetson: --runtime nvidia"};
}

Found numa_forbidden(const DoctorFacts& facts) {
    if (!facts.placement.tried || facts.placement.bind_code == Code::ok) return std::nullopt;
    const auto has_cpus = [](const NumaNode& node) { return node.cpu_count > 0; };
    const auto nodes = std::count_if(facts.machine.numa_nodes.begin(), facts.machine.numa_nodes.end(), has_cpus);
    return Diagnosis{nodes > 1 ? Weight::warning : Weight::note,
                     fmt::format("{}; this machine has {} node(s) with CPUs", facts.placement.bind_failure, nodes),
                     nodes > 1 ? "docker --cap-add SYS_NICE, or a seccomp profile that lets mbind and move_pages pass"
                               : "nothing to mend while there is one node: placement falls back by itself"};
}

Found huge_pages(const DoctorFacts& facts) {
    if (!facts.placement.tried || facts.placement.huge_works) return std::nullopt;
    return Diagnosis{Weight::note,
                     fmt::format("huge pages could not be had: {}; free in the pool: {}; transparent: {}",
                                 facts.placement.huge_failure, facts.huge_pages_free,
                                 facts.transparent_huge_pages.empty() ? "unknown" : facts.transparent_huge_pages),
                     "sysctl vm.nr_hugepages=N, or echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

Found wsl(const DoctorFacts& facts) {
    if (!facts.wsl) return std::nullopt;
    return Diagnosis{Weight::note,
                     "this is WSL2: managed memory is never concurrent there, the GPU does not read ordinary host "
                     "memory, and registered memory has another address on the device",
                     "nothing to mend: paths follow what the driver says; the driver is the Windows one, install none "
                     "in the distribution"};
}

Found hmm(const DoctorFacts& facts) {
    if (facts.machine.simulated || facts.wsl || facts.tegra || facts.opening.devices.empty()) return std::nullopt;
    const auto reads = [](const DeviceSighting& device) { return device.pageable_access; };
    if (std::any_of(facts.opening.devices.begin(), facts.opening.devices.end(), reads)) return std::nullopt;
    std::string missing;
    const auto add = [&](const char* what) { missing.append(missing.empty() ? "" : ", ").append(what); };
    const auto new_enough = [](const DeviceSighting& device) {
        return device.compute_major * 10 + device.compute_minor >= 75;
    };
    if (std::none_of(facts.opening.devices.begin(), facts.opening.devices.end(), new_enough))
        add("a GPU of compute "
            "capability 7.5");
    if (!kernel_has_hmm(facts.machine.kernel_release)) add("Linux 6.1.24, 6.2.11 or 6.3");
    if (!facts.module_version.empty() && !facts.open_module) add("the open kernel module");
    if (facts.uvm_disable_hmm == "Y") add("nvidia_uvm without uvm_disable_hmm=1");
    return Diagnosis{Weight::note,
                     missing.empty() ? "the GPU does not read ordinary host memory, though nothing that is known here "
                                       "stands against HMM"
                                     : "the GPU does not read ordinary host memory (HMM is off); missing: " + missing,
                     "only if malloc'ed memory shall be used by the GPU directly: provide what is missing; pinned and "
                     "managed memory work without"};
}

Found nouveau(const DoctorFacts& facts) {
    if (!facts.nouveau || !facts.module_version.empty()) return std::nullopt;
    return Diagnosis{Weight::problem, "the nouveau module is loaded and NVIDIA's is not: the GPU is taken",
                     "install NVIDIA's driver and blacklist nouveau (modprobe.d: blacklist nouveau), then restart"};
}

Found hidden_by_variable(const DoctorFacts& facts) {
    if (!facts.visible_devices_set || !facts.opening.absent || facts.opening.code != Code::no_device) {
        return std::nullopt;
    }
    return Diagnosis{Weight::problem,
                     fmt::format("CUDA_VISIBLE_DEVICES is '{}', and the driver shows no device", facts.visible_devices),
                     "unset CUDA_VISIBLE_DEVICES, or name a device that exists (0, or a UUID from nvidia-smi -L)"};
}

Found no_permission(const DoctorFacts& facts) {
    if (facts.forbidden_files.empty()) return std::nullopt;
    return Diagnosis{Weight::problem, fmt::format("this user may not open {}", fmt::join(facts.forbidden_files, ", ")),
                     "add the user to the group that owns them (often video or render), then log in again"};
}

std::string end_of(ProbeEnd end, int signal) {
    if (end == ProbeEnd::crashed) return fmt::format("ended with signal {}", signal);
    if (end == ProbeEnd::hung) return "did not end before the deadline";
    return "could not be run";
}

Found probe_died(const DoctorFacts& facts) {
    std::string evidence;
    if (facts.opening.end != ProbeEnd::finished) {
        evidence = "opening the driver " + end_of(facts.opening.end, facts.opening.signal);
        if (!facts.opening.message.empty()) evidence += ": " + facts.opening.message;
    } else if (facts.use.tried && facts.use.end != ProbeEnd::finished) {
        evidence = "creating a context and allocating 1 MiB " + end_of(facts.use.end, facts.use.signal);
    }
    if (evidence.empty()) return std::nullopt;
    return Diagnosis{
        Weight::problem, evidence,
        "look into the kernel's log (dmesg | grep -i xid); a hung or fallen GPU needs a reset or a restart"};
}

Found no_device(const DoctorFacts& facts) {
    if (!facts.opening.absent || facts.opening.code != Code::no_device || facts.visible_devices_set) {
        return std::nullopt;
    }
    return Diagnosis{
        Weight::problem,
        said(facts) + "; " + (gpu_expected(facts) ? hardware(facts) : "no NVIDIA GPU was found on the bus"),
        facts.container ? "give the container a GPU: docker run --gpus all"
                        : "see whether the GPU is there (lspci) and in order (nvidia-smi, dmesg); too few "
                          "open files look the same"};
}

Found other_failure(const DoctorFacts& facts) {
    if (!facts.opening.absent) return std::nullopt;
    if (init_said(facts, 2) && facts.address_space_limit_bytes != unlimited) return std::nullopt;
    for (const int explained : {34, 304, 803, 804, 999}) {
        if (init_said(facts, explained)) return std::nullopt;
    }
    switch (facts.opening.code) {
        case Code::no_driver:
        case Code::driver_too_old:
        case Code::no_device: return std::nullopt;
        default: break;
    }
    return Diagnosis{Weight::problem, said(facts), "see docs/errors.md for the code, and the kernel's log (dmesg)"};
}

Found compute_mode(const DoctorFacts& facts) {
    for (std::size_t number = 0; number < facts.opening.devices.size(); ++number) {
        const DeviceSighting& device = facts.opening.devices[number];
        if (device.compute_mode == 2) {
            return Diagnosis{Weight::problem,
                             device_words(facts, number) + " is in prohibited compute mode: no context can be made",
                             "nvidia-smi -c DEFAULT (as root)"};
        }
        if (device.compute_mode == 3) {
            return Diagnosis{Weight::warning,
                             device_words(facts, number) + " is in exclusive compute mode: one process at a time",
                             "nvidia-smi -c DEFAULT (as root) where several processes shall share it"};
        }
    }
    return std::nullopt;
}

Found process_limit(const DoctorFacts& facts) {
    constexpr std::uint64_t small = 64;
    if (!init_said(facts, 304) && facts.processes_limit >= small) return std::nullopt;
    return Diagnosis{
        init_said(facts, 304) ? Weight::problem : Weight::warning,
        fmt::format("{}this user may have {} threads and processes; the driver starts some of its own",
                    init_said(facts, 304) ? said(facts) + "; " : std::string(),
                    facts.processes_limit == unlimited ? "any number of" : std::to_string(facts.processes_limit)),
        "ulimit -u 4096, LimitNPROC= or TasksMax= of the service, docker --pids-limit"};
}

Found device_unusable(const DoctorFacts& facts) {
    if (!facts.use.tried || facts.use.end != ProbeEnd::finished || facts.use.failure.empty()) return std::nullopt;
    return Diagnosis{Weight::problem, "a device is there, but using it failed: " + facts.use.failure,
                     "see whether another process fills its memory (nvidia-smi), and the kernel's log (dmesg)"};
}

Found profile(const DoctorFacts& facts) {
    const ProfileFacts& seen = facts.profile;
    if (!seen.failure.empty()) {
        return Diagnosis{Weight::problem, "no program of this user opens a runtime: " + seen.failure,
                         "write it again with `isthmus tune`, or remove it"};
    }
    if (seen.unused.empty()) return std::nullopt;
    std::string evidence;
    for (const std::string& line : seen.unused) evidence += (evidence.empty() ? "" : "; ") + line;
    return Diagnosis{Weight::note, evidence, "`isthmus tune` measures this machine as it is now"};
}

constexpr Check checks[] = {
    {"D001", "no NVIDIA driver library", no_driver},
    {"D002", "the driver is too old", driver_too_old},
    {"D003", "a stub library stands before the driver", stub_library},
    {"D004", "kernel module and driver library disagree", module_mismatch},
    {"D005", "a compatibility library that this GPU does not support", compat_library},
    {"D006", "the driver could not start (999)", init_unknown},
    {"D007", "too few open files allowed", open_files},
    {"D008", "the address space is limited", address_space},
    {"D009", "little memory may be locked", locked_memory},
    {"D010", "a memory cgroup limits this process", memory_cgroup},
    {"D011", "a container without the GPU's device files", container_without_devices},
    {"D012", "no IMEX channel for fabric handles", no_imex_channel},
    {"D013", "memory cannot be placed on NUMA nodes", numa_forbidden},
    {"D014", "no huge pages", huge_pages},
    {"D015", "WSL2", wsl},
    {"D016", "the GPU does not read ordinary host memory", hmm},
    {"D017", "nouveau holds the GPU", nouveau},
    {"D018", "CUDA_VISIBLE_DEVICES hides every device", hidden_by_variable},
    {"D019", "device files that this user may not open", no_permission},
    {"D020", "the driver crashed or hung", probe_died},
    {"D021", "the driver shows no device", no_device},
    {"D022", "the driver could not start", other_failure},
    {"D023", "compute mode", compute_mode},
    {"D024", "too few processes allowed", process_limit},
    {"D025", "a device that cannot be used", device_unusable},
    {"D026", "no GPU exports fabric handles", no_fabric_attribute},
    {"D027", "the kernel driver has no IMEX channels", no_imex_major},
    {"D028", "an IMEX channel of another device", foreign_imex_channel},
    {"D029", "an IMEX channel that this user may not open", forbidden_imex_channel},
    {"D030", "no IMEX daemon", no_imex_daemon},
    {"D031", "fabric handles do not work", fabric_fails},
    {"D032", "another IMEX channel than the other end's", other_imex_channel},
    {"D033", "file descriptors of GPU memory do not work", posix_fd_fails},
    {"D034", "no real-time priority", no_realtime},
    {"D035", "automatic NUMA balancing", numa_balancing},
    {"D036", "little or no /dev/shm", shared_memory_folder},
    {"D037", "no machine code for this GPU in this build", missing_gpu_code},
    {"D038", "clocks that follow the load", clocks},
    {"D039", "a power mode below the greatest", power_mode},
    {"D040", "a profile that is damaged or not used", profile},
    {"D041", "a kernel without PREEMPT_RT", no_preempt_rt},
    {"D042", "no isolated CPUs", no_isolated_cpus},
    {"D043", "real-time threads are throttled", realtime_throttling},
    {"D044", "the GPU's interrupts on isolated CPUs", gpu_interrupts},
    {"D045", "idle states that take long to leave", deep_idle_states},
    {"D046", "transparent huge pages everywhere", huge_pages_always},
};

}  // namespace

std::string_view name(Weight weight) noexcept {
    switch (weight) {
        case Weight::note: return "note";
        case Weight::warning: return "warning";
        case Weight::problem: return "problem";
    }
    return "unknown";
}

std::string device_words(const DoctorFacts& facts, std::size_t number) {
    return fmt::format("GPU {} ({})", number, facts.opening.devices[number].name);
}

std::span<const Check> all_checks() noexcept {
    return checks;
}

std::vector<Finding> diagnose(const DoctorFacts& facts) {
    std::vector<Finding> findings;
    for (const Check& check : checks) {
        if (std::optional<Diagnosis> found = check.look(facts)) {
            findings.push_back(
                {check.id, check.title, found->weight, std::move(found->evidence), std::move(found->remedy)});
        }
    }
    std::stable_sort(findings.begin(), findings.end(),
                     [](const Finding& one, const Finding& other) { return one.weight > other.weight; });
    return findings;
}

}  // namespace isthmus::tools
