// Finds the simulator's library, and writes files that are whole or not there.
#include "session.hpp"

#include "console.hpp"
#include "tool_paths.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace isthmus::tools {
namespace {

std::string own_folder() {
    char path[PATH_MAX];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0) return {};
    const std::string program(path, static_cast<std::size_t>(length));
    return program.substr(0, program.rfind('/'));
}

[[noreturn]] void unwritable(const std::string& path) {
    bad_input(fmt::format("writing {}: {}", path, std::strerror(errno)));
}

bool write_all(int fd, const std::string& content) {
    for (std::size_t done = 0; done < content.size();) {
        const ssize_t wrote = ::write(fd, content.data() + done, content.size() - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return false;
        done += static_cast<std::size_t>(wrote);
    }
    return true;
}

}  // namespace

std::optional<std::string> find_simulator() {
    const std::string here = own_folder();
    const std::string candidates[] = {here + "/" + tool_paths::simulator_from_build,
                                      here + "/" + tool_paths::simulator_from_bin, tool_paths::installed_simulator};
    for (const std::string& candidate : candidates) {
        char resolved[PATH_MAX];
        if (!candidate.empty() && ::realpath(candidate.c_str(), resolved)) return std::string(resolved);
    }
    return std::nullopt;
}

void write_file(const std::string& path, const std::string& content) {
    if (path.empty()) bad_input("an output file with an empty name was asked for");
    struct stat status {};
    // Devices and pipes cannot be replaced; they are written to.
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        if (fd < 0) unwritable(path);
        const bool wrote = write_all(fd, content);
        if (::close(fd) != 0 || !wrote) unwritable(path);
        return;
    }
    std::string temporary = path + ".XXXXXX";
    const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
    if (fd < 0) unwritable(path);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    const bool wrote = write_all(fd, content) && ::fchmod(fd, 0666 & ~mask) == 0;
    const bool closed = ::close(fd) == 0;
    if (!wrote || !closed || ::rename(temporary.c_str(), path.c_str()) != 0) {
        const int error = errno;
        ::unlink(temporary.c_str());
        errno = error;
        unwritable(path);
    }
}

}  // namespace isthmus::tools
