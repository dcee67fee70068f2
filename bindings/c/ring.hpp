// SPDX-License-Identifier: Apache-2.0
// The handles of frames between processes. Elements are bytes here, whatever the other side calls them.
#pragma once

#include <isthmus/ipc/shared_frame_ring.hpp>

#include "handles.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace isthmus::c {

// One end of a ring: `Core` is the half that waits and tells, the slots are its frames.
template <class Core>
struct RingEnd : Counted {
    RingEnd(isthmus_device& of, std::shared_ptr<Core> made, std::vector<Ref<isthmus_buffer>> adopted)
        : runtime(*of.runtime), core(std::move(made)), slots(std::move(adopted)) {}
    isthmus_buffer& slot_of(std::uint64_t frame) const noexcept { return *slots[frame % slots.size()]; }
    Ref<isthmus_runtime> runtime;
    std::shared_ptr<Core> core;
    std::vector<Ref<isthmus_buffer>> slots;  // destroyed first: their memory belongs to the core
};

template <class Core>
Result<std::vector<Ref<isthmus_buffer>>> slots_of(isthmus_device& device, const Core& core, std::size_t slots,
                                                  std::size_t frame_bytes, const SharedUse& use) {
    ISTHMUS_TRY(auto buffers, detail::adopt_slots<std::byte>(*device.cpp, core, slots, frame_bytes, use));
    std::vector<Ref<isthmus_buffer>> made;
    made.reserve(buffers.size());
    for (auto& buffer : buffers) {
        made.push_back(Ref<isthmus_buffer>::adopted(new isthmus_buffer(device, std::move(buffer))));
    }
    return made;
}

}  // namespace isthmus::c

struct isthmus_shared_ring final : isthmus::c::RingEnd<isthmus::detail::RingProducerCore> {
    using RingEnd::RingEnd;
};
struct isthmus_shared_reader final : isthmus::c::RingEnd<isthmus::detail::RingReaderCore> {
    isthmus_shared_reader(isthmus_device& of, std::uint64_t bytes,
                          std::shared_ptr<isthmus::detail::RingReaderCore> made,
                          std::vector<isthmus::c::Ref<isthmus_buffer>> adopted)
        : RingEnd(of, std::move(made), std::move(adopted)), frame_bytes(bytes) {}
    std::uint64_t frame_bytes;
};
