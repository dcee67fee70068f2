// SPDX-License-Identifier: Apache-2.0
// The facts that the doctor checks: gathered once, then read only. Every member has a value that means "not known".
#pragma once

#include "common/probe.hpp"

#include <isthmus/export_finding.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/result.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools {

inline constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

struct DeviceSighting {
    std::string name;
    int compute_mode = 0;          // attribute 20: 0 default, 2 prohibited, 3 one process only
    bool fabric = false;           // attribute 128
    bool pageable_access = false;  // attribute 88
    int compute_major = 0;
    int compute_minor = 0;
    bool integrated = false;  // attribute 18
};

// The result of opening the runtime in a child process.
struct OpeningFacts {
    ProbeEnd end = ProbeEnd::finished;
    int signal = 0;
    std::string library;  // the file behind libcuda.so.1; empty: none was loaded
    bool absent = false;  // no CUDA device was opened: the next four members give the reason
    Code code = Code::ok;
    int driver_code = 0;  // CUresult
    std::string call;
    std::string message;
    std::vector<DeviceSighting> devices;  // without the CPU device
};

// The result of using the device in a child process: create a context, allocate 1 MiB and free it.
struct UseFacts {
    bool tried = false;
    ProbeEnd end = ProbeEnd::finished;
    int signal = 0;
    std::string failure;  // empty: the device worked
};

// The result of binding memory to NUMA nodes and asking for huge pages in a child process.
struct PlacementFacts {
    bool tried = false;
    Code bind_code = Code::ok;
    std::string bind_failure;
    int bind_errno = 0;
    bool huge_works = false;
    std::string huge_failure;
};

// One file of /dev/nvidia-caps-imex-channels.
struct ImexChannel {
    int number = 0;       // the number in the file's name
    int major = -1;       // major number of the character device; -1: the file is no character device
    std::string failure;  // of opening it for reading and writing; empty: it could be opened
};

enum class Seen { unknown, no, yes };

// What fabric handles need besides the attribute and the driver's major number (MachineFacts::imex_channels_major).
struct ImexFacts {
    bool wanted = false;               // --fabric: a missing piece is a problem
    std::optional<int> other_channel;  // --fabric-channel: the channel of the other end
    std::vector<ImexChannel> channels;
    Seen daemon = Seen::unknown;  // whether a process named nvidia-imex runs
};

// The targets of this build's kernels, as numbers of compute capabilities: 87 for 8.7.
struct KernelCodeFacts {
    bool known = false;             // false: the images were compiled elsewhere
    std::vector<int> machine_code;  // SASS
    int ptx = 0;                    // 0: none
};

struct SharedMemoryFolderFacts {  // /dev/shm
    Seen there = Seen::unknown;   // whether it exists and is writable
    std::uint64_t size_bytes = 0;
    std::uint64_t free_bytes = 0;
};

// The profile of `isthmus tune` that programs of this user read.
struct ProfileFacts {
    bool in_use = false;  // by a device
    std::string failure;  // what Runtime::open() answers because of it; empty: it can be read, or there is none
    std::vector<std::string> unused;  // what the runtime logs about entries that do not apply here
};

struct PowerMode {  // of a Jetson, with nvpmodel's number and name
    int id = -1;
    std::string name;
};

struct Interrupt {
    int number = 0;
    std::string name;       // the last words of its line in /proc/interrupts
    std::vector<int> cpus;  // that it may go to
};

struct IdleState {
    std::string name;
    std::uint64_t latency_us = 0;  // to leave it
};

// What a loop with a deadline needs, gathered for --real-time alone.
struct RealTimeFacts {
    bool wanted = false;              // --real-time: what lacks is a problem or a warning
    Seen ipc_lock = Seen::unknown;    // whether CAP_IPC_LOCK is effective: no limit on locked memory
    Seen preempt_rt = Seen::unknown;  // /sys/kernel/realtime, else the kernel's version
    std::string kernel_version;       // uname -v
    Seen cpus = Seen::unknown;        // whether the next three lists could be read
    std::vector<int> online;
    std::vector<int> isolated;           // isolcpus=, and isolated partitions of cpusets
    std::vector<int> tickless;           // nohz_full=
    std::optional<long> runtime_us;      // kernel.sched_rt_runtime_us; -1: not limited
    long period_us = 0;                  // kernel.sched_rt_period_us
    std::vector<Interrupt> of_gpu;       // interrupts of NVIDIA's drivers
    Seen idle = Seen::unknown;           // whether the CPUs' idle states are stated
    std::vector<IdleState> idle_states;  // those that are on for a CPU, each name once
};

struct DoctorFacts {
    MachineFacts machine;
    OpeningFacts opening;
    UseFacts use;
    PlacementFacts placement;
    ImexFacts imex;
    std::vector<ExportFinding> exports;  // one for each device and kind of handle that could be tried

    ProfileFacts profile;
    RealTimeFacts real_time;

    std::string module_version;  // of the kernel module; empty: not loaded
    bool open_module = false;    // the open-source kernel module
    bool nouveau = false;        // the nouveau driver holds the GPU
    int gpus_on_bus = 0;         // NVIDIA display and 3D controllers on PCI
    bool tegra = false;          // a Jetson: its GPU is not on the PCI bus
    bool container = false;
    std::vector<std::string> device_files;     // /dev/nvidia*, and on Tegra /dev/nvmap, /dev/nvhost*
    std::vector<std::string> forbidden_files;  // of device_files: those that this user may not open
    // Directories of LD_LIBRARY_PATH that have a libcuda.so and are named "stubs".
    std::vector<std::string> stub_folders;
    std::string visible_devices;  // CUDA_VISIBLE_DEVICES
    bool visible_devices_set = false;
    bool wsl = false;
    std::string uvm_disable_hmm;  // the parameter of the nvidia_uvm module: "Y", "N"; empty: unknown

    std::uint64_t open_files_limit = unlimited;
    std::uint64_t processes_limit = unlimited;
    std::uint64_t address_space_limit_bytes = unlimited;
    std::uint64_t memory_bytes = 0;  // MemTotal
    std::uint64_t huge_pages_free = 0;
    std::string transparent_huge_pages;  // "always", "madvise", "never"; empty: unknown

    KernelCodeFacts kernels;
    Seen realtime = Seen::unknown;                      // the result of asking for SCHED_FIFO in a child process
    std::string realtime_failure;                       // the system's message where it was refused
    std::uint64_t realtime_priority_limit = unlimited;  // RLIMIT_RTPRIO
    Seen sys_nice = Seen::unknown;                      // whether CAP_SYS_NICE is effective
    Seen numa_balancing = Seen::unknown;                // kernel.numa_balancing
    SharedMemoryFolderFacts shared_memory;
    std::vector<std::string> cpu_governors;  // the distinct governors of all processors, in order; empty: unknown
    std::uint64_t gpu_clock_least_hz = 0;    // lowest clock that the board's GPU may have now, in Hz; 0: unknown
    std::uint64_t gpu_clock_most_hz = 0;
    std::string gpu_clock_file;  // states the clock that the board's GPU has now, in Hz; empty: unknown
    int power_mode = -1;         // the mode that is set; -1: unknown
    std::vector<PowerMode> power_modes;
};

}  // namespace isthmus::tools
