// SPDX-License-Identifier: Apache-2.0
// The doctor on invented machines: every finding where its fact is present, and none where it is not.
#include "doctor/doctor_checks.hpp"
#include "doctor/doctor_fine.hpp"
#include "doctor/doctor_system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

namespace isthmus::tools {
namespace {

// A workstation without problems.
DoctorFacts healthy() {
    DoctorFacts facts;
    facts.machine.kernel_release = "6.8.0-45-generic";
    facts.machine.memlock_limit_bytes = unlimited;
    facts.machine.numa_nodes = {{0, 16, std::uint64_t{64} << 30}, {1, 16, std::uint64_t{64} << 30}};
    facts.machine.driver_version = 13000;
    facts.opening.library = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04";
    facts.opening.devices = {{"GPU", 0, false, true, 9, 0}};
    facts.use.tried = true;
    facts.placement.tried = true;
    facts.placement.huge_works = true;
    facts.module_version = "580.159.04";
    facts.open_module = true;
    facts.gpus_on_bus = 1;
    facts.device_files = {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"};
    facts.open_files_limit = 1024;
    facts.memory_bytes = std::uint64_t{128} << 30;
    facts.transparent_huge_pages = "madvise";
    facts.kernels = {true, {75, 80, 90}, 75};
    facts.realtime = Seen::yes;
    facts.realtime_priority_limit = 0;
    facts.sys_nice = Seen::yes;
    facts.numa_balancing = Seen::no;
    facts.shared_memory = {Seen::yes, std::uint64_t{64} << 30, std::uint64_t{60} << 30};
    facts.cpu_governors = {"performance"};
    return facts;
}

void fail_init(DoctorFacts& facts, Code code, int driver_code) {
    facts.opening.absent = true;
    facts.opening.code = code;
    facts.opening.driver_code = driver_code;
    facts.opening.call = driver_code != 0 ? "cuInit" : "";
    facts.opening.message = "made up";
    facts.opening.devices.clear();
    facts.use = {};
}

ExportFinding failed_try(ExportKinds kind, ExportStep step) {
    ExportFinding finding;
    finding.kind = kind;
    finding.failed = step;
    if (step == ExportStep::create) finding.call = "cuMemCreate", finding.driver_code = 800;
    if (step == ExportStep::export_handle) finding.call = "cuMemExportToShareableHandle", finding.driver_code = 801;
    if (step == ExportStep::import_handle) finding.call = "cuMemImportFromShareableHandle", finding.driver_code = 999;
    if (step == ExportStep::survive) finding.message = "signal 11";
    return finding;
}

// A GPU that reports support for exporting fabric handles, with all that they need, and a trial export that failed
// there.
void fabric(DoctorFacts& facts, ExportStep failed = ExportStep::create) {
    facts.opening.devices[0].fabric = true;
    facts.machine.imex_channels_major = 234;
    facts.imex.channels = {{0, 234, {}}};
    facts.imex.daemon = Seen::yes;
    facts.exports = {failed_try(ExportKinds::fabric, failed)};
}

// The same machine, prepared for loops with a deadline, and `isthmus doctor --real-time`.
void real_time(DoctorFacts& facts) {
    RealTimeFacts& seen = facts.real_time;
    seen.wanted = true;
    seen.preempt_rt = Seen::yes;
    seen.kernel_version = "#1 SMP PREEMPT_RT";
    seen.cpus = Seen::yes;
    seen.online = {0, 1, 2, 3, 4, 5};
    seen.isolated = {2, 3, 5};
    seen.tickless = {2, 3, 4, 5};
    seen.runtime_us = -1;
    seen.period_us = 1000000;
    seen.of_gpu = {{45, "nvidia", {0, 1}}};
    seen.idle = Seen::yes;
    seen.idle_states = {{"POLL", 0}, {"C1", 2}};
}

struct Case {
    std::string id;
    Weight weight;
    const char* says;  // must stand in the evidence or the remedy
    std::function<void(DoctorFacts&)> spoil;
};

const std::vector<Case>& cases() {
    static const std::vector<Case> all = {
        {"D001", Weight::problem, "kernel module",
         [](DoctorFacts& f) { f.gpus_on_bus = 0, fail_init(f, Code::no_driver, 0); }},
        {"D001", Weight::problem, "PCI bus", [](DoctorFacts& f) { fail_init(f, Code::no_driver, 0); }},
        {"D001", Weight::problem, "--gpus all",
         [](DoctorFacts& f) { f.container = true, fail_init(f, Code::no_driver, 0); }},
        {"D001", Weight::note, "nothing to mend",
         [](DoctorFacts& f) {
             f.gpus_on_bus = 0, f.module_version.clear(), f.device_files.clear(), fail_init(f, Code::no_driver, 0);
         }},
        {"D002", Weight::problem, "newer", [](DoctorFacts& f) { fail_init(f, Code::driver_too_old, 0); }},
        {"D003", Weight::problem, "returned 34", [](DoctorFacts& f) { fail_init(f, Code::driver_mismatch, 34); }},
        {"D003", Weight::problem, "/cuda/lib64/stubs/",
         [](DoctorFacts& f) { f.opening.library = "/cuda/lib64/stubs/libcuda.so"; }},
        {"D003", Weight::warning, "LD_LIBRARY_PATH has /cuda/stubs",
         [](DoctorFacts& f) { f.stub_folders = {"/cuda/stubs"}; }},
        {"D004", Weight::problem, "580.159.04", [](DoctorFacts& f) { fail_init(f, Code::driver_mismatch, 803); }},
        {"D004", Weight::problem, "host's driver",
         [](DoctorFacts& f) { f.container = true, fail_init(f, Code::driver_mismatch, 803); }},
        {"D005", Weight::problem, "cuda-compat", [](DoctorFacts& f) { fail_init(f, Code::driver_mismatch, 804); }},
        {"D006", Weight::problem, "nvidia_uvm", [](DoctorFacts& f) { fail_init(f, Code::driver_error, 999); }},
        {"D007", Weight::problem, "12 files", [](DoctorFacts& f) { f.open_files_limit = 12; }},
        {"D007", Weight::warning, "255 files", [](DoctorFacts& f) { f.open_files_limit = 255; }},
        {"D008", Weight::warning, "8589934592",
         [](DoctorFacts& f) { f.address_space_limit_bytes = std::uint64_t{8} << 30; }},
        {"D008", Weight::problem, "ran out of memory",
         [](DoctorFacts& f) {
             f.address_space_limit_bytes = std::uint64_t{8} << 30, fail_init(f, Code::out_of_memory, 2);
         }},
        {"D009", Weight::note, "8388608", [](DoctorFacts& f) { f.machine.memlock_limit_bytes = 8388608; }},
        {"D010", Weight::note, "137438953472",
         [](DoctorFacts& f) { f.machine.memory_limit_bytes = std::uint64_t{4} << 30; }},
        {"D010", Weight::warning, "536870912", [](DoctorFacts& f) { f.machine.memory_limit_bytes = 536870912; }},
        {"D011", Weight::problem, "--gpus all", [](DoctorFacts& f) { f.container = true, f.device_files.clear(); }},
        {"D012", Weight::note, "major number 234", [](DoctorFacts& f) { fabric(f), f.imex.channels.clear(); }},
        {"D012", Weight::problem, "nvidia-modprobe",
         [](DoctorFacts& f) { fabric(f), f.imex.channels.clear(), f.imex.wanted = true; }},
        {"D013", Weight::warning, "2 node(s)",
         [](DoctorFacts& f) {
             f.placement.bind_code = Code::not_permitted, f.placement.bind_failure = "mbind is forbidden";
         }},
        {"D013", Weight::note, "nothing to mend",
         [](DoctorFacts& f) { f.placement.bind_code = Code::unsupported, f.machine.numa_nodes.resize(1); }},
        {"D014", Weight::note, "never",
         [](DoctorFacts& f) { f.placement.huge_works = false, f.transparent_huge_pages = "never"; }},
        {"D015", Weight::note, "WSL2", [](DoctorFacts& f) { f.wsl = true; }},
        {"D016", Weight::note, "nothing that is known",
         [](DoctorFacts& f) { f.opening.devices[0].pageable_access = false; }},
        {"D016", Weight::note, "missing: Linux 6.1.24",
         [](DoctorFacts& f) {
             f.opening.devices[0].pageable_access = false, f.machine.kernel_release = "6.1.0-18-amd64";
         }},
        {"D016", Weight::note, "missing: the open kernel module, nvidia_uvm",
         [](DoctorFacts& f) {
             f.opening.devices[0].pageable_access = false, f.open_module = false, f.uvm_disable_hmm = "Y";
         }},
        {"D016", Weight::note, "capability 7.5",
         [](DoctorFacts& f) { f.opening.devices[0] = {"old GPU", 0, false, false, 7, 0}, f.kernels.known = false; }},
        {"D017", Weight::problem, "nouveau", [](DoctorFacts& f) { f.nouveau = true, f.module_version.clear(); }},
        {"D018", Weight::problem, "'7'",
         [](DoctorFacts& f) {
             f.visible_devices_set = true, f.visible_devices = "7", fail_init(f, Code::no_device, 100);
         }},
        {"D019", Weight::problem, "/dev/nvidiactl", [](DoctorFacts& f) { f.forbidden_files = {"/dev/nvidiactl"}; }},
        {"D020", Weight::problem, "signal 11",
         [](DoctorFacts& f) { f.opening = {}, f.opening.end = ProbeEnd::crashed, f.opening.signal = 11, f.use = {}; }},
        {"D020", Weight::problem, "could not be run: fork",
         [](DoctorFacts& f) {
             f.opening = {}, f.opening.end = ProbeEnd::failed, f.opening.message = "fork: no", f.use = {};
         }},
        {"D020", Weight::problem, "deadline", [](DoctorFacts& f) { f.use.end = ProbeEnd::hung; }},
        {"D021", Weight::problem, "PCI bus", [](DoctorFacts& f) { fail_init(f, Code::no_device, 100); }},
        {"D022", Weight::problem, "returned 3", [](DoctorFacts& f) { fail_init(f, Code::driver_mismatch, 3); }},
        {"D022", Weight::problem, "returned 2", [](DoctorFacts& f) { fail_init(f, Code::out_of_memory, 2); }},
        {"D023", Weight::problem, "GPU 1 (second) is in prohibited",
         [](DoctorFacts& f) {
             f.opening.devices.push_back(f.opening.devices[0]);
             f.opening.devices[1].name = "second", f.opening.devices[1].compute_mode = 2;
         }},
        {"D023", Weight::problem, "prohibited", [](DoctorFacts& f) { f.opening.devices[0].compute_mode = 2; }},
        {"D023", Weight::warning, "exclusive", [](DoctorFacts& f) { f.opening.devices[0].compute_mode = 3; }},
        {"D024", Weight::warning, "20 threads", [](DoctorFacts& f) { f.processes_limit = 20; }},
        {"D024", Weight::problem, "returned 304", [](DoctorFacts& f) { fail_init(f, Code::driver_error, 304); }},
        {"D025", Weight::problem, "out of memory", [](DoctorFacts& f) { f.use.failure = "out of memory"; }},
        {"D026", Weight::problem, "attribute 128", [](DoctorFacts& f) { f.imex.wanted = true; }},
        {"D027", Weight::note, "/proc/devices", [](DoctorFacts& f) { fabric(f), f.machine.imex_channels_major = -1; }},
        {"D028", Weight::note, "major number 233", [](DoctorFacts& f) { fabric(f), f.imex.channels[0].major = 233; }},
        {"D028", Weight::note, "no character device", [](DoctorFacts& f) { fabric(f), f.imex.channels[0].major = -1; }},
        {"D029", Weight::note, "channel0: Permission denied",
         [](DoctorFacts& f) { fabric(f), f.imex.channels[0].failure = "Permission denied"; }},
        {"D030", Weight::note, "cuMemCreate returned 800",
         [](DoctorFacts& f) { fabric(f, ExportStep::create), f.imex.daemon = Seen::no; }},
        {"D030", Weight::warning, "other nodes",
         [](DoctorFacts& f) { fabric(f), f.exports[0].works = true, f.imex.wanted = true, f.imex.daemon = Seen::no; }},
        {"D031", Weight::note, "cuMemImportFromShareableHandle returned 999",
         [](DoctorFacts& f) { fabric(f, ExportStep::import_handle); }},
        {"D031", Weight::problem, "did not come back (signal 11)",
         [](DoctorFacts& f) { fabric(f, ExportStep::survive), f.imex.wanted = true; }},
        {"D031", Weight::note, "compare failed", [](DoctorFacts& f) { fabric(f, ExportStep::compare); }},
        {"D032", Weight::problem, "channel3, and this one has channel0",
         [](DoctorFacts& f) { fabric(f), f.exports[0].works = true, f.imex.other_channel = 3; }},
        {"D032", Weight::warning, "channel0, channel3",
         [](DoctorFacts& f) {
             fabric(f), f.exports[0].works = true, f.imex.other_channel = 3, f.imex.channels.push_back({3, 234, {}});
         }},
        {"D033", Weight::problem, "SharedFrameRing",
         [](DoctorFacts& f) { f.exports = {failed_try(ExportKinds::posix_fd, ExportStep::export_handle)}; }},
        {"D033", Weight::problem, "cuMemExportToShareableHandle returned 801 on GPU-07000000",
         [](DoctorFacts& f) {
             f.exports = {failed_try(ExportKinds::posix_fd, ExportStep::export_handle)};
             f.exports[0].device.bytes[0] = 7;
         }},
        {"D034", Weight::note, "(denied), so that threads wait for others under load; RLIMIT_RTPRIO is 0",
         [](DoctorFacts& f) { f.realtime = f.sys_nice = Seen::no, f.realtime_failure = "denied"; }},
        {"D034", Weight::note, "user namespace", [](DoctorFacts& f) { f.realtime = Seen::no; }},
        {"D035", Weight::warning, "2 nodes", [](DoctorFacts& f) { f.numa_balancing = Seen::yes; }},
        {"D036", Weight::note, "no /dev/shm",
         [](DoctorFacts& f) {
             f.shared_memory = {Seen::no, 0, 0};
         }},
        {"D036", Weight::note, "64 MiB",
         [](DoctorFacts& f) { f.shared_memory.size_bytes = f.shared_memory.free_bytes = 64 << 20; }},
        {"D036", Weight::note, "of which 0 bytes are free", [](DoctorFacts& f) { f.shared_memory.free_bytes = 0; }},
        {"D037", Weight::note, "9.0, and the kernels of this command have machine code for 75, 80 and PTX for 75",
         [](DoctorFacts& f) {
             f.kernels.machine_code = {75, 80};
         }},
        {"D037", Weight::problem, "cannot run them",
         [](DoctorFacts& f) {
             f.kernels = {true, {}, 0};
         }},
        {"D037", Weight::problem, "GPU 1 (old GPU) has compute capability 7.0",
         [](DoctorFacts& f) {
             f.opening.devices.push_back({"old GPU", 0, false, false, 7, 0});
         }},
        {"D038", Weight::note, "governor is performance, powersave",
         [](DoctorFacts& f) {
             f.cpu_governors = {"performance", "powersave"};
         }},
        {"D038", Weight::note, "between 306 and 1300 MHz",
         [](DoctorFacts& f) { f.gpu_clock_least_hz = 306000000, f.gpu_clock_most_hz = 1300500000; }},
        {"D039", Weight::note, "nvpmodel -m 0",
         [](DoctorFacts& f) {
             f.power_mode = 2, f.power_modes = {{0, "MAXN"}, {1, "MODE_15W"}, {2, "MODE_30W"}};
         }},
        {"D040", Weight::problem, "no program of this user opens a runtime: the profile x is damaged",
         [](DoctorFacts& f) { f.profile.failure = "the profile x is damaged"; }},
        {"D040", Weight::note, "of another driver; of another kernel",
         [](DoctorFacts& f) {
             f.profile.unused = {"of another driver", "of another kernel"};
         }},
        {"D009", Weight::problem, "8388608",
         [](DoctorFacts& f) { real_time(f), f.machine.memlock_limit_bytes = 8388608; }},
        {"D009", Weight::note, "8388608",
         [](DoctorFacts& f) {
             real_time(f), f.machine.memlock_limit_bytes = 8388608, f.real_time.ipc_lock = Seen::yes;
         }},
        {"D034", Weight::problem, "ulimit -r 99",
         [](DoctorFacts& f) { real_time(f), f.realtime = Seen::no, f.sys_nice = Seen::no; }},
        {"D035", Weight::warning, "numa_balancing=0",
         [](DoctorFacts& f) {
             real_time(f), f.machine.simulated = true, f.opening.devices[0].pageable_access = false,
                           f.numa_balancing = Seen::yes;
         }},
        {"D038", Weight::warning, "powersave", [](DoctorFacts& f) { real_time(f), f.cpu_governors = {"powersave"}; }},
        {"D039", Weight::warning, "nvpmodel -m 0",
         [](DoctorFacts& f) {
             real_time(f), f.power_mode = 2, f.power_modes = {{0, "MAXN"}, {2, "15W"}};
         }},
        {"D041", Weight::warning, "SMP PREEMPT_DYNAMIC",
         [](DoctorFacts& f) {
             real_time(f), f.real_time.preempt_rt = Seen::no, f.real_time.kernel_version = "#1 SMP PREEMPT_DYNAMIC";
         }},
        {"D041", Weight::warning, "nvidia-l4t-rt-kernel",
         [](DoctorFacts& f) { real_time(f), f.real_time.preempt_rt = Seen::no, f.tegra = true; }},
        {"D042", Weight::warning, "none of the CPUs 0-5",
         [](DoctorFacts& f) { real_time(f), f.real_time.isolated.clear(); }},
        {"D042", Weight::note, "nohz_full=3,5 rcu_nocbs=3,5",
         [](DoctorFacts& f) { real_time(f), f.real_time.tickless = {2}; }},
        {"D043", Weight::note, "950000 of 1000000",
         [](DoctorFacts& f) { real_time(f), f.real_time.runtime_us = 950000; }},
        {"D044", Weight::warning, "46 (nvidia) on 1-2",
         [](DoctorFacts& f) {
             real_time(f), f.real_time.of_gpu.push_back({46, "nvidia", {1, 2}});
         }},
        {"D044", Weight::warning, "echo 0-1,4 > /proc/irq/47/smp_affinity_list",
         [](DoctorFacts& f) {
             real_time(f), f.real_time.of_gpu.push_back({47, "nvgpu", {5}});
         }},
        {"D045", Weight::warning, "C6 (133 µs), C8 (200 µs)",
         [](DoctorFacts& f) {
             real_time(f), f.real_time.idle_states = {{"C1", 50}, {"C6", 133}, {"C8", 200}};
         }},
        {"D046", Weight::note, "khugepaged", [](DoctorFacts& f) { real_time(f), f.transparent_huge_pages = "always"; }},
    };
    return all;
}

TEST(Doctor, FindsNothingOnAMachineInOrder) {
    for (const Finding& finding : diagnose(healthy())) ADD_FAILURE() << finding.id << ": " << finding.evidence;
}

TEST(Doctor, FindsWhatWasSpoiledAndOnlyThat) {
    for (const Case& one : cases()) {
        DoctorFacts facts = healthy();
        one.spoil(facts);
        const std::vector<Finding> findings = diagnose(facts);
        ASSERT_EQ(findings.size(), 1u) << one.id << ", " << one.says << (findings.size() > 1 ? findings[1].id : "");
        EXPECT_EQ(findings[0].id, one.id);
        EXPECT_EQ(findings[0].weight, one.weight) << one.id << ", " << one.says;
        const std::string all = findings[0].evidence + " " + findings[0].remedy;
        EXPECT_NE(all.find(one.says), std::string::npos) << one.id << ": " << all;
        EXPECT_FALSE(findings[0].remedy.empty()) << one.id;
    }
}

TEST(Doctor, EveryCheckHasACaseThatMakesItSpeak) {
    std::set<std::string_view> spoken;
    for (const Case& one : cases()) spoken.insert(one.id);
    for (const Check& check : all_checks()) EXPECT_EQ(spoken.count(check.id), 1u) << check.id;
}

// Everything that fabric handles need, missing or present, in every combination.
struct Fabric {
    bool attribute, major, file, right_major, openable;
    Seen daemon;
    int tried;  // 0: not, 1: failed, 2: works
    bool wanted;
    int other;  // channel of the other end: 0 unknown, 1 the same, 2 another, 3 the same, and several may be opened
    DoctorFacts facts() const {
        DoctorFacts all = healthy();
        fabric(all);
        all.opening.devices[0].fabric = attribute;
        if (!major) all.machine.imex_channels_major = -1;
        if (!right_major) all.imex.channels[0].major = 7;
        if (!openable) all.imex.channels[0].failure = "Permission denied";
        if (other == 3) all.imex.channels.push_back({1, all.imex.channels[0].major, all.imex.channels[0].failure});
        if (!file) all.imex.channels.clear();
        all.imex.daemon = daemon;
        if (tried == 0) all.exports.clear();
        if (tried == 2) all.exports[0].works = true;
        all.imex.wanted = wanted;
        if (other != 0) all.imex.other_channel = other == 2 ? 9 : 0;
        return all;
    }
};

template <class Each>
void for_every_fabric(Each each) {
    for (unsigned bits = 0; bits < 64; ++bits) {
        for (const Seen daemon : {Seen::unknown, Seen::no, Seen::yes}) {
            for (int tried = 0; tried < 3; ++tried) {
                for (int other = 0; other < 4; ++other) {
                    const auto bit = [&](unsigned at) { return (bits >> at & 1u) != 0; };
                    each(Fabric{bit(0), bit(1), bit(2), bit(3), bit(4), daemon, tried, bit(5), other});
                }
            }
        }
    }
}

// keeps V5: each missing piece has its own finding, and at most one of them speaks
TEST(Doctor, NamesTheFirstPieceThatFabricHandlesLackInEveryCombination) {
    const std::set<std::string_view> about = {"D012", "D026", "D027", "D028", "D029", "D030", "D031", "D032"};
    std::set<std::string_view> spoken;
    for_every_fabric([&](const Fabric& f) {
        std::string_view expected;  // the finding, derived a second time from the parts in their order
        const bool works = f.tried == 2;
        const bool channel_open = f.major && f.file && f.right_major && f.openable;
        if (!f.attribute) {
            expected = f.wanted ? "D026" : "";
        } else if (!works && !f.major) {
            expected = "D027";
        } else if (!works && !f.file) {
            expected = "D012";
        } else if (!works && !f.right_major) {
            expected = "D028";
        } else if (!works && !f.openable) {
            expected = "D029";
        } else if (f.tried == 1) {
            expected = f.daemon == Seen::no ? "D030" : "D031";
        } else if (f.other != 0 && !(channel_open && f.other == 1)) {
            expected = "D032";
        } else if (f.wanted && f.daemon == Seen::no) {
            expected = "D030";
        }
        std::string_view found;
        for (const Finding& finding : diagnose(f.facts())) {
            if (about.count(finding.id) == 0) continue;
            EXPECT_TRUE(found.empty()) << found << " and " << finding.id;
            found = finding.id;
            EXPECT_FALSE(finding.evidence.empty() || finding.remedy.empty()) << finding.id;
            const bool told = f.wanted || f.other != 0;
            if (works && !told) ADD_FAILURE() << finding.id << ": what works lacks nothing that anybody asked for";
        }
        EXPECT_EQ(found, expected);
        spoken.insert(found);
    });
    EXPECT_EQ(spoken.size(), about.size() + 1);
}

// Facts close to those of the findings, to which no finding applies.
TEST(Doctor, IsSilentWhereASystemIsInOrder) {
    const std::vector<std::pair<std::string, std::function<void(DoctorFacts&)>>> fine_ones = {
        {"what was tried counts", [](DoctorFacts& f) { f.sys_nice = Seen::no; }},
        {"one node has nothing to balance",
         [](DoctorFacts& f) { f.numa_balancing = Seen::yes, f.machine.numa_nodes.resize(1); }},
        {"a GPU's node without memory of its own",
         [](DoctorFacts& f) { f.numa_balancing = Seen::yes, f.machine.numa_nodes[1].memory_bytes = 0; }},
        {"an enough large folder", [](DoctorFacts& f) { f.shared_memory.free_bytes = std::uint64_t{4} << 30; }},
        {"machine code of the same major version", [](DoctorFacts& f) { f.opening.devices[0].compute_minor = 3; }},
        {"images that were compiled elsewhere",
         [](DoctorFacts& f) {
             f.kernels = {false, {}, 0};
         }},
        {"kernels of simulated machines are played",
         [](DoctorFacts& f) {
             f.machine.simulated = true, f.kernels = {true, {}, 0};
         }},
        {"a locked GPU clock", [](DoctorFacts& f) { f.gpu_clock_least_hz = f.gpu_clock_most_hz = 1300500000; }},
        {"no processor with clocks", [](DoctorFacts& f) { f.cpu_governors.clear(); }},
        {"the greatest mode, whatever its number",
         [](DoctorFacts& f) {
             f.power_mode = 2, f.power_modes = {{0, "15W"}, {2, "MAXN_SUPER"}};
         }},
        {"no greatest mode is known",
         [](DoctorFacts& f) {
             f.power_mode = 0, f.power_modes = {{0, "15W"}};
         }},
        {"a mode that the file does not name",
         [](DoctorFacts& f) {
             f.power_mode = 9, f.power_modes = {{0, "MAXN"}};
         }},
        {"a machine that is prepared for real time", real_time},
        {"one CPU has none to isolate",
         [](DoctorFacts& f) {
             real_time(f), f.real_time.online = {0}, f.real_time.isolated.clear(), f.real_time.of_gpu.clear();
         }},
        {"a limit of the whole period", [](DoctorFacts& f) { real_time(f), f.real_time.runtime_us = 1000000; }},
        {"a state that takes as long as a loop may wait",
         [](DoctorFacts& f) {
             real_time(f), f.real_time.idle_states = {{"C2", 50}};
         }},
        {"no interrupt of a GPU", [](DoctorFacts& f) { real_time(f), f.real_time.of_gpu.clear(); }},
        {"nothing of real time is known", [](DoctorFacts& f) { f.real_time.wanted = true; }},
    };
    for (const auto& [why, change] : fine_ones) {
        DoctorFacts facts = healthy();
        change(facts);
        for (const Finding& finding : diagnose(facts)) ADD_FAILURE() << why << ": " << finding.id << finding.evidence;
    }
}

TEST(Doctor, OnlyNotesBalancingWhereNoGpuFaults) {
    DoctorFacts facts = healthy();
    facts.machine.simulated = true;  // else HMM has a note of its own
    facts.opening.devices[0].pageable_access = false;
    facts.numa_balancing = Seen::yes;
    const std::vector<Finding> findings = diagnose(facts);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].id, "D035");
    EXPECT_EQ(findings[0].weight, Weight::note);
}

// Without --real-time none of its checks speaks, whatever is known.
TEST(Doctor, AsksForRealTimeOnlyWhereItIsWanted) {
    const std::set<std::string_view> about = {"D041", "D042", "D043", "D044", "D045", "D046"};
    for (const Case& one : cases()) {
        if (about.count(one.id) == 0) continue;
        DoctorFacts facts = healthy();
        one.spoil(facts);
        facts.real_time.wanted = false;
        for (const Finding& finding : diagnose(facts)) ADD_FAILURE() << finding.id;
        for (const std::string_view words : fine(facts, {})) EXPECT_NE(words, "PREEMPT_RT");
    }
}

// Every combination of what the interrupts of GPUs, isolation and the tick can be, judged a second time.
TEST(Doctor, JudgesIsolationAndInterruptsInEveryCombination) {
    for (unsigned bits = 0; bits < 64; ++bits) {
        const auto cpus = [&](unsigned first) {
            std::vector<int> list;
            for (unsigned at = 0; at < 2; ++at) {
                if ((bits >> (first + at) & 1u) != 0) list.push_back(static_cast<int>(at));
            }
            return list;
        };
        DoctorFacts facts = healthy();
        real_time(facts);
        facts.real_time.online = {0, 1};
        facts.real_time.isolated = cpus(0);
        facts.real_time.tickless = cpus(2);
        facts.real_time.of_gpu = {{45, "nvidia", cpus(4)}};
        const unsigned isolated = bits & 3u, tickless = bits >> 2 & 3u, interrupts = bits >> 4 & 3u;
        std::set<std::string_view> expected, found;
        if (isolated == 0 || (isolated & ~tickless) != 0) expected.insert("D042");
        if ((isolated & interrupts) != 0) expected.insert("D044");
        for (const Finding& finding : diagnose(facts)) found.insert(finding.id);
        EXPECT_EQ(found, expected) << bits;
    }
}

TEST(GpuCode, RunsWithinAMajorVersionUpwardsAndExactlyOnBoards) {
    const KernelCodeFacts kernels{true, {80, 86, 87}, 0};
    const auto code = [&](int major, int minor, bool integrated) {
        return gpu_code(kernels, {"", 0, false, false, major, minor, integrated});
    };
    EXPECT_EQ(code(8, 0, false), GpuCode::ready);
    EXPECT_EQ(code(8, 9, false), GpuCode::ready) << "code for 8.6 runs on 8.9";
    EXPECT_EQ(code(8, 7, true), GpuCode::ready);
    EXPECT_EQ(code(8, 8, true), GpuCode::none) << "a board's GPU runs no other version's code";
    EXPECT_EQ(code(7, 5, false), GpuCode::none);
    EXPECT_EQ(code(9, 0, false), GpuCode::none);
    EXPECT_EQ(gpu_code({true, {80}, 75}, {"", 0, false, false, 12, 0}), GpuCode::compiled);
    EXPECT_EQ(gpu_code({true, {80}, 75}, {"", 0, false, false, 7, 2}), GpuCode::none) << "older than the PTX";
    EXPECT_EQ(gpu_code({false, {}, 0}, {"", 0, false, false, 7, 2}), GpuCode::unknown);
}

// Code 0 is no error code of a driver: "dlopen returned 0" has no meaning.
TEST(Doctor, QuotesNoCallThatReturnedNothing) {
    DoctorFacts facts = healthy();
    fail_init(facts, Code::driver_too_old, 0);
    facts.opening.call = "dlopen";
    const std::vector<Finding> findings = diagnose(facts);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].evidence, "made up");
}

TEST(Fine, HasEveryCheckInOneGroup) {
    std::multiset<std::string_view> grouped;
    for (const FineGroup& group : fine_groups()) grouped.insert(group.ids.begin(), group.ids.end());
    for (const Check& check : all_checks()) EXPECT_EQ(grouped.count(check.id), 1u) << check.id;
    EXPECT_EQ(grouped.size(), all_checks().size());
}

TEST(Fine, IsWhatIsKnownAndInOrder) {
    const DoctorFacts facts = healthy();
    const std::vector<std::string_view> words = fine(facts, diagnose(facts));
    const std::set<std::string_view> all(words.begin(), words.end());
    EXPECT_EQ(all, (std::set<std::string_view>{"driver", "GPUs", "kernels for them", "ordinary memory on the GPU",
                                               "limits", "NUMA placement and huge pages",
                                               "real-time priority and locked memory", "/dev/shm", "clocks"}))
        << "no handle was tried";
    EXPECT_TRUE(fine(DoctorFacts(), {}).empty()) << "nothing is known, and so nothing is fine";
}

TEST(Fine, NamesWhatARealTimeMachineHas) {
    DoctorFacts facts = healthy();
    real_time(facts);
    const std::vector<std::string_view> words = fine(facts, diagnose(facts));
    for (const char* each : {"PREEMPT_RT", "isolated CPUs", "no real-time throttling", "the GPU's interrupts",
                             "idle states", "transparent huge pages"}) {
        EXPECT_EQ(std::count(words.begin(), words.end(), each), 1) << each;
    }
}

TEST(Fine, NeverSaysWhatAFindingDenies) {
    for (const Case& one : cases()) {
        DoctorFacts facts = healthy();
        one.spoil(facts);
        const std::vector<Finding> findings = diagnose(facts);
        const std::vector<std::string_view> words = fine(facts, findings);
        for (const FineGroup& group : fine_groups()) {
            if (std::find(group.ids.begin(), group.ids.end(), one.id) == group.ids.end()) continue;
            EXPECT_EQ(std::count(words.begin(), words.end(), group.words), 0) << one.id;
        }
    }
}

TEST(Doctor, HasAscendingIdsThatAreUnique) {
    std::string_view last;
    for (const Check& check : all_checks()) {
        EXPECT_LT(last, check.id);
        last = check.id;
    }
}

TEST(Doctor, PutsProblemsFirst) {
    DoctorFacts facts = healthy();
    facts.machine.memlock_limit_bytes = 1;
    facts.open_files_limit = 100;
    facts.opening.devices[0].compute_mode = 2;
    const std::vector<Finding> findings = diagnose(facts);
    ASSERT_EQ(findings.size(), 3u);
    EXPECT_EQ(findings[0].id, "D023");
    EXPECT_EQ(findings[1].id, "D007");
    EXPECT_EQ(findings[2].id, "D009");
}

TEST(Doctor, KnowsNothingAndThereforeSaysNothing) {
    DoctorFacts facts;  // every fact unknown
    facts.machine.memlock_limit_bytes = unlimited;
    EXPECT_TRUE(diagnose(facts).empty());
}

TEST(Doctor, IsDescribedIdByIdWithTheSameTitles) {
    std::ifstream file(ISTHMUS_DOCS_FOLDER "/doctor.md");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    ASSERT_FALSE(text.empty());
    std::size_t rows = 0;
    for (std::size_t at = text.find("\n| D"); at != std::string::npos; at = text.find("\n| D", at + 1)) ++rows;
    EXPECT_EQ(rows, all_checks().size());
    for (const Check& check : all_checks()) {
        const std::string row = "| " + std::string(check.id) + " | " + std::string(check.title) + " |";
        EXPECT_NE(text.find(row), std::string::npos) << row;
    }
}

}  // namespace
}  // namespace isthmus::tools
