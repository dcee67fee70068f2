// SPDX-License-Identifier: Apache-2.0
// Writes an output into an unnamed or temporary file, and gives it the target's name at the end.
#include "atomic_file.hpp"

#include "common/signals_held.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace isthmus::tools::camera {
namespace {

constexpr std::size_t buffer_bytes = 1 << 16;
constexpr int max_tries = 100;

Error cannot_write(const std::string& path, const char* call, int code) {
    return Error(Code::system_error, "cannot write " + path + ": " + std::strerror(code),
                 "name a file in a folder that exists and may be written")
        .from_call(call, code);
}

// The name differs between attempts and between processes. O_EXCL and linkat() refuse a name that exists.
std::string temporary_name(const OutputTarget& target) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return target.folder + ".isthmus-" + std::to_string(::getpid()) + "-" + std::to_string(now);
}

std::string own_link(int descriptor) {
    return "/proc/self/fd/" + std::to_string(descriptor);
}

// Returns -1 where the file system has no O_TMPFILE, or where /proc, which linkat() needs to name the file, is not
// mounted.
int open_without_name(const OutputTarget& target, mode_t mode) {
    const int descriptor = ::open(target.folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (descriptor < 0 || ::access(own_link(descriptor).c_str(), F_OK) == 0) return descriptor;
    ::close(descriptor);
    return -1;
}

}  // namespace

AtomicFile::AtomicFile(OutputTarget target, std::string temporary, int descriptor)
    : target_(std::move(target)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      old_file_(std::exchange(other.old_file_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      named_(other.named_),
      buffer_(std::move(other.buffer_)) {}

AtomicFile::~AtomicFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    if (!old_file_.empty()) ::unlink(old_file_.c_str());
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
    Result<OutputTarget> target = find_target(path);
    if (!target) return std::move(target).error();
    if (target->in_place) {
        const int in_place = ::open(target->path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (in_place < 0) return cannot_write(path, "open", errno);
        return AtomicFile(std::move(target).value(), {}, in_place);
    }
    // The new file gets no wider permissions than the file that it replaces. The system applies the umask to a new one.
    const mode_t mode = target->exists ? target->mode : 0666;
    std::string temporary;
    int descriptor = open_without_name(*target, mode);
    for (int tries = 0; descriptor < 0 && tries < max_tries; ++tries) {
        temporary = temporary_name(*target);
        descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (descriptor < 0 && errno != EEXIST) return cannot_write(path, "open", errno);
    }
    if (descriptor < 0) return cannot_write(path, "open", EEXIST);
    AtomicFile file(std::move(target).value(), std::move(temporary), descriptor);
    if (Result<void> kept = file.keep_owner_and_mode(); !kept) return std::move(kept).error();
    return file;
}

Result<void> AtomicFile::keep_owner_and_mode() {
    struct stat facts {};
    if (!target_.exists) return {};
    if (::fstat(descriptor_, &facts) != 0) return failure("fstat", errno);
    const bool own = facts.st_uid == target_.owner && facts.st_gid == target_.group;
    if (!own && ::fchown(descriptor_, target_.owner, target_.group) != 0) {
        const int code = errno;
        return Error(Code::system_error,
                     "cannot write " + target_.asked + ": a new file cannot be given its owner and group (" +
                         std::strerror(code) + ")",
                     "remove it first, or name another file")
            .from_call("fchown", code);
    }
    const bool same_mode = (facts.st_mode & 0777) == target_.mode;
    if (!same_mode && ::fchmod(descriptor_, target_.mode) != 0) return failure("fchmod", errno);
    return {};
}

Error AtomicFile::failure(const char* call, int code) const {
    return cannot_write(target_.asked, call, code);
}

Result<void> AtomicFile::write_through(const std::uint8_t* bytes, std::size_t count) {
    while (count > 0) {
        const ssize_t written = ::write(descriptor_, bytes, count);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return failure("write", errno);
        bytes += written;
        count -= static_cast<std::size_t>(written);
    }
    return {};
}

Result<void> AtomicFile::flush() {
    Result<void> written = write_through(buffer_.data(), buffer_.size());
    buffer_.clear();
    return written;
}

Result<void> AtomicFile::write(std::span<const std::uint8_t> bytes) {
    if (buffer_.size() + bytes.size() > buffer_bytes) {
        if (Result<void> flushed = flush(); !flushed) return flushed;
    }
    if (bytes.size() >= buffer_bytes) return write_through(bytes.data(), bytes.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
}

Result<void> AtomicFile::write(std::string_view text) {
    return write(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

Result<void> AtomicFile::give_temporary_name() {
    if (target_.in_place || !temporary_.empty()) return {};
    for (int tries = 0; tries < max_tries; ++tries) {
        std::string temporary = temporary_name(target_);
        if (::linkat(AT_FDCWD, own_link(descriptor_).c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) == 0) {
            temporary_ = std::move(temporary);
            return {};
        }
        if (errno != EEXIST) return failure("linkat", errno);
    }
    return failure("linkat", EEXIST);
}

Result<void> AtomicFile::finish() {
    if (descriptor_ < 0) return {};
    if (Result<void> flushed = flush(); !flushed) return flushed;
    if (Result<void> named = give_temporary_name(); !named) return named;
    if (::close(std::exchange(descriptor_, -1)) != 0) return failure("close", errno);
    return {};
}

Result<void> AtomicFile::prepare() {
    const bool without_name = descriptor_ >= 0 && temporary_.empty() && !target_.in_place;
    if (!without_name) return finish();
    if (Result<void> flushed = flush(); !flushed) return flushed;
    // Some file systems report only at close() that bytes did not arrive. The original descriptor is still needed to
    // name the file, so a duplicate is closed.
    const int second = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
    if (second < 0 || ::close(second) != 0) return failure("close", errno);
    return {};
}

// Gives the file that has the target's name a second name. Returns false where there is no such file.
bool AtomicFile::keep_old_file() {
    for (int tries = 0; tries < max_tries; ++tries) {
        std::string name = temporary_name(target_);
        if (::linkat(AT_FDCWD, target_.path.c_str(), AT_FDCWD, name.c_str(), 0) == 0) {
            old_file_ = std::move(name);
            return true;
        }
        if (errno != EEXIST) break;
    }
    return errno != ENOENT;  // the file system has no hard links: the file exists, and cannot be kept
}

Result<void> AtomicFile::take_name() {
    if (target_.in_place) return {};
    if (Result<void> named = give_temporary_name(); !named) return named;
    const bool replaces = keep_old_file();
    if (std::rename(temporary_.c_str(), target_.path.c_str()) != 0) return failure("rename", errno);
    temporary_.clear();
    named_ = replaces ? Named::in_place_of_another : Named::where_nothing_was;
    return {};
}

void AtomicFile::give_name_back() noexcept {
    const char* const name = target_.path.c_str();
    if (named_ == Named::where_nothing_was) ::unlink(name);
    if (named_ == Named::in_place_of_another && !old_file_.empty()) {
        [[maybe_unused]] const int renamed = std::rename(old_file_.c_str(), name);
        old_file_.clear();  // if that failed, the old file keeps its second name, so that it is not lost
    }
    named_ = Named::no;
}

Result<void> OutputFiles::add(AtomicFile file) {
    if (Result<void> added = different_.add(file.target_); !added) return added;
    if (Result<void> prepared = file.prepare(); !prepared) return prepared;
    files_.push_back(std::move(file));
    return {};
}

Result<void> OutputFiles::commit() {
    // A signal that ended the process between two renames would leave the temporary name behind.
    const SignalsHeld held;
    Result<void> done;
    for (std::size_t at = 0; done && at < files_.size(); ++at) done = files_[at].take_name();
    if (!done) {
        for (auto file = files_.rbegin(); file != files_.rend(); ++file) file->give_name_back();
    }
    files_.clear();
    return done;
}

}  // namespace isthmus::tools::camera
