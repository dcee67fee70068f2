// SPDX-License-Identifier: Apache-2.0
// AtomicFile: a file that appears complete or not at all. OutputFiles: all files of a run, or none of them.
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

// Bytes go into a file that has no name yet (O_TMPFILE), or, where the file system has no such files, into a temporary
// file beside the target. OutputFiles::commit() gives it the target's name, and the owner and the permissions of the
// file that had this name before. Destruction without commit() removes the new file and keeps the old one. Pipes and
// devices cannot be replaced and are written directly.
class AtomicFile {
public:
    static Result<AtomicFile> create(const std::string& path);
    AtomicFile(AtomicFile&& other) noexcept;
    AtomicFile& operator=(AtomicFile&&) = delete;
    ~AtomicFile();

    Result<void> write(std::span<const std::uint8_t> bytes);
    Result<void> write(std::string_view text);
    // Ends writing and closes the descriptor; keeps a temporary name instead. For sets of many files.
    Result<void> finish();

private:
    friend class OutputFiles;
    enum class Named : std::uint8_t { no, where_nothing_was, in_place_of_another };

    AtomicFile(OutputTarget target, std::string temporary, int descriptor);
    Result<void> keep_owner_and_mode();
    Result<void> flush();
    Result<void> write_through(const std::uint8_t* bytes, std::size_t count);
    Result<void> give_temporary_name();
    Result<void> prepare();  // call when all bytes have been written
    bool keep_old_file();
    Result<void> take_name();  // gives the file the target's name
    void give_name_back() noexcept;
    Error failure(const char* call, int code) const;

    OutputTarget target_;
    std::string temporary_;  // empty: written in place, without a name, or committed
    // The second name of the file that had the target's name, until all files of the run have theirs.
    std::string old_file_{};
    int descriptor_;
    Named named_ = Named::no;
    std::vector<std::uint8_t> buffer_;
};

// The files of one run. Order of use: add() each file when it is written, print the report, commit().
class OutputFiles {
public:
    // Takes the file after it has been flushed to its disk. Refuses a second output of one file (invalid_argument).
    Result<void> add(AtomicFile file);
    // Gives every file its name. If one fails, the files renamed before it get their old names back: the state is as
    // before, as far as the file system has hard links.
    Result<void> commit();

private:
    std::vector<AtomicFile> files_;
    DifferentFiles different_;
};

}  // namespace isthmus::tools::camera
