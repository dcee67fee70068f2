// SPDX-License-Identifier: Apache-2.0
// OutputTarget: the file that an output path names, and whether it may be replaced.
#pragma once

#include <isthmus/result.hpp>

#include <initializer_list>
#include <map>
#include <string>
#include <sys/types.h>
#include <utility>

namespace isthmus::tools::camera {

// The device and the inode of a file.
using FileIdentity = std::pair<dev_t, ino_t>;

struct OutputTarget {
    std::string asked;      // as the user wrote it, for messages
    std::string path;       // the resolved path; links are followed, also where the target does not exist yet
    std::string folder;     // the directory of the file, with a slash at the end
    bool in_place = false;  // a pipe, a device or an unnamed file: it cannot be replaced, and is opened and written
    bool exists = false;
    FileIdentity folder_identity{};
    FileIdentity file_identity{};  // valid where the file exists
    uid_t owner = 0;               // with group and permissions: copied to the file that replaces this one
    gid_t group = 0;
    mode_t mode = 0;
};

// Errors: system_error (the system refuses the path); invalid_argument (a directory, a file or link that another user
// put into a world-writable directory, or the file that standard output goes to).
Result<OutputTarget> find_target(const std::string& path);

// The files that a run writes. Refuses two outputs to one file, whatever links or spellings name it.
class DifferentFiles {
public:
    // Errors: invalid_argument for a second output of a file.
    Result<void> add(const OutputTarget& target);

private:
    // key: directory and file name; value: the path that the user gave
    std::map<std::pair<FileIdentity, std::string>, std::string> taken_;
};
// The same check for paths, before any file is begun. Empty paths are skipped.
Result<void> check_different(std::initializer_list<std::string> paths);

}  // namespace isthmus::tools::camera
