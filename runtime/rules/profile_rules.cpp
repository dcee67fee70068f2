// SPDX-License-Identifier: Apache-2.0
#include "profile_rules.hpp"

#include "litmus_rules.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace isthmus::rules {
namespace {

constexpr std::string_view again = "run `isthmus tune` here";

struct Passed {
    Role role = Role::reads;
    bool often = false;
};
Passed passed_by(Use use) {
    switch (use) {
        case Use::reads_once: return {Role::reads, false};
        case Use::reads_often: return {Role::reads, true};
        case Use::writes_once: return {Role::writes, false};
        case Use::writes_often: return {Role::writes, true};
        default: return {Role::reads_and_writes, false};  // each byte read and written once
    }
}

auto group_of(const ProfileChoice& each) {
    return std::make_tuple(each.device, each.host, each.host_often, each.prefer);
}
auto row_of(const ProfileChoice& each) {
    return std::tuple_cat(group_of(each), std::make_tuple(each.passes));
}
bool before(const ProfileChoice& a, const ProfileChoice& b) {
    return std::tuple_cat(row_of(a), std::make_tuple(a.from_bytes)) <
           std::tuple_cat(row_of(b), std::make_tuple(b.from_bytes));
}
// The last choice that does not lie behind `wanted`; nullptr: all do.
const ProfileChoice* last_up_to(const std::vector<ProfileChoice>& choices, const ProfileChoice& wanted) {
    const auto behind = std::upper_bound(choices.begin(), choices.end(), wanted, before);
    return behind != choices.begin() ? &*(behind - 1) : nullptr;
}

}  // namespace

AccessAnswer profile_applies(const DeviceProfile& profile, const MachineFacts& machine, const DeviceFacts& device,
                             const Capabilities& capabilities) {
    AccessAnswer answer = made_here(profile.device, profile.driver_version, profile.simulated, machine, device, again);
    if (!answer) return answer;
    if (profile.kernel_release != machine.kernel_release) {
        return {Verdict::no, "it was made with another kernel", again};
    }
    if (profile.translation != capabilities.translation || profile.memory != capabilities.memory) {
        return {Verdict::no, "the device had another memory model then", again};
    }
    return answer;
}

std::string_view fault_of(const std::vector<ProfileChoice>& choices) {
    for (std::size_t i = 0; i < choices.size(); ++i) {
        const ProfileChoice& each = choices[i];
        if (each.passes < 1) return "a choice has no passes";
        if (each.kind == MemoryKind::unknown) return "a choice names no kind of memory";
        if (i > 0 && !before(choices[i - 1], each)) return "its choices are not in ascending order";
        const bool begins = i == 0 || row_of(choices[i - 1]) != row_of(each);
        if (begins && each.from_bytes != 0) return "the first choice for a number of passes does not begin at 0 bytes";
    }
    return {};
}

const ProfileChoice* measured_choice(const Capabilities& device, const SharedUse& use, std::size_t bytes) {
    if (device.profile == nullptr || use.device == Use::never || use.host == Use::never) return nullptr;
    if (use.updates != AtomicSet::load_store) return nullptr;
    const std::vector<ProfileChoice>& choices = device.profile->choices;
    const Passed host = passed_by(use.host);
    ProfileChoice wanted;
    wanted.device = passed_by(use.device).role;
    wanted.host = host.role;
    wanted.host_often = host.often;
    wanted.prefer = use.prefer;
    wanted.passes = passes_of_device(use);
    wanted.from_bytes = std::numeric_limits<std::size_t>::max();
    const ProfileChoice* const row = last_up_to(choices, wanted);
    if (row == nullptr || group_of(*row) != group_of(wanted)) return nullptr;
    wanted.passes = row->passes;
    wanted.from_bytes = bytes;
    return last_up_to(choices, wanted);  // of this row, because its first choice begins at 0
}

std::string_view measured_reason(MemoryKind kind) {
    switch (kind) {
        case MemoryKind::device:
        case MemoryKind::pool:
            return "measured on this device: at this size and number of passes a copy at each hand-over is the fastest";
        case MemoryKind::pinned:
            return "measured on this device: at this size and number of passes pinned memory, used in place, is the "
                   "fastest";
        case MemoryKind::registered:
            return "measured on this device: at this size and number of passes registered memory, used in place, is "
                   "the fastest";
        case MemoryKind::write_combined:
            return "measured on this device: at this size and number of passes write-combined memory, which the host "
                   "only writes, is the fastest";
        case MemoryKind::managed:
            return "measured on this device: at this size and number of passes managed memory is the fastest";
        default:
            return "measured on this device: at this size and number of passes ordinary memory, used in place, is the "
                   "fastest";
    }
}

}  // namespace isthmus::rules
