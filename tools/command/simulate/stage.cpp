// SPDX-License-Identifier: Apache-2.0
// The temporary folder: links to the simulator under both names that programs open, and the counts.
#include "stage.hpp"

#include "common/console.hpp"
#include "common/session.hpp"

#include <driver_abi/sim_statistics.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace isthmus::tools::simulate {
namespace {

constexpr const char* link_names[] = {"libcuda.so.1", "libcuda.so"};
constexpr const char* counts_name = "counts";

std::string made_folder() {
    const char* const place = std::getenv("TMPDIR");
    std::string folder = fmt::format("{}/isthmus-simulate-XXXXXX", place && *place ? place : "/tmp");
    if (!::mkdtemp(folder.data())) bad_input(fmt::format("'{}' cannot be made: {}", folder, std::strerror(errno)));
    return folder;
}

}  // namespace

Stage::Stage(std::string simulator) : simulator_(std::move(simulator)), folder_(made_folder()) {}

Stage::~Stage() {
    for (const char* const name : link_names) ::unlink((folder_ + "/" + name).c_str());
    ::unlink((folder_ + "/" + counts_name).c_str());
    ::rmdir(folder_.c_str());
}

void Stage::set(const std::string& machine, bool strict, bool uninitialised) const {
    const std::string counts = folder_ + "/" + counts_name;
    for (const char* const name : link_names) {
        const std::string link = folder_ + "/" + name;
        if (::symlink(simulator_.c_str(), link.c_str()) != 0 && errno != EEXIST) {
            bad_input(fmt::format("'{}' cannot be made: {}", link, std::strerror(errno)));
        }
    }
    // A new file: what is left of the last machine's program may still use the old one.
    ::unlink(counts.c_str());
    const int file = ::open(counts.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) bad_input(fmt::format("'{}' cannot be made: {}", counts, std::strerror(errno)));
    ::close(file);
    const char* const set_before = std::getenv("LD_LIBRARY_PATH");
    const bool again = set_before && std::string_view(set_before).substr(0, folder_.size()) == folder_;
    if (!again) ::setenv("LD_LIBRARY_PATH", with_folder_first(folder_, set_before).c_str(), 1);
    ::setenv("ISTHMUS_CUDA_LIBRARY", simulator_.c_str(), 1);
    ::setenv("ISTHMUS_SIM", machine.c_str(), 1);
    ::setenv("ISTHMUS_SIM_STATISTICS", counts.c_str(), 1);
    if (strict) ::setenv("ISTHMUS_SIM_STRICT", "1", 1);
    if (uninitialised) ::setenv("ISTHMUS_SIM_UNINITIALISED", "1", 1);
}

std::optional<Counts> Stage::counts() const {
    const std::string path = folder_ + "/" + counts_name;
    std::optional<Counts> counts;
    try {
        counts = read_counts(read_text(path, sizeof(isthmus_sim_statistics)));
    } catch (const Failure& failure) {
        complain(failure.what());
        return counts;
    }
    if (!counts) complain(fmt::format("'{}': the counts are damaged, or of another simulator", path));
    return counts;
}

std::string with_folder_first(const std::string& folder, const char* value) {
    return value && *value ? folder + ":" + value : folder;
}

}  // namespace isthmus::tools::simulate
