// SPDX-License-Identifier: Apache-2.0
// Follows symbolic links one at a time, and checks each one before it is followed.
#include "output_target.hpp"

#include <cerrno>
#include <climits>
#include <cstring>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace isthmus::tools::camera {
namespace {

constexpr int max_links = 40;  // the system's limit

Error cannot_write(const std::string& path, const char* call, int code) {
    return Error(Code::system_error, "cannot write " + path + ": " + std::strerror(code),
                 "name a file in a folder that exists and may be written")
        .from_call(call, code);
}

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string("./") : path.substr(0, slash + 1);
}

FileIdentity identity_of(const struct stat& facts) {
    return {facts.st_dev, facts.st_ino};
}

// The rule of Linux' fs.protected_symlinks, applied whether or not the system has it switched on: in a sticky,
// world-writable directory a link is trusted only as far as its owner.
bool may_be_planted(const struct stat& folder, const struct stat& entry) {
    const bool open_to_all = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
    return open_to_all && entry.st_uid != ::geteuid() && entry.st_uid != folder.st_uid;
}

Result<std::string> target_of_link(const std::string& asked, const std::string& link) {
    char text[PATH_MAX];
    const ssize_t length = ::readlink(link.c_str(), text, sizeof text);
    if (length < 0) return cannot_write(asked, "readlink", errno);
    if (length == 0 || length == sizeof text) return cannot_write(asked, "readlink", ENAMETOOLONG);
    std::string target(text, static_cast<std::size_t>(length));
    return target.front() == '/' ? target : folder_of(link) + target;
}

// The target exists and a rename cannot replace it. It is opened by the path that the user gave, because the links of
// /proc/self/fd lead to pipes and unnamed files, which have no other path.
bool must_be_opened(const struct stat& facts) {
    return !S_ISREG(facts.st_mode) || facts.st_nlink == 0;
}

Result<void> check_entry(OutputTarget& target, const struct stat& entry) {
    if (S_ISDIR(entry.st_mode)) {
        return Error(Code::invalid_argument, "cannot write " + target.asked + ": it is a directory",
                     "name a file in it");
    }
    target.exists = true;
    target.file_identity = identity_of(entry);
    target.owner = entry.st_uid;
    target.group = entry.st_gid;
    target.mode = entry.st_mode & 0777;
    struct stat output {};
    const bool is_standard_output =
        S_ISREG(entry.st_mode) && ::fstat(STDOUT_FILENO, &output) == 0 && identity_of(output) == target.file_identity;
    if (!is_standard_output) return {};
    return Error(Code::invalid_argument, "cannot write " + target.asked + ": standard output goes to the same file",
                 "name two files");
}

}  // namespace

Result<OutputTarget> find_target(const std::string& path) {
    OutputTarget target;
    target.asked = path;
    target.path = path;
    for (int links = 0; links < max_links; ++links) {
        struct stat folder {};
        target.folder = folder_of(target.path);
        if (::stat(target.folder.c_str(), &folder) != 0) return cannot_write(path, "stat", errno);
        target.folder_identity = identity_of(folder);
        struct stat entry {};
        if (::lstat(target.path.c_str(), &entry) != 0) {
            if (errno == ENOENT && !target.path.empty() && target.path.back() != '/') return target;
            return cannot_write(path, "lstat", errno);
        }
        if (may_be_planted(folder, entry)) {
            return Error(Code::invalid_argument,
                         "cannot write " + path + ": another user put it into a directory where all may write",
                         "name a file in a folder of your own, or remove it first");
        }
        struct stat end = entry;
        if (S_ISLNK(entry.st_mode) && ::stat(target.path.c_str(), &end) != 0 && errno != ENOENT)
            return cannot_write(path, "stat", errno);
        if (!S_ISLNK(end.st_mode) && must_be_opened(end)) {
            target.in_place = true;
            if (Result<void> good = check_entry(target, end); !good) return std::move(good).error();
            return target;
        }
        if (!S_ISLNK(entry.st_mode)) {
            if (Result<void> good = check_entry(target, entry); !good) return std::move(good).error();
            return target;
        }
        Result<std::string> next = target_of_link(path, target.path);
        if (!next) return std::move(next).error();
        target.path = std::move(next).value();
    }
    return cannot_write(path, "readlink", ELOOP);
}

Result<void> DifferentFiles::add(const OutputTarget& target) {
    const std::string name = target.path.substr(target.path.rfind('/') + 1);
    auto [taken, is_new] = taken_.try_emplace({target.folder_identity, name}, target.asked);
    if (is_new && target.exists) {
        std::tie(taken, is_new) = taken_.try_emplace({target.file_identity, std::string()}, target.asked);
    }
    if (is_new) return {};
    return Error(Code::invalid_argument, "two outputs name the same file: " + taken->second + " and " + target.asked,
                 "name two files");
}

Result<void> check_different(std::initializer_list<std::string> paths) {
    DifferentFiles files;
    for (const std::string& path : paths) {
        if (path.empty()) continue;
        const Result<OutputTarget> target = find_target(path);
        if (!target) return target.error();
        if (Result<void> added = files.add(*target); !added) return added;
    }
    return {};
}

}  // namespace isthmus::tools::camera
