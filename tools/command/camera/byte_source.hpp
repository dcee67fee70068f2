// SPDX-License-Identifier: Apache-2.0
// ByteSource: the input bytes of frames, from a file, a pipe or memory. Reads exactly what is asked for, or returns an
// error.
#pragma once

#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace isthmus::tools::camera {

enum class Got : std::uint8_t {
    all,
    nothing,  // the input ended exactly where the read began
    stopped,  // a signal asked to stop
};

class ByteSource {
public:
    virtual ~ByteSource() = default;

    // Fills `into`. An end of input in the middle is an error: the input is truncated.
    Result<Got> read(std::span<std::uint8_t> into);
    // Reads what is available, at most `into`. Returns at least 1 byte; 0 at the end; -1 where a signal asked to stop.
    Result<std::ptrdiff_t> read_up_to(std::span<std::uint8_t> into);
    // Reads up to a newline, which is consumed and not stored. More than `max_bytes` bytes without a newline are an
    // error.
    Result<Got> read_line(std::string& line, std::size_t max_bytes);
    // Returns the next byte without consuming it; -1 at the end, -2 where a signal asked to stop.
    Result<int> peek();

    const std::string& name() const noexcept { return name_; }  // for messages
    std::uint64_t position() const noexcept { return position_; }

protected:
    explicit ByteSource(std::string name) : name_(std::move(name)) {}
    // Returns the count of bytes read, at least 1; 0 at the end; -1 where a signal asked to stop.
    virtual Result<std::ptrdiff_t> read_some(std::span<std::uint8_t> into) = 0;

private:
    Result<Got> fill();  // refills the buffer, which must be empty
    std::string name_;
    std::uint64_t position_ = 0;
    std::uint8_t buffer_[4096];
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

// Opens `path`; "-" is standard input. Reading stops when `stop_descriptor` becomes readable; -1: never.
Result<std::unique_ptr<ByteSource>> open_file(const std::string& path, int stop_descriptor = -1);
// Reads from `bytes`, which must outlive the source.
std::unique_ptr<ByteSource> from_memory(std::string name, std::string_view bytes);

}  // namespace isthmus::tools::camera
