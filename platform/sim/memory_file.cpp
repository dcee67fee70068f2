// SPDX-License-Identifier: Apache-2.0
// Creates files of memory, and recognises them.
#include "memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace isthmus::sim {
namespace {

constexpr char magic[16] = "isthmus memory1";
constexpr off_t header_at = off_t{1} << 46;  // more than any allocation; unwritten pages take no memory
constexpr off_t length = header_at + (off_t{2} << 20);
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

int create_memory_file(MemoryFileHeader& header) {
    static std::atomic<std::uint64_t> count{0};
    std::memcpy(header.magic, magic, sizeof(magic));
    header.nonce = static_cast<std::uint64_t>(::getpid()) << 32 | ++count;
    const int file = ::memfd_create("isthmus-sim-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) return -1;
    const bool made = ::ftruncate(file, length) == 0 &&
                      ::pwrite(file, &header, sizeof(header), header_at) == static_cast<ssize_t>(sizeof(header)) &&
                      ::fcntl(file, F_ADD_SEALS, seals) == 0;
    if (made) return file;
    ::close(file);
    return -1;
}

bool read_memory_file(int file, MemoryFileHeader& header) {
    return file >= 0 && ::fcntl(file, F_GET_SEALS) == seals &&
           ::pread(file, &header, sizeof(header), header_at) == static_cast<ssize_t>(sizeof(header)) &&
           std::memcmp(header.magic, magic, sizeof(magic)) == 0 && header.bytes > 0 &&
           header.bytes <= static_cast<std::uint64_t>(header_at);
}

int duplicate_file(int file) {
    return ::fcntl(file, F_DUPFD_CLOEXEC, 0);
}

}  // namespace isthmus::sim
