// DeviceSlabs: a device's host memory that was asked for at a place, cut out of slabs, one set of them to a placement.
#pragma once

#include <isthmus/placement.hpp>

#include "host_slabs.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace isthmus::inline v0::detail {

struct DeviceSession;

// Thread-safe. Slabs stay until trim(), or until the device and everything cut out of them are gone.
class DeviceSlabs {
public:
    // Is memory of this placement worth slabs? Binding, touching and asking where pages lie costs system calls, which
    // slabs pay once (H6). Memory without such a wish is mapped piece by piece, and comes as zeros.
    static bool serve(const HostPlacement& placement) noexcept { return placement.locality != Locality::anywhere; }

    std::shared_ptr<HostSlabs> of(const DeviceSession& device, const HostPlacement& placement);
    std::size_t trim() const;  // slabs without pieces; the bytes given back

private:
    mutable std::mutex mutex_;
    std::vector<std::pair<HostPlacement, std::shared_ptr<HostSlabs>>> sets_;
};

}  // namespace isthmus::inline v0::detail
