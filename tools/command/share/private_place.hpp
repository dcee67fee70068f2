// SPDX-License-Identifier: Apache-2.0
// PrivatePlace: a directory of one process, for the socket of a ring that nobody else is to find.
#pragma once

#include <isthmus/file_descriptor.hpp>

#include <string>

namespace isthmus::tools::share {

// Makes FOLDER/isthmus-view-XXXXXX with mode 0700 and a file in it, whose lock (flock) it holds. The lock ends with the
// process, however that ends. Removes the directories of this user whose lock nobody holds: their processes were
// killed. The folder is $XDG_RUNTIME_DIR, else /tmp. Throws Failure where no directory can be made.
class PrivatePlace {
public:
    PrivatePlace();
    PrivatePlace(const PrivatePlace&) = delete;
    PrivatePlace& operator=(const PrivatePlace&) = delete;
    ~PrivatePlace();
    const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
    FileDescriptor place_{};
    FileDescriptor owner_{};
};

}  // namespace isthmus::tools::share
