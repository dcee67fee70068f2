// SPDX-License-Identifier: Apache-2.0
// How the simulated GPU updates memory (read-modify-write) when a kernel does so atomically.
#pragma once

#include "aliases.hpp"
#include "driver.hpp"
#include "twins.hpp"

namespace isthmus::sim {

// While it lives, the calling thread updates memory as this device does: by a load and a store that the CPU may come
// between, where no rule makes an update atomic for both. Threads of one device never come between each other's. An
// update of no word is a fence of the memory that the kernel finds under several addresses.
class PlayingGpu {
public:
    PlayingGpu(Driver& d, int device, const Twin& twin, AliasedMemory& aliases);
    ~PlayingGpu();
    PlayingGpu(const PlayingGpu&) = delete;
    PlayingGpu& operator=(const PlayingGpu&) = delete;

private:
    const Twin& twin_;
};

}  // namespace isthmus::sim
