// SPDX-License-Identifier: Apache-2.0
// Gathers the doctor's facts. A fact that cannot be read keeps its default, "not known".
#include "doctor_gather.hpp"

#include "common/console.hpp"
#include "common/export_tries.hpp"
#include "common/tool_paths.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace isthmus::tools {
namespace {

using Json = nlohmann::json;

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

std::vector<std::string> list_folder(const std::string& path) {
    std::vector<std::string> names;
    if (DIR* folder = ::opendir(path.c_str())) {
        while (const dirent* entry = ::readdir(folder)) names.emplace_back(entry->d_name);
        ::closedir(folder);
    }
    std::sort(names.begin(), names.end());
    return names;
}

bool begins(std::string_view text, std::string_view start) {
    return text.substr(0, start.size()) == start;
}

std::uint64_t limit_of(int resource) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return unlimited;
    return limit.rlim_cur == RLIM_INFINITY ? unlimited : limit.rlim_cur;
}

// "Key:   12 kB" of /proc/meminfo.
std::uint64_t meminfo(const std::string& text, std::string_view key) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (begins(line, key) && line.size() > key.size() && line[key.size()] == ':') {
            const std::uint64_t amount = std::strtoull(line.c_str() + key.size() + 1, nullptr, 10);
            return line.find("kB") == std::string::npos ? amount : amount * 1024;
        }
    }
    return 0;
}

// --- in child processes ---------------------------------------------------------------------------------------------

std::string loaded_library() {
    std::istringstream maps(read_file("/proc/self/maps"));
    for (std::string line; std::getline(maps, line);) {
        const std::size_t path = line.find('/');
        if (path != std::string::npos && line.find("/libcuda.so", path) != std::string::npos) return line.substr(path);
    }
    return {};
}

Json describe(const MachineFacts& machine) {
    Json nodes = Json::array();
    for (const NumaNode& node : machine.numa_nodes) nodes.push_back({node.id, node.cpu_count, node.memory_bytes});
    return {{"driver_version", machine.driver_version},
            {"simulated", machine.simulated},
            {"kernel_release", machine.kernel_release},
            {"page_size_bytes", machine.page_size_bytes},
            {"huge_page_bytes", machine.huge_page_bytes},
            {"numa_nodes", nodes},
            {"imex_major", machine.imex_channels_major},
            {"imex_files", machine.imex_channel_files},
            {"memory_limit", machine.memory_limit_bytes},
            {"memlock_limit", machine.memlock_limit_bytes},
            {"cpu_name", machine.cpu_name}};
}

void read_machine(const Json& json, MachineFacts& machine) {
    machine.driver_version = json.at("driver_version");
    machine.simulated = json.at("simulated");
    machine.kernel_release = json.at("kernel_release");
    machine.page_size_bytes = json.at("page_size_bytes");
    machine.huge_page_bytes = json.at("huge_page_bytes");
    for (const Json& node : json.at("numa_nodes")) machine.numa_nodes.push_back({node[0], node[1], node[2]});
    machine.imex_channels_major = json.at("imex_major");
    machine.imex_channel_files = json.at("imex_files");
    machine.memory_limit_bytes = json.at("memory_limit");
    machine.memlock_limit_bytes = json.at("memlock_limit");
    machine.cpu_name = json.at("cpu_name");
}

std::string try_opening(const std::function<Result<Runtime>()>& open_runtime) {
    Result<Runtime> runtime = open_runtime();
    if (!runtime) throw Failure(0, runtime.error().text());
    Json answer{{"machine", describe(runtime->machine())}, {"library", loaded_library()}};
    if (const std::optional<Error>& absence = runtime->cuda_absence()) {
        answer["absence"] = {{"code", static_cast<int>(absence->code())},
                             {"driver_code", absence->driver_code()},
                             {"call", absence->call()},
                             {"message", absence->message()}};
    }
    Json devices = Json::array();
    for (std::size_t i = 0; i < runtime->device_count(); ++i) {
        const Device& device = **runtime->device(i);
        if (device.is_cpu()) continue;
        const Capabilities& can = device.capabilities();
        devices.push_back({{"name", device.name()},
                           {"compute_mode", device.facts().attribute(20).value_or(0)},
                           {"fabric", can.has(Feature::export_fabric)},
                           {"pageable", can.has(Feature::pageable_access)},
                           {"major", can.compute_major},
                           {"minor", can.compute_minor},
                           {"integrated", can.has(Feature::integrated)}});
    }
    answer["devices"] = devices;
    return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string try_using(const std::function<Result<Runtime>()>& open_runtime) {
    Result<Runtime> runtime = open_runtime();
    if (!runtime) return runtime.error().text();
    for (std::size_t i = 0; i < runtime->device_count(); ++i) {
        Device& device = **runtime->device(i);
        if (device.is_cpu()) continue;
        auto memory = device.allocate<unsigned char>(1 << 20);
        if (!memory) return fmt::format("device {} ({}): {}", i, device.name(), memory.error().text());
        if (Result<void> released = memory->release(); !released) return std::string(released.error().text());
    }
    return {};
}

std::string try_placing() {
    RuntimeOptions options;
    options.use_cuda = false;
    Result<Runtime> runtime = Runtime::open(options);
    if (!runtime) throw Failure(0, runtime.error().text());
    Json answer{{"code", 0}, {"errno", 0}, {"failure", ""}};
    for (const NumaNode& node : runtime->machine().numa_nodes) {
        if (node.cpu_count == 0 || node.memory_bytes == 0) continue;
        HostPlacement placement;
        placement.locality = Locality::node;
        placement.node = node.id;
        placement.strict = true;
        const auto memory = runtime->cpu().allocate_host<unsigned char>(1 << 16, placement);
        if (memory) continue;
        answer = {{"code", static_cast<int>(memory.error().code())},
                  {"errno", memory.error().driver_code()},
                  {"failure", memory.error().message()}};
        break;
    }
    HostPlacement huge;
    huge.page_size = PageSize::huge;
    huge.prefault = true;
    huge.strict = true;
    const auto memory = runtime->cpu().allocate_host<unsigned char>(std::size_t{4} << 20, huge);
    answer["huge_works"] = memory.ok();
    answer["huge_failure"] = memory ? std::string() : std::string(memory.error().message());
    // This comes last, because the policy holds until the child ends.
    sched_param lowest{};
    lowest.sched_priority = ::sched_get_priority_min(SCHED_FIFO);
    answer["realtime_errno"] = ::sched_setscheduler(0, SCHED_FIFO, &lowest) == 0 ? 0 : errno;
    return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The first line is what opening failed with, or empty; the second says "used" where a device uses its entry; the
// others are about entries that are not used.
std::string try_profile(const std::function<Result<Runtime>()>& open_runtime, const std::string& variable) {
    if (Result<Runtime> selected = open_runtime(); !selected) return {};
    RuntimeOptions options;
    options.profile = variable;
    if (variable.empty()) ::unsetenv("ISTHMUS_PROFILE");
    std::string used, unused;
    options.log = [&](Severity severity, std::string_view line) {
        if (line.find("profile") == std::string_view::npos) return;
        if (severity == Severity::warning) {
            unused += "\n" + std::string(line);
        } else {
            used = "used";
        }
    };
    Result<Runtime> runtime = Runtime::open(options);
    return (runtime ? std::string() : runtime.error().text()) + "\n" + used + unused;
}

// --- in this process -----------------------------------------------------------------------------------------------

void gather_opening(DoctorFacts& facts, const ProbeOutcome& outcome) {
    OpeningFacts& opening = facts.opening;
    opening.end = outcome.end;
    opening.signal = outcome.signal;
    const Json answer = Json::parse(outcome.text, nullptr, false);
    if (outcome.end != ProbeEnd::finished || answer.is_discarded()) {
        opening.end = outcome.end == ProbeEnd::finished ? ProbeEnd::failed : outcome.end;
        opening.message = outcome.text;
        return;
    }
    read_machine(answer.at("machine"), facts.machine);
    opening.library = answer.at("library");
    if (const auto absence = answer.find("absence"); absence != answer.end()) {
        opening.absent = true;
        opening.code = static_cast<Code>(absence->at("code").get<int>());
        opening.driver_code = absence->at("driver_code");
        opening.call = absence->at("call");
        opening.message = absence->at("message");
    }
    for (const Json& device : answer.at("devices")) {
        opening.devices.push_back({device.at("name"), device.at("compute_mode"), device.at("fabric"),
                                   device.at("pageable"), device.at("major"), device.at("minor"),
                                   device.at("integrated")});
    }
}

void gather_use(DoctorFacts& facts, const ProbeOutcome& outcome) {
    facts.use.tried = true;
    facts.use.end = outcome.end;
    facts.use.signal = outcome.signal;
    facts.use.failure = outcome.text;
}

void gather_profile(DoctorFacts& facts, const ProbeOutcome& outcome) {
    if (outcome.end != ProbeEnd::finished) return;
    std::istringstream lines(outcome.text);
    std::getline(lines, facts.profile.failure);
    std::string used;
    std::getline(lines, used);
    facts.profile.in_use = !used.empty();
    for (std::string line; std::getline(lines, line);) facts.profile.unused.push_back(line);
}

void gather_placement(DoctorFacts& facts, const ProbeOutcome& outcome) {
    const Json answer = Json::parse(outcome.text, nullptr, false);
    if (outcome.end != ProbeEnd::finished || answer.is_discarded()) return;
    facts.placement.tried = true;
    facts.placement.bind_code = static_cast<Code>(answer.at("code").get<int>());
    facts.placement.bind_errno = answer.at("errno");
    facts.placement.bind_failure = answer.at("failure");
    facts.placement.huge_works = answer.at("huge_works");
    facts.placement.huge_failure = answer.at("huge_failure");
    const int refused = answer.at("realtime_errno");
    facts.realtime = refused == 0 ? Seen::yes : Seen::no;
    if (refused != 0) facts.realtime_failure = std::strerror(refused);
}

void gather_kernel_side(DoctorFacts& facts) {
    const std::string version = read_file("/proc/driver/nvidia/version");
    facts.open_module = version.find("Open Kernel Module") != std::string::npos;
    // "NVRM version: NVIDIA UNIX … Kernel Module for x86_64  580.159.04  Release Build …": the first word with two dots
    std::istringstream words(version);
    for (std::string word; facts.module_version.empty() && words >> word;) {
        if (std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos) {
            facts.module_version = word;
        }
    }
    facts.nouveau = exists("/sys/module/nouveau");
    facts.uvm_disable_hmm = read_file("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm").substr(0, 1);
    const std::string base = "/sys/bus/pci/devices/";
    for (const std::string& name : list_folder(base)) {
        if (!begins(read_file(base + name + "/vendor"), "0x10de")) continue;
        facts.gpus_on_bus += begins(read_file(base + name + "/class"), "0x03") ? 1 : 0;
    }
    facts.tegra = read_file("/proc/device-tree/compatible").find("nvidia,tegra") != std::string::npos;
}

void gather_surroundings(DoctorFacts& facts) {
    facts.container = exists("/.dockerenv") || exists("/run/.containerenv") ||
                      read_file("/proc/1/environ").find("container=") != std::string::npos;
    for (const std::string& name : list_folder("/dev")) {
        if (!begins(name, "nvidia") && !begins(name, "nvhost-gpu") && !begins(name, "nvmap") && name != "dxg") continue;
        if (name == "nvidia-caps" || name == "nvidia-caps-imex-channels") continue;
        facts.device_files.push_back("/dev/" + name);
        // nvidia-modeset belongs to the display; computing works without it.
        if (begins(name, "nvidia-modeset")) continue;
        if (::access(("/dev/" + name).c_str(), R_OK | W_OK) != 0) facts.forbidden_files.push_back("/dev/" + name);
    }
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    facts.visible_devices_set = visible != nullptr;
    facts.visible_devices = visible ? visible : "";
    std::istringstream folders(std::getenv("LD_LIBRARY_PATH") ? std::getenv("LD_LIBRARY_PATH") : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
        const bool stubs = (folder + "/").find("/stubs/") != std::string::npos;
        if (stubs && (exists(folder + "/libcuda.so.1") || exists(folder + "/libcuda.so"))) {
            facts.stub_folders.push_back(folder);
        }
    }
    const std::string release = read_file("/proc/sys/kernel/osrelease");
    facts.wsl = release.find("microsoft") != std::string::npos || release.find("Microsoft") != std::string::npos;
}

// The architectures that Meson compiled kernels for: "75 90 ptx".
void gather_kernels(DoctorFacts& facts) {
    KernelCodeFacts& kernels = facts.kernels;
    kernels.known = tool_paths::kernel_architectures_known;
    std::istringstream words(tool_paths::kernel_architectures);
    for (std::string word; words >> word;) {
        if (word == "ptx") {
            kernels.ptx = tool_paths::ptx_baseline;
        } else {
            kernels.machine_code.push_back(std::atoi(word.c_str()));
        }
    }
}

// "CapEff:	000001fffeffffff" of /proc/self/status.
Seen has_sys_nice() {
    constexpr unsigned sys_nice = 23;
    std::istringstream lines(read_file("/proc/self/status"));
    for (std::string line; std::getline(lines, line);) {
        if (!begins(line, "CapEff:")) continue;
        return (std::strtoull(line.c_str() + 7, nullptr, 16) >> sys_nice & 1) != 0 ? Seen::yes : Seen::no;
    }
    return Seen::unknown;
}

void gather_scheduling(DoctorFacts& facts) {
    facts.realtime_priority_limit = limit_of(RLIMIT_RTPRIO);
    facts.sys_nice = has_sys_nice();
    const std::string balancing = read_file("/proc/sys/kernel/numa_balancing");
    if (!balancing.empty()) facts.numa_balancing = balancing[0] == '0' ? Seen::no : Seen::yes;
    struct statvfs folder {};
    SharedMemoryFolderFacts& shared = facts.shared_memory;
    shared.there = ::statvfs("/dev/shm", &folder) == 0 && ::access("/dev/shm", W_OK) == 0 ? Seen::yes : Seen::no;
    shared.size_bytes = std::uint64_t{folder.f_frsize} * folder.f_blocks;
    shared.free_bytes = std::uint64_t{folder.f_frsize} * folder.f_bavail;
}

std::string first_word(const std::string& text) {
    return text.substr(0, text.find_first_of(" \t\n"));
}

// The GPU of a board is a devfreq device, whose name ends in "gpu" or in the chip's name (17000000.gpu, gpu-gpc-0,
// 17000000.ga10b).
void gather_gpu_clock(DoctorFacts& facts) {
    const std::string base = "/sys/class/devfreq/";
    for (const std::string& name : list_folder(base)) {
        const bool gpu = name.find("gpu") != std::string::npos || name.find(".ga10b") != std::string::npos ||
                         name.find(".gv11b") != std::string::npos;
        if (!gpu || facts.gpu_clock_most_hz > 0) continue;
        facts.gpu_clock_least_hz = std::strtoull(read_file(base + name + "/min_freq").c_str(), nullptr, 10);
        facts.gpu_clock_most_hz = std::strtoull(read_file(base + name + "/max_freq").c_str(), nullptr, 10);
        facts.gpu_clock_file = base + name + "/cur_freq";
    }
}

// The status file of nvpmodel has "pmode:0002"; its configuration has lines such as "< POWER_MODEL ID=2 NAME=MODE_30W
// >".
void gather_power_mode(DoctorFacts& facts) {
    const std::string status = read_file("/var/lib/nvpmodel/status");
    if (begins(status, "pmode:")) facts.power_mode = std::atoi(status.c_str() + 6);
    std::istringstream lines(read_file("/etc/nvpmodel.conf"));
    for (std::string line; std::getline(lines, line);) {
        const std::size_t id = line.find(" ID="), name = line.find(" NAME=");
        if (!begins(line, "< POWER_MODEL") || id == std::string::npos || name == std::string::npos) continue;
        facts.power_modes.push_back({std::atoi(line.c_str() + id + 4), first_word(line.substr(name + 6))});
    }
}

// "channel12" → 12; -1: not such a name.
int channel_number(const std::string& name) {
    constexpr std::string_view start = "channel";
    if (!begins(name, start) || name.size() == start.size() || name.size() > start.size() + 6) return -1;
    const std::string digits = name.substr(start.size());
    const bool all = std::all_of(digits.begin(), digits.end(), [](unsigned char each) { return std::isdigit(each); });
    return all ? std::atoi(digits.c_str()) : -1;
}

void gather_imex(DoctorFacts& facts) {
    ImexFacts& imex = facts.imex;
    if (facts.machine.simulated) {  // a record has the count of the files, and no daemon
        for (int number = 0; number < facts.machine.imex_channel_files; ++number) {
            imex.channels.push_back({number, facts.machine.imex_channels_major, {}});
        }
        return;
    }
    const std::string folder = "/dev/nvidia-caps-imex-channels/";
    for (const std::string& name : list_folder(folder)) {
        ImexChannel channel;
        channel.number = channel_number(name);
        if (channel.number < 0) continue;
        struct stat file {};
        if (::stat((folder + name).c_str(), &file) == 0 && S_ISCHR(file.st_mode)) {
            channel.major = static_cast<int>(major(file.st_rdev));
        }
        // Opens the file instead of checking permissions: a device cgroup refuses what permissions allow.
        const int opened = ::open((folder + name).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
        if (opened < 0) channel.failure = std::strerror(errno);
        if (opened >= 0) ::close(opened);
        imex.channels.push_back(std::move(channel));
    }
    std::sort(imex.channels.begin(), imex.channels.end(),
              [](const ImexChannel& one, const ImexChannel& other) { return one.number < other.number; });
    const std::vector<std::string> processes = list_folder("/proc");
    if (processes.empty()) return;
    imex.daemon = Seen::no;
    for (const std::string& name : processes) {
        if (!std::isdigit(static_cast<unsigned char>(name[0]))) continue;
        if (read_file("/proc/" + name + "/comm") == "nvidia-imex\n") imex.daemon = Seen::yes;
    }
}

void gather_limits(DoctorFacts& facts) {
    facts.open_files_limit = limit_of(RLIMIT_NOFILE);
    facts.processes_limit = ::geteuid() == 0 ? unlimited : limit_of(RLIMIT_NPROC);  // the limit does not apply to root
    facts.address_space_limit_bytes = limit_of(RLIMIT_AS);
    const std::string memory = read_file("/proc/meminfo");
    facts.memory_bytes = meminfo(memory, "MemTotal");
    facts.huge_pages_free = meminfo(memory, "HugePages_Free");
    const std::string enabled = read_file("/sys/kernel/mm/transparent_hugepage/enabled");
    const std::size_t open = enabled.find('[');
    const std::size_t close = enabled.find(']');
    if (open < close && close != std::string::npos) {
        facts.transparent_huge_pages = enabled.substr(open + 1, close - open - 1);
    }
}

}  // namespace

void gather_clocks(DoctorFacts& facts) {
    const std::string base = "/sys/devices/system/cpu/";
    for (const std::string& name : list_folder(base)) {
        const std::string governor = first_word(read_file(base + name + "/cpufreq/scaling_governor"));
        const auto& known = facts.cpu_governors;
        if (!governor.empty() && std::find(known.begin(), known.end(), governor) == known.end())
            facts.cpu_governors.push_back(governor);
    }
    gather_gpu_clock(facts);
    gather_power_mode(facts);
}

DoctorFacts gather_doctor_facts(const std::function<Result<Runtime>()>& open_runtime,
                                std::chrono::milliseconds deadline) {
    DoctorFacts facts;
    gather_kernel_side(facts);
    gather_surroundings(facts);
    gather_limits(facts);
    gather_kernels(facts);
    gather_scheduling(facts);
    gather_clocks(facts);
    // A damaged profile is a finding of its own, and hides no other.
    const char* const set = std::getenv("ISTHMUS_PROFILE");
    const std::string profile = set != nullptr ? set : "";
    ::setenv("ISTHMUS_PROFILE", "none", 1);
    gather_profile(facts, run_probe([&] { return try_profile(open_runtime, profile); }, deadline));
    gather_opening(facts, run_probe([&] { return try_opening(open_runtime); }, deadline));
    if (!facts.opening.devices.empty()) gather_use(facts, run_probe([&] { return try_using(open_runtime); }, deadline));
    // A device that cannot be used has findings of its own; a try of handles would show nothing.
    const bool usable = facts.use.tried && facts.use.end == ProbeEnd::finished && facts.use.failure.empty();
    if (usable) facts.exports = try_exports(open_runtime, deadline);
    gather_imex(facts);
    gather_placement(facts, run_probe(try_placing, deadline));
    profile.empty() ? ::unsetenv("ISTHMUS_PROFILE") : ::setenv("ISTHMUS_PROFILE", profile.c_str(), 1);
    return facts;
}

}  // namespace isthmus::tools
