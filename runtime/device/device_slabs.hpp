// SPDX-License-Identifier: Apache-2.0
// DeviceSlabs: a device's host memory with a requested placement, cut out of slabs; one set of slabs per placement.
#pragma once

#include <isthmus/placement.hpp>

#include "host_slabs.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceSession;

// Thread-safe. Slabs stay until trim(), or until the device and all pieces cut out of them are gone.
class DeviceSlabs {
public:
    // true: memory of this placement uses slabs. Binding, touching and locating pages costs system calls, which a slab
    // pays once (H6). Memory without a placement is mapped piece by piece, and is zero; pages of unbound memory migrate
    // with one buffer alone.
    static bool serve(const HostPlacement& placement) noexcept {
        return placement.locality != Locality::anywhere && placement.locality != Locality::unbound;
    }

    std::shared_ptr<HostSlabs> of(const DeviceSession& device, const HostPlacement& placement);
    std::size_t trim() const;  // frees slabs without pieces; returns the number of bytes freed

private:
    mutable std::mutex mutex_;
    std::vector<std::pair<HostPlacement, std::shared_ptr<HostSlabs>>> sets_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
