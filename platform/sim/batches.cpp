// SPDX-License-Identifier: Apache-2.0
// Checks that batches of copies, prefetches and discards share.
#include "batches.hpp"

#include "call.hpp"

namespace isthmus::sim {

Result check_not_capturing(Driver& d, const StreamTarget& stream) {
    if (d.engine().capture_info(stream.id).state == engine::CaptureState::none) return result::ok;
    d.engine().invalidate_capture(stream.id);
    return result::capture_unsupported;
}

bool ascend_from_zero(const std::size_t* first_of, std::size_t ranges, std::size_t count) {
    if (ranges == 0 || ranges > count || first_of[0] != 0) return false;
    for (std::size_t i = 1; i < ranges; ++i) {
        if (first_of[i] <= first_of[i - 1] || first_of[i] >= count) return false;
    }
    return true;
}

}  // namespace isthmus::sim
