// SPDX-License-Identifier: Apache-2.0
// Paths follow the XDG Base Directory Specification: a relative path in its variables counts as none.
#include "profile_place.hpp"

#include "common/console.hpp"

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace isthmus::tools::tune {
namespace {

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

}  // namespace

std::string own_profile_path() {
    const std::string config = variable("XDG_CONFIG_HOME");
    if (!config.empty() && config.front() == '/') return config + "/isthmus/profile.json";
    const std::string home = variable("HOME");
    return home.empty() ? std::string() : home + "/.config/isthmus/profile.json";
}

std::string found_profile_path() {
    std::string named = variable("ISTHMUS_PROFILE");
    if (named == "none") return {};
    if (!named.empty()) return named;
    for (const std::string& path : {own_profile_path(), std::string("/etc/isthmus/profile.json")}) {
        if (!path.empty() && ::access(path.c_str(), F_OK) == 0) return path;
    }
    return {};
}

std::string text_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file.is_open() || file.bad()) bad_input(fmt::format("'{}': cannot be read: {}", path, std::strerror(errno)));
    return text;
}

void make_folders_of(const std::string& path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
        const std::string folder = path.substr(0, slash);
        if (::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST) continue;
        bad_input(fmt::format("the folder '{}' cannot be made: {}", folder, std::strerror(errno)));
    }
}

std::vector<Measurements> merged(std::vector<Measurements> existing, Measurements measured) {
    const auto same = std::find_if(existing.begin(), existing.end(), [&](const Measurements& other) {
        return other.profile.device == measured.profile.device;
    });
    if (same != existing.end()) {
        *same = std::move(measured);
    } else {
        existing.push_back(std::move(measured));
    }
    return existing;
}

}  // namespace isthmus::tools::tune
