// SPDX-License-Identifier: Apache-2.0
#include "profile_file.hpp"

#include <platform/os.hpp>

#include "profile_errors.hpp"
#include "profile_reader.hpp"

#include <cerrno>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 20;
constexpr std::string_view own_name = "/isthmus/profile.json";

}  // namespace

ProfilePlaces profile_places(std::string option) {
    ProfilePlaces places;
    places.option = std::move(option);
    places.variable = platform::os::environment("ISTHMUS_PROFILE");
    places.config_home = platform::os::environment("XDG_CONFIG_HOME");
    places.home = platform::os::environment("HOME");
    return places;
}

std::vector<ProfileCandidate> profile_candidates(const ProfilePlaces& places) {
    const std::string& asked = places.option.empty() ? places.variable : places.option;
    if (asked == "none") return {};
    if (!asked.empty()) return {{asked, true}};
    std::vector<ProfileCandidate> candidates;
    const bool absolute = places.config_home.starts_with('/');  // the XDG specification ignores relative ones
    if (absolute) {
        candidates.push_back({places.config_home + std::string(own_name), false});
    } else if (places.home.starts_with('/')) {
        candidates.push_back({places.home + "/.config" + std::string(own_name), false});
    }
    candidates.push_back({"/etc" + std::string(own_name), false});
    return candidates;
}

Result<FoundProfiles> find_profiles(const ProfilePlaces& places) {
    for (const ProfileCandidate& candidate : profile_candidates(places)) {
        const platform::os::FileText read = platform::os::read_file(candidate.file, most_bytes);
        const bool missing = read.error == ENOENT || read.error == ENOTDIR;
        // An unreadable home folder, as services and containers have it, is none of the program's business.
        if (!candidate.asked && (missing || read.error == EACCES)) continue;
        if (read.error != 0) {
            return make_error<errors::profile_not_read>(candidate.file, read.reason).from_call("open", read.error);
        }
        Result<std::vector<DeviceProfile>> devices = read_profiles(read.text, candidate.file);
        if (!devices) return std::move(devices).error();
        return FoundProfiles{candidate.file, std::move(devices).value()};
    }
    return FoundProfiles{};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
