// SPDX-License-Identifier: Apache-2.0
// The simulated GPU's atomic updates (read-modify-write) of memory.
#pragma once

#include "aliases.hpp"
#include "driver.hpp"
#include "twins.hpp"

#include <execution.hpp>

namespace isthmus::sim {

// During its lifetime the calling thread updates memory as this device does: by a load and a store, between which the
// CPU may write, where no rule makes an update atomic for both. Threads of one device never interrupt each other's
// updates. An update without a word is a fence for memory that the kernel has under several addresses. A multimem
// access goes to the memory of every device of a multicast object.
class PlayingGpu {
public:
    PlayingGpu(Driver& d, int device, const Twin& twin, AliasedMemory& aliases);
    ~PlayingGpu();
    PlayingGpu(const PlayingGpu&) = delete;
    PlayingGpu& operator=(const PlayingGpu&) = delete;

private:
    const Twin& twin_;
};

// Whether every update of this memory is atomic for the CPU too. Requires the driver's mutex.
bool updates_are_whole(const Driver& d, int device, const Region& region);
// One update by this device, as above, of memory where that is not so. Returns what it loaded.
std::uint64_t play_update(Driver& d, int device, void* word, std::uint32_t bytes, ptx::Update& update);

}  // namespace isthmus::sim
