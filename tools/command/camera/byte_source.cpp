// SPDX-License-Identifier: Apache-2.0
// Reads bytes from descriptors, where a signal may interrupt the wait, and from memory.
#include "byte_source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace isthmus::tools::camera {
namespace {

class FileSource final : public ByteSource {
public:
    FileSource(std::string name, int descriptor, bool owned, int stop)
        : ByteSource(std::move(name)), descriptor_(descriptor), owned_(owned), stop_(stop) {}
    ~FileSource() override {
        if (owned_) ::close(descriptor_);
    }

private:
    // A signal may arrive before read(2) is entered, where EINTR would not report it. Therefore poll() waits for both
    // the input and the stop descriptor.
    Result<std::ptrdiff_t> read_some(std::span<std::uint8_t> into) override {
        for (;;) {
            pollfd waits[2] = {{stop_, POLLIN, 0}, {descriptor_, POLLIN, 0}};
            if (::poll(waits, 2, -1) < 0 && errno != EINTR) return failure("poll");
            if (waits[0].revents != 0) return std::ptrdiff_t{-1};
            if (waits[1].revents == 0) continue;
            const ssize_t got = ::read(descriptor_, into.data(), into.size());
            if (got >= 0) return static_cast<std::ptrdiff_t>(got);
            if (errno != EINTR && errno != EAGAIN) return failure("read");
        }
    }
    Error failure(const char* call) const {
        const int code = errno;
        return Error(Code::system_error, "cannot read " + name() + ": " + std::strerror(code)).from_call(call, code);
    }

    int descriptor_;
    bool owned_;
    int stop_;
};

class MemorySource final : public ByteSource {
public:
    MemorySource(std::string name, std::string_view bytes) : ByteSource(std::move(name)), rest_(bytes) {}

private:
    Result<std::ptrdiff_t> read_some(std::span<std::uint8_t> into) override {
        const std::size_t count = std::min(into.size(), rest_.size());
        if (count > 0) std::memcpy(into.data(), rest_.data(), count);
        rest_.remove_prefix(count);
        return static_cast<std::ptrdiff_t>(count);
    }
    std::string_view rest_;
};

}  // namespace

Result<Got> ByteSource::fill() {
    Result<std::ptrdiff_t> got = read_some(buffer_);
    if (!got) return std::move(got).error();
    if (*got < 0) return Got::stopped;
    begin_ = 0;
    end_ = static_cast<std::size_t>(*got);
    return end_ == 0 ? Got::nothing : Got::all;
}

Result<Got> ByteSource::read(std::span<std::uint8_t> into) {
    std::size_t done = std::min(into.size(), end_ - begin_);
    if (done > 0) std::memcpy(into.data(), buffer_ + begin_, done);
    begin_ += done;
    while (done < into.size()) {
        // Reads directly into the caller's memory: frames are large, and that memory may be a GPU's.
        Result<std::ptrdiff_t> got = read_some(into.subspan(done));
        if (!got) return std::move(got).error();
        if (*got < 0) return Got::stopped;
        if (*got == 0) {
            if (done == 0) return Got::nothing;
            return Error(Code::invalid_argument, name_ + " is truncated: it ends at byte " +
                                                     std::to_string(position_ + done) + ", where " +
                                                     std::to_string(into.size() - done) + " more were due");
        }
        done += static_cast<std::size_t>(*got);
    }
    position_ += done;
    return Got::all;
}

Result<std::ptrdiff_t> ByteSource::read_up_to(std::span<std::uint8_t> into) {
    Result<std::ptrdiff_t> got = static_cast<std::ptrdiff_t>(std::min(into.size(), end_ - begin_));
    if (*got > 0) {
        std::memcpy(into.data(), buffer_ + begin_, static_cast<std::size_t>(*got));
        begin_ += static_cast<std::size_t>(*got);
    } else {
        got = read_some(into);
    }
    if (got && *got > 0) position_ += static_cast<std::uint64_t>(*got);
    return got;
}

Result<int> ByteSource::peek() {
    if (begin_ == end_) {
        Result<Got> got = fill();
        if (!got) return std::move(got).error();
        if (*got != Got::all) return *got == Got::nothing ? -1 : -2;
    }
    return int{buffer_[begin_]};
}

Result<Got> ByteSource::read_line(std::string& line, std::size_t max_bytes) {
    line.clear();
    for (;;) {
        Result<int> next = peek();
        if (!next) return std::move(next).error();
        if (*next == -2) return Got::stopped;
        if (*next == -1) {
            if (line.empty()) return Got::nothing;
            return Error(Code::invalid_argument,
                         name_ + " is truncated: it ends in a header line at byte " + std::to_string(position_));
        }
        ++begin_;
        ++position_;
        if (*next == '\n') return Got::all;
        if (line.size() == max_bytes) {
            return Error(Code::invalid_argument,
                         name_ + " has a header line of more than " + std::to_string(max_bytes) + " bytes");
        }
        line.push_back(static_cast<char>(*next));
    }
}

Result<std::unique_ptr<ByteSource>> open_file(const std::string& path, int stop_descriptor) {
    if (path == "-") {
        return std::unique_ptr<ByteSource>(
            std::make_unique<FileSource>("standard input", STDIN_FILENO, false, stop_descriptor));
    }
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        const int code = errno;
        return Error(Code::system_error, "cannot open " + path + ": " + std::strerror(code)).from_call("open", code);
    }
    auto source = std::make_unique<FileSource>(path, descriptor, true, stop_descriptor);
    struct stat facts {};
    if (::fstat(descriptor, &facts) == 0 && S_ISDIR(facts.st_mode))
        return Error(Code::invalid_argument, path + " is a directory", "name a file, or - for standard input");
    return std::unique_ptr<ByteSource>(std::move(source));
}

std::unique_ptr<ByteSource> from_memory(std::string name, std::string_view bytes) {
    return std::make_unique<MemorySource>(std::move(name), bytes);
}

}  // namespace isthmus::tools::camera
