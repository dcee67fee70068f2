// SPDX-License-Identifier: Apache-2.0
// ByteSource: where frames' bytes come from, a file, a pipe or memory. Reads exactly what is asked for, or says why
// not.
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
    nothing,  // the end, exactly where the read began
    stopped,  // a signal asked to stop
};

class ByteSource {
public:
    virtual ~ByteSource() = default;

    // Fills `into`. The end in the middle of it is an error: the input is truncated.
    Result<Got> read(std::span<std::uint8_t> into);
    // What is there, as much as fits: at least one byte; 0 at the end; -1 where a signal asked to stop.
    Result<std::ptrdiff_t> read_up_to(std::span<std::uint8_t> into);
    // Reads up to a newline, which is taken but not given. More than `max_bytes` without one is an error.
    Result<Got> read_line(std::string& line, std::size_t max_bytes);
    // The next byte without taking it; -1 at the end, -2 where a signal asked to stop.
    Result<int> peek();

    const std::string& name() const noexcept { return name_; }  // for messages
    std::uint64_t position() const noexcept { return position_; }

protected:
    explicit ByteSource(std::string name) : name_(std::move(name)) {}
    // At least one byte; 0 at the end; -1 where a signal asked to stop.
    virtual Result<std::ptrdiff_t> read_some(std::span<std::uint8_t> into) = 0;

private:
    Result<Got> fill();  // the buffer, which is empty
    std::string name_;
    std::uint64_t position_ = 0;
    std::uint8_t buffer_[4096];
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

// "-" is standard input. `stop_descriptor` becomes readable when reading shall stop; -1: never.
Result<std::unique_ptr<ByteSource>> open_file(const std::string& path, int stop_descriptor = -1);
// The bytes must outlive the source.
std::unique_ptr<ByteSource> from_memory(std::string name, std::string_view bytes);

}  // namespace isthmus::tools::camera
