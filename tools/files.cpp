// Finds the simulator's library, and writes files that are whole or not there.
#include "session.hpp"

#include "camera/atomic_file.hpp"
#include "console.hpp"
#include "tool_paths.hpp"

#include <unistd.h>

#include <climits>
#include <cstdlib>
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

Result<void> replace(const std::string& path, const std::string& content) {
    Result<camera::AtomicFile> file = camera::AtomicFile::create(path);
    if (!file) return std::move(file).error();
    if (Result<void> written = file->write(content); !written) return written;
    return file->commit();
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
    if (Result<void> written = replace(path, content); !written) {
        bad_input(std::string(written.error().message()));
    }
}

}  // namespace isthmus::tools
