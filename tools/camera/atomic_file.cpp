// A temporary file beside the target, and the rename that makes it the target.
#include "atomic_file.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace isthmus::tools::camera {
namespace {

constexpr std::size_t buffer_bytes = 1 << 16;

Error cannot_write(const std::string& path, const char* call, int code) {
    return Error(Code::system_error, "cannot write " + path + ": " + std::strerror(code),
                 "name a file in a folder that exists and may be written")
        .from_call(call, code);
}

// A link's target is replaced, not the link.
std::string resolved(const std::string& path) {
    char* real = ::realpath(path.c_str(), nullptr);
    if (real == nullptr) return path;
    std::string result = real;
    std::free(real);
    return result;
}

// mkstemp makes files for their owner only; a result is as readable as any other new file.
mode_t usual_mode() {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return 0666 & ~mask;
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string temporary, int descriptor)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      buffer_(std::move(other.buffer_)) {}

AtomicFile::~AtomicFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
    const std::string target = resolved(path);
    struct stat facts {};
    if (::stat(target.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
        const int in_place = ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
        if (in_place < 0) return cannot_write(path, "open", errno);
        return AtomicFile(target, {}, in_place);
    }
    std::string temporary = target + ".XXXXXX";
    const int descriptor = ::mkostemp(temporary.data(), O_CLOEXEC);
    if (descriptor < 0) return cannot_write(path, "mkostemp", errno);
    ::fchmod(descriptor, usual_mode());
    return AtomicFile(target, std::move(temporary), descriptor);
}

Error AtomicFile::failure(const char* call, int code) const {
    return cannot_write(path_, call, code);
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

Result<void> AtomicFile::finish() {
    if (descriptor_ < 0) return {};
    if (Result<void> flushed = flush(); !flushed) return flushed;
    if (::close(std::exchange(descriptor_, -1)) != 0) return failure("close", errno);
    return {};
}

Result<void> AtomicFile::commit() {
    return commit_as(path_);
}

Result<void> AtomicFile::commit_as(const std::string& path) {
    if (Result<void> finished = finish(); !finished) return finished;
    if (temporary_.empty()) return {};
    if (std::rename(temporary_.c_str(), path.c_str()) != 0) return cannot_write(path, "rename", errno);
    temporary_.clear();
    return {};
}

}  // namespace isthmus::tools::camera
