// SPDX-License-Identifier: Apache-2.0
// AtomicFile: a file that is there as a whole or not at all. OutputFiles: all files of a run, or none of them.
#pragma once

#include "output_target.hpp"

#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::camera {

// Bytes go into a file that has no name yet, or, where the file system has no such files, a temporary one beside the
// target. OutputFiles::commit() gives it the target's name, and the owner and the permissions of the file that had
// this name before. Destroyed without: nothing is left behind, and what was there before still is. Pipes and devices,
// which cannot be replaced, are written straight away.
class AtomicFile {
public:
    static Result<AtomicFile> create(const std::string& path);
    AtomicFile(AtomicFile&& other) noexcept;
    AtomicFile& operator=(AtomicFile&&) = delete;
    ~AtomicFile();

    Result<void> write(std::span<const std::uint8_t> bytes);
    Result<void> write(std::string_view text);
    // No more will be written. Holds no descriptor from here on, but a temporary name: for sets of many files.
    Result<void> finish();

private:
    friend class OutputFiles;
    enum class Named : std::uint8_t { no, where_nothing_was, in_place_of_another };

    AtomicFile(OutputTarget target, std::string temporary, int descriptor);
    Result<void> keep_owner_and_mode();
    Result<void> flush();
    Result<void> write_through(const std::uint8_t* bytes, std::size_t count);
    Result<void> give_temporary_name();
    Result<void> prepare();  // all bytes have arrived
    bool keep_old_file();
    Result<void> take_name();  // the target's
    void give_name_back() noexcept;
    Error failure(const char* call, int code) const;

    OutputTarget target_;
    std::string temporary_;   // empty: written in place, without a name, or committed
    std::string old_file_{};  // the second name of the file that had the target's, until all files have theirs
    int descriptor_;
    Named named_ = Named::no;
    std::vector<std::uint8_t> buffer_;
};

// The files of one run. Order of use: add() each when it is written, print the report, commit().
class OutputFiles {
public:
    // The file has arrived on its disk as a whole, or is not taken. Refuses a second output of one file
    // (invalid_argument).
    Result<void> add(AtomicFile file);
    // Gives all of them their names. Where one cannot have its name, the others are given back theirs: everything is
    // as it was before, as far as the file system has hard links.
    Result<void> commit();

private:
    std::vector<AtomicFile> files_;
    DifferentFiles different_;
};

}  // namespace isthmus::tools::camera
