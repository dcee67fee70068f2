// Reads files whose size is not known beforehand: /proc and /sys say 0 or 4096 for every file.
#include "text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace isthmus::platform::os {

std::string read_text(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return {};
    std::string text;
    std::array<char, 4096> part{};
    for (;;) {
        const ssize_t got = ::read(fd, part.data(), part.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) text.clear();  // half a text might say the opposite of the whole
        if (got <= 0) break;
        text.append(part.data(), static_cast<std::size_t>(got));
        if (text.size() > (std::size_t{64} << 20)) break;  // no file that is asked for is that large
    }
    ::close(fd);
    return text;
}

}  // namespace isthmus::platform::os
