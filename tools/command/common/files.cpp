// SPDX-License-Identifier: Apache-2.0
// Finds the simulator's library and the installed tests, reads files whole, writes the output files of a run, and
// copies records that can be read only once.
#include "console.hpp"
#include "session.hpp"
#include "common/tool_paths.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <utility>

namespace isthmus::tools {
namespace {

std::string own_folder() {
    char path[PATH_MAX];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0) return {};
    const std::string program(path, static_cast<std::size_t>(length));
    return program.substr(0, program.rfind('/'));
}

Result<void> add(camera::OutputFiles& files, const std::string& path, const std::string& content) {
    Result<camera::AtomicFile> file = camera::AtomicFile::create(path);
    if (!file) return std::move(file).error();
    if (Result<void> written = file->write(content); !written) return written;
    return files.add(std::move(file).value());
}

// One byte more than the record reader accepts, so that it reports the error.
constexpr std::size_t max_record_bytes = (16u << 20) + 1;

std::string read_to_the_end(const std::string& path, std::size_t most_bytes) {
    const auto failed = [&] { bad_input(fmt::format("'{}': cannot be read: {}", path, std::strerror(errno))); };
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0) failed();
    std::string text;
    char part[65536];
    ssize_t got = 0;
    do {
        got = ::read(file, part, sizeof part);
        if (got > 0) text.append(part, static_cast<std::size_t>(got));
    } while ((got > 0 || (got < 0 && errno == EINTR)) && text.size() < most_bytes);
    const int code = errno;
    ::close(file);
    errno = code;
    if (got < 0) failed();
    return text;
}

// Returns a path under which this process and its children can open these bytes repeatedly. The descriptor stays open
// until the process ends.
std::string path_of_copy(const std::string& name, const std::string& text) {
    const int copy = ::memfd_create("isthmus-record", MFD_CLOEXEC);
    bool written = copy >= 0;
    for (std::size_t done = 0; written && done < text.size();) {
        const ssize_t wrote = ::write(copy, text.data() + done, text.size() - done);
        written = wrote > 0;
        if (written) done += static_cast<std::size_t>(wrote);
    }
    if (!written) bad_input(fmt::format("'{}': cannot be kept in memory: {}", name, std::strerror(errno)));
    return fmt::format("/proc/self/fd/{}", copy);
}

std::optional<std::string> first_that_exists(std::initializer_list<std::string> candidates) {
    for (const std::string& candidate : candidates) {
        char resolved[PATH_MAX];
        if (!candidate.empty() && ::realpath(candidate.c_str(), resolved)) return std::string(resolved);
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> find_bridge() {
    for (const std::string& place :
         {own_folder() + "/isthmus-bridge", own_folder() + "/bridge/isthmus-bridge"}) {  // installed, built
        if (::access(place.c_str(), X_OK) == 0) return place;
    }
    return std::nullopt;
}

std::optional<std::string> find_simulator() {
    const std::string here = own_folder();
    return first_that_exists({here + "/" + tool_paths::simulator_from_build,
                              here + "/sim/libcuda.so.1",  // the Python wheel: bindings/python/make_wheel.py
                              here + "/" + tool_paths::simulator_from_bin, tool_paths::installed_simulator});
}

std::optional<std::string> find_installed_tests() {
    return first_that_exists({own_folder() + "/" + tool_paths::tests_from_bin, tool_paths::installed_tests});
}

std::string read_text(const std::string& path, std::size_t most_bytes) {
    std::string text = read_to_the_end(path, most_bytes + 1);
    if (text.size() > most_bytes) bad_input(fmt::format("'{}': larger than {}", path, size_text(most_bytes)));
    return text;
}

void add_file(camera::OutputFiles& files, const std::string& path, const std::string& content) {
    if (path.empty()) bad_input("an output file with an empty name was asked for");
    if (Result<void> added = add(files, path, content); !added) bad_input(std::string(added.error().message()));
}

void commit(camera::OutputFiles& files) {
    if (Result<void> done = files.commit(); !done) bad_input(std::string(done.error().message()));
}

std::string readable_record(const std::string& name_or_file) {
    struct stat facts {};
    const bool is_stream = !name_or_file.empty() && platform::machines::known_record(name_or_file).empty() &&
                           ::stat(name_or_file.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode) &&
                           !S_ISDIR(facts.st_mode);
    return is_stream ? path_of_copy(name_or_file, read_to_the_end(name_or_file, max_record_bytes)) : name_or_file;
}

}  // namespace isthmus::tools
