// SPDX-License-Identifier: Apache-2.0
// DeviceProfile: what `isthmus tune` measured on one device. By it the allocation policy chooses among the memory that
// the rules allow; it never widens them. Runtime::open() reads it (RuntimeOptions::profile).
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/export.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/uuid.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {

// What one side does with a buffer between two hand-overs.
enum class Role : std::uint8_t { reads, writes, reads_and_writes };
ISTHMUS_API std::string_view name(Role role) noexcept;

// The fastest memory for one use, from this number of passes of the device and from this size on, up to the next choice
// of the same use.
struct ProfileChoice {
    Role device = Role::reads;
    Role host = Role::writes;
    bool host_often = false;  // the host goes over each byte many times (Use::reads_often, Use::writes_often)
    Prefer prefer = Prefer::throughput;
    int passes = 1;                          // of the device, at least 1
    std::size_t from_bytes = 0;              // the first choice for each number of passes begins at 0
    MemoryKind kind = MemoryKind::pinned;    // device: copied at each hand-over
    Locality locality = Locality::anywhere;  // of host memory; anywhere: as the policy places it without a profile
};

struct DeviceProfile {
    Uuid device;
    int driver_version = 0;      // MachineFacts::driver_version when it was measured
    std::string kernel_release;  // MachineFacts::kernel_release
    bool simulated = false;      // measured on a simulated machine: says nothing about a real one
    Translation translation = Translation::none;
    MemoryModel memory = MemoryModel::separate;
    std::string measured_on;             // the date, UTC: "2026-11-24"
    std::vector<ProfileChoice> choices;  // ascending by the fields from `device` to `from_bytes`
};

}  // namespace v0
}  // namespace isthmus
