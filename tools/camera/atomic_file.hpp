// AtomicFile: a file that is there as a whole or not at all.
#pragma once

#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::camera {

// Bytes go to a temporary file beside the target, which commit() gives the target's name. Destroyed without
// commit(): nothing is left behind, and what was there before still is. Pipes and devices, which cannot be replaced,
// are written straight away.
class AtomicFile {
public:
    static Result<AtomicFile> create(const std::string& path);
    AtomicFile(AtomicFile&& other) noexcept;
    AtomicFile& operator=(AtomicFile&&) = delete;
    ~AtomicFile();

    Result<void> write(std::span<const std::uint8_t> bytes);
    Result<void> write(std::string_view text);
    Result<void> finish();                            // no more will be written; holds no descriptor from here on
    Result<void> commit();                            // under the path that it was created for
    Result<void> commit_as(const std::string& path);  // under another one of the same folder

private:
    AtomicFile(std::string path, std::string temporary, int descriptor);
    Result<void> flush();
    Result<void> write_through(const std::uint8_t* bytes, std::size_t count);
    Error failure(const char* call, int code) const;

    std::string path_;
    std::string temporary_;  // empty: written in place, or committed
    int descriptor_;
    std::vector<std::uint8_t> buffer_;
};

}  // namespace isthmus::tools::camera
