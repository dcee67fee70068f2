// SPDX-License-Identifier: Apache-2.0
// OutputTarget: the file that an output's path names, and whether it may be replaced.
#pragma once

#include <isthmus/result.hpp>

#include <initializer_list>
#include <map>
#include <string>
#include <sys/types.h>
#include <utility>

namespace isthmus::tools::camera {

// A file is one inode of one device.
using FileIdentity = std::pair<dev_t, ino_t>;

struct OutputTarget {
    std::string asked;      // as the user wrote it, for messages
    std::string path;       // the file itself: links are followed, also to where nothing is yet
    std::string folder;     // where it is or will be, with a slash at the end
    bool in_place = false;  // a pipe, a device or a file without a name: cannot be replaced, is opened and written
    bool exists = false;
    FileIdentity folder_identity{};
    FileIdentity file_identity{};  // where it exists
    uid_t owner = 0;               // … its owner, group and permissions, which its successor is given
    gid_t group = 0;
    mode_t mode = 0;
};

// Errors: what the system says of the path (system_error); a directory, a file or link that another user put into a
// directory where all may write, and the file that standard output goes to (invalid_argument).
Result<OutputTarget> find_target(const std::string& path);

// The files that a run writes. Two outputs of one file would end as one: links and spellings do not matter.
class DifferentFiles {
public:
    // Refuses a second output of a file (invalid_argument).
    Result<void> add(const OutputTarget& target);

private:
    std::map<std::pair<FileIdentity, std::string>, std::string> taken_;  // a folder and a name in it, or a file: asked
};
// The same for paths, before any of them is begun. Empty ones name no output.
Result<void> check_different(std::initializer_list<std::string> paths);

}  // namespace isthmus::tools::camera
