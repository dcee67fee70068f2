// SPDX-License-Identifier: Apache-2.0
#include "private_place.hpp"

#include "common/console.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace isthmus::tools::share {
namespace {

constexpr std::string_view prefix = "isthmus-view-";
constexpr const char* socket_name = "channel";  // of meeting.hpp
constexpr const char* owner_name = "owner";     // its lock: that of the directory is the listener's

// Empty: not a directory of this user alone, or gone. A link is not followed.
FileDescriptor opened(int folder, const char* name) {
    FileDescriptor place(::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat facts {};
    const bool ours = place && ::fstat(place.get(), &facts) == 0 && facts.st_uid == ::geteuid() &&
                      (facts.st_mode & (S_IRWXG | S_IRWXO)) == 0;
    return ours ? std::move(place) : FileDescriptor();
}

FileDescriptor owner_of(int place) {
    return FileDescriptor(::openat(place, owner_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
}

// What else lies there stays, and so does the directory.
void remove(int folder, const char* name, int place) {
    (void)::unlinkat(place, socket_name, 0);
    (void)::unlinkat(place, owner_name, 0);
    (void)::unlinkat(folder, name, AT_REMOVEDIR);
}

void remove_unlocked(const std::string& folder) {
    DIR* const listing = ::opendir(folder.c_str());
    if (listing == nullptr) return;
    while (const dirent* const entry = ::readdir(listing)) {
        if (std::string_view(entry->d_name).substr(0, prefix.size()) != prefix) continue;
        const FileDescriptor place = opened(::dirfd(listing), entry->d_name);
        const FileDescriptor owner = place ? owner_of(place.get()) : FileDescriptor();
        if (owner && ::flock(owner.get(), LOCK_EX | LOCK_NB) == 0) {
            remove(::dirfd(listing), entry->d_name, place.get());
        }
    }
    ::closedir(listing);
}

}  // namespace

PrivatePlace::PrivatePlace() {
    const char* const asked = std::getenv("XDG_RUNTIME_DIR");
    const std::string folder = asked != nullptr && *asked == '/' ? asked : "/tmp";
    remove_unlocked(folder);
    for (struct stat facts{}; facts.st_nlink == 0;) {
        path_ = folder + "/" + std::string(prefix) + "XXXXXX";
        if (::mkdtemp(path_.data()) == nullptr) bad_input("view: " + path_ + ": " + std::strerror(errno));
        place_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (place_) owner_ = owner_of(place_.get());
        // Another process may take it for one that was left, before it is locked, and remove it.
        if ((!place_ || !owner_) && errno == ENOENT) continue;
        if (!place_ || !owner_ || ::flock(owner_.get(), LOCK_EX) != 0 || ::fstat(owner_.get(), &facts) != 0) {
            bad_input("view: " + path_ + ": " + std::strerror(errno));
        }
    }
}

PrivatePlace::~PrivatePlace() {
    remove(AT_FDCWD, path_.c_str(), place_.get());  // where the bridge was killed, its socket is left
}

}  // namespace isthmus::tools::share
