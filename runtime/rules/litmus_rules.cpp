// SPDX-License-Identifier: Apache-2.0
// Applies trials to capabilities: removes kinds in which an outcome was observed that the memory model forbids.
#include "litmus_rules.hpp"

namespace isthmus::rules {
namespace {

// Kinds that the same mechanism maps and moves share a result, because the sibling has no trials of its own.
std::uint32_t with_siblings(MemoryKind kind) {
    const auto bit = [](MemoryKind each) { return 1u << static_cast<unsigned>(each); };
    switch (kind) {
        case MemoryKind::host: return bit(kind) | bit(MemoryKind::host_numa);
        case MemoryKind::managed: return bit(kind) | bit(MemoryKind::managed_pool);
        default: return static_cast<unsigned>(kind) < memory_kind_count ? bit(kind) : 0;
    }
}

bool is_in(std::uint32_t kinds, MemoryKind kind) {
    const auto position = static_cast<unsigned>(kind);
    return position < memory_kind_count && (kinds >> position & 1u) != 0;
}

AccessAnswer no(std::string_view reason, std::string_view remedy) {
    return {Verdict::no, reason, remedy};
}

constexpr std::string_view disordered =
    "trials on this device saw an order of loads and stores in this kind that the memory model rules out";
constexpr std::string_view other_kind = "use memory of another kind, or host views";

}  // namespace

AccessAnswer finding_applies(const LitmusFinding& finding, const MachineFacts& machine, const DeviceFacts& device) {
    return made_here(finding.device, finding.driver_version, finding.simulated, machine, device,
                     "run `isthmus litmus` here");
}

AccessAnswer made_here(const Uuid& on, int driver_version, bool simulated, const MachineFacts& machine,
                       const DeviceFacts& device, std::string_view remedy) {
    if (!on || on != device.uuid) return no("it is another device's", remedy);
    if (driver_version != machine.driver_version) return no("it was made with another driver", remedy);
    if (simulated && !machine.simulated) return no("it was made on a simulated machine", remedy);
    return {Verdict::yes, "made on this device with this driver", {}};
}

Capabilities narrowed(Capabilities device, const LitmusFinding& finding) {
    for (const LitmusResult& result : finding.results) {
        if (result.forbidden == 0) continue;
        switch (result.shape) {
            case LitmusShape::tearing_to_device:
            case LitmusShape::tearing_to_host: device.torn_kinds |= with_siblings(result.kind); break;
            case LitmusShape::lost_updates: device.lossy_kinds |= with_siblings(result.kind); break;
            default: device.disordered_kinds |= with_siblings(result.kind);  // also an unknown shape, out of caution
        }
    }
    return device;
}

AccessAnswer update_trials(const Capabilities& device, MemoryKind kind) {
    if (is_in(device.lossy_kinds, kind)) {
        return no("trials on this device lost updates of CPU and GPU in memory of this kind",
                  "use a sharded counter (one lane per side), or messages by plain loads and stores");
    }
    if (is_in(device.disordered_kinds, kind)) return no(disordered, other_kind);
    return {Verdict::yes, {}, {}};
}

AccessAnswer load_store_trials(const Capabilities& device, MemoryKind kind, int width_bytes) {
    if (is_in(device.disordered_kinds, kind)) return no(disordered, other_kind);
    if (width_bytes > 8 && is_in(device.torn_kinds, kind)) {
        return no("trials on this device saw halves of 16 bytes in memory of this kind", "use words of 8 bytes");
    }
    return {Verdict::yes, {}, {}};
}

}  // namespace isthmus::rules
