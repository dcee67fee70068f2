// SPDX-License-Identifier: Apache-2.0
// The groups, and the fact that each needs: where the fact is missing, the group is unknown, not fine.
#include "doctor_fine.hpp"

#include "doctor_system.hpp"

#include <algorithm>

namespace isthmus::tools {
namespace {

using Ids = std::string_view;
constexpr Ids driver_ids[] = {"D001", "D002", "D003", "D004", "D005", "D006", "D017", "D018", "D020", "D021", "D022"};
constexpr Ids device_ids[] = {"D011", "D019", "D023", "D025"};
constexpr Ids code_ids[] = {"D037"};
constexpr Ids limit_ids[] = {"D007", "D008", "D010", "D024"};
constexpr Ids placement_ids[] = {"D013", "D014", "D035"};
constexpr Ids ordinary_ids[] = {"D015", "D016"};
constexpr Ids file_ids[] = {"D033"};
constexpr Ids fabric_ids[] = {"D012", "D026", "D027", "D028", "D029", "D030", "D031", "D032"};
constexpr Ids realtime_ids[] = {"D009", "D034"};
constexpr Ids folder_ids[] = {"D036"};
constexpr Ids clock_ids[] = {"D038", "D039"};
constexpr Ids profile_ids[] = {"D040"};
constexpr Ids kernel_ids[] = {"D041"};
constexpr Ids isolated_ids[] = {"D042"};
constexpr Ids throttling_ids[] = {"D043"};
constexpr Ids interrupt_ids[] = {"D044"};
constexpr Ids idle_ids[] = {"D045"};
constexpr Ids everywhere_ids[] = {"D046"};

bool has_gpu(const DoctorFacts& facts) {
    return facts.opening.end == ProbeEnd::finished && !facts.opening.absent && !facts.opening.devices.empty();
}
bool tried_export(const DoctorFacts& facts, ExportKinds kind) {
    return std::any_of(facts.exports.begin(), facts.exports.end(),
                       [kind](const ExportFinding& one) { return one.kind == kind && one.works; });
}

constexpr FineGroup groups[] = {
    {"driver", driver_ids, has_gpu},
    {"GPUs", device_ids, [](const DoctorFacts& facts) { return has_gpu(facts) && facts.use.tried; }},
    {"kernels for them", code_ids,
     [](const DoctorFacts& facts) { return has_gpu(facts) && !facts.machine.simulated && facts.kernels.known; }},
    {"ordinary memory on the GPU", ordinary_ids,
     [](const DoctorFacts& facts) {
         return has_gpu(facts) && std::all_of(facts.opening.devices.begin(), facts.opening.devices.end(),
                                              [](const DeviceSighting& device) { return device.pageable_access; });
     }},
    {"handles to other processes", file_ids,
     [](const DoctorFacts& facts) { return tried_export(facts, ExportKinds::posix_fd); }},
    {"fabric handles", fabric_ids, [](const DoctorFacts& facts) { return tried_export(facts, ExportKinds::fabric); }},
    {"limits", limit_ids, [](const DoctorFacts& facts) { return facts.memory_bytes > 0; }},
    {"NUMA placement and huge pages", placement_ids, [](const DoctorFacts& facts) { return facts.placement.tried; }},
    {"real-time priority and locked memory", realtime_ids,
     [](const DoctorFacts& facts) { return facts.realtime != Seen::unknown; }},
    {"/dev/shm", folder_ids, [](const DoctorFacts& facts) { return facts.shared_memory.there != Seen::unknown; }},
    {"profile of isthmus tune", profile_ids, [](const DoctorFacts& facts) { return facts.profile.in_use; }},
    {"clocks", clock_ids,
     [](const DoctorFacts& facts) { return !facts.cpu_governors.empty() || facts.gpu_clock_most_hz > 0; }},
    {"PREEMPT_RT", kernel_ids,
     [](const DoctorFacts& facts) { return facts.real_time.wanted && facts.real_time.preempt_rt != Seen::unknown; }},
    {"isolated CPUs", isolated_ids,
     [](const DoctorFacts& facts) { return facts.real_time.wanted && facts.real_time.cpus != Seen::unknown; }},
    {"no real-time throttling", throttling_ids,
     [](const DoctorFacts& facts) { return facts.real_time.wanted && facts.real_time.runtime_us.has_value(); }},
    {"the GPU's interrupts", interrupt_ids,
     [](const DoctorFacts& facts) {
         return facts.real_time.wanted && !facts.real_time.of_gpu.empty() && !facts.real_time.isolated.empty();
     }},
    {"idle states", idle_ids,
     [](const DoctorFacts& facts) { return facts.real_time.wanted && facts.real_time.idle != Seen::unknown; }},
    {"transparent huge pages", everywhere_ids,
     [](const DoctorFacts& facts) { return facts.real_time.wanted && !facts.transparent_huge_pages.empty(); }},
};

}  // namespace

std::span<const FineGroup> fine_groups() noexcept {
    return groups;
}

std::vector<std::string_view> fine(const DoctorFacts& facts, std::span<const Finding> findings) {
    std::vector<std::string_view> words;
    for (const FineGroup& group : groups) {
        const bool spoken = std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
            return std::find(group.ids.begin(), group.ids.end(), finding.id) != group.ids.end();
        });
        if (!spoken && group.known(facts)) words.push_back(group.words);
    }
    return words;
}

}  // namespace isthmus::tools
