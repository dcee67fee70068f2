// SPDX-License-Identifier: Apache-2.0
// Bytes that name a descriptor of this process, by which another process of the same user opens the same file; the form
// of handles that are plain bytes. They are invalid once the descriptor is closed or its process has ended.
#pragma once

#include "types.hpp"

#include <cstdint>

namespace isthmus::sim {

struct FileName {
    char magic[8] = {};
    int process = 0;
    int file = -1;
    std::uint64_t nonce = 0;  // of the file's header: the descriptor may refer to another file by now
};

ShareableBytes name_file(const char (&magic)[8], int file, std::uint64_t nonce);
// false: bytes of another kind of handle.
bool read_name(const ShareableBytes& bytes, const char (&magic)[8], FileName& name);
// Returns a close-on-exec descriptor; -1: the file does not exist, or the system refuses access.
int open_named_file(const FileName& name);

}  // namespace isthmus::sim
