// SPDX-License-Identifier: Apache-2.0
// Reads files of unknown size: /proc and /sys state 0 or 4096 for every file.
#include "text_file.hpp"

#include <platform/os.hpp>

#include "page_mapping.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace isthmus::platform::os {

namespace {

bool has_line_with(std::string_view text, std::string_view word) {
    for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        if (at == 0 || text[at - 1] == '\n') return text.find('\n', at) != std::string_view::npos;
    }
    return false;
}

// Reads `step` bytes at a time, up to the line that begins with `last_word`, or the whole file where it is empty. A
// failure leaves no text: a part could mean the opposite of the whole.
FileText read_until(int fd, std::size_t step, std::size_t most_bytes, std::string_view last_word) {
    FileText file;
    const auto failed = [&file](int error) {
        file.text.clear();
        file.error = error;
        file.reason = words(error);
    };
    for (;;) {
        const std::size_t had = file.text.size();
        file.text.resize(had + step);
        const ssize_t got = ::read(fd, file.text.data() + had, step);
        const int error = errno;
        file.text.resize(had + static_cast<std::size_t>(got < 0 ? 0 : got));
        if (got < 0 && error == EINTR) continue;
        if (got < 0) failed(error);
        if (file.text.size() > most_bytes) failed(EFBIG);
        if (got <= 0 || file.error != 0) break;
        if (!last_word.empty() && has_line_with(file.text, last_word)) break;
    }
    return file;
}

// Of /proc and /sys.
std::string read(const std::string& path, std::string_view last_word) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return {};
    std::string text = read_until(fd, 4096, std::size_t{64} << 20, last_word).text;
    ::close(fd);
    return text;
}

}  // namespace

// Devices, pipes and sockets have no end, or one that another process decides.
FileText read_file(const std::string& path, std::size_t most_bytes) {
    FileText file;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);  // a FIFO without a writer, too
    struct stat facts {};
    if (fd < 0 || ::fstat(fd, &facts) != 0) {
        file.error = errno;
    } else if (S_ISDIR(facts.st_mode)) {
        file.error = EISDIR;
    } else if (!S_ISREG(facts.st_mode)) {
        file.error = EINVAL;
        file.reason = "it is no regular file";
    } else if (facts.st_size > 0 && static_cast<std::uintmax_t>(facts.st_size) > most_bytes) {
        file.error = EFBIG;
    }
    if (file.error == 0) {
        file = read_until(fd, std::size_t{64} << 10, most_bytes, {});
    } else if (file.reason.empty()) {
        file.reason = words(file.error);
    }
    if (fd >= 0) ::close(fd);
    return file;
}

std::string read_text(const std::string& path) {
    return read(path, {});
}
std::string read_text_up_to(const std::string& path, std::string_view word) {
    return read(path, word);
}

}  // namespace isthmus::platform::os
