// SPDX-License-Identifier: Apache-2.0
// Bytes that name a descriptor of this process, by which another process of the same user opens the same file: what
// stands behind handles that are plain bytes. Once the descriptor is closed, or its process has ended, they name
// nothing.
#pragma once

#include "types.hpp"

#include <cstdint>

namespace isthmus::sim {

struct FileName {
    char magic[8] = {};
    int process = 0;
    int file = -1;
    std::uint64_t nonce = 0;  // of the file's header: another file may have the descriptor by now
};

ShareableBytes name_file(const char (&magic)[8], int file, std::uint64_t nonce);
// false: bytes of another kind.
bool read_name(const ShareableBytes& bytes, const char (&magic)[8], FileName& name);
// A descriptor of our own that exec closes; -1: there is no such file, or the system does not let us.
int open_named_file(const FileName& name);

}  // namespace isthmus::sim
