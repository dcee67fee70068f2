// SPDX-License-Identifier: Apache-2.0
// Opens files of other processes through /proc.
#include "named_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace isthmus::sim {

ShareableBytes name_file(const char (&magic)[8], int file, std::uint64_t nonce) {
    FileName name;
    std::memcpy(name.magic, magic, sizeof(name.magic));
    name.process = ::getpid();
    name.file = file;
    name.nonce = nonce;
    ShareableBytes bytes = {};
    static_assert(sizeof(name) <= sizeof(bytes.bytes));
    std::memcpy(bytes.bytes, &name, sizeof(name));
    return bytes;
}

bool read_name(const ShareableBytes& bytes, const char (&magic)[8], FileName& name) {
    std::memcpy(&name, bytes.bytes, sizeof(name));
    return std::memcmp(name.magic, magic, sizeof(name.magic)) == 0 && name.process > 0 && name.file >= 0;
}

int open_named_file(const FileName& name) {
    char path[64];
    std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", name.process, name.file);
    return ::open(path, O_RDWR | O_CLOEXEC);
}

}  // namespace isthmus::sim
