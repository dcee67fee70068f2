// SPDX-License-Identifier: Apache-2.0
// Reads a key file that nobody else may read.
#include <isthmus/ucx.hpp>

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace isthmus {
inline namespace v0 {
namespace ucx {

Key::~Key() {
    sodium_memzero(bytes_.data(), bytes_.size());
}

Result<Key> Key::load(const std::string& path) {
    // O_NONBLOCK: a pipe in the file's place does not block.
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat facts {};
    if (!file || ::fstat(file.get(), &facts) != 0) {
        const int number = errno;
        return Error(Code::system_error, "the key file '" + path + "' cannot be opened: " + std::strerror(number))
            .from_call("open", number);
    }
    const mode_t mode = facts.st_mode & 07777;
    const bool ours = facts.st_uid == ::geteuid() || facts.st_uid == 0;
    if (!S_ISREG(facts.st_mode) || !ours || (mode != 0600 && mode != 0400)) {
        return Error(Code::not_permitted, "the key file '" + path + "' is not this user's alone",
                     "a regular file of this user with mode 0600");
    }
    constexpr std::size_t digits = 2 * size_bytes;
    std::array<char, digits + 2> text{};
    const ssize_t got = ::read(file.get(), text.data(), text.size());
    std::array<std::byte, size_bytes> bytes{};
    std::size_t decoded = 0;
    const bool right = (got == digits || (got == digits + 1 && text[digits] == '\n')) &&
                       sodium_hex2bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(), digits,
                                      nullptr, &decoded, nullptr) == 0 &&
                       decoded == size_bytes;
    sodium_memzero(text.data(), text.size());
    if (!right) {
        return Error(Code::invalid_argument, "the key file '" + path + "' does not hold 64 hexadecimal digits",
                     "od -An -N32 -tx1 /dev/urandom | tr -d ' \\n' > FILE");
    }
    Key key(bytes);
    sodium_memzero(bytes.data(), bytes.size());
    return key;
}

}  // namespace ucx
}  // namespace v0
}  // namespace isthmus
