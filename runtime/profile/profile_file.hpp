// SPDX-License-Identifier: Apache-2.0
// Which file a runtime reads its profiles from.
#pragma once

#include <isthmus/profile.hpp>
#include <isthmus/result.hpp>

#include <string>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// What decides the file. Empty: not set.
struct ProfilePlaces {
    std::string option;       // RuntimeOptions::profile
    std::string variable;     // ISTHMUS_PROFILE
    std::string config_home;  // XDG_CONFIG_HOME
    std::string home;         // HOME
};
// From the environment; ignored in set-user-ID programs.
ProfilePlaces profile_places(std::string option);

// The files, in the order in which they are tried. Pure. `asked`: somebody named it, so it must be there. Empty: none.
struct ProfileCandidate {
    std::string file;
    bool asked = false;
};
std::vector<ProfileCandidate> profile_candidates(const ProfilePlaces& places);

struct FoundProfiles {
    std::string file;  // empty: none was found
    std::vector<DeviceProfile> devices;
};
// The first candidate that is there. Errors: of read_profiles(); profile_not_read (a file that was asked for is
// missing, or a file that is there cannot be read).
Result<FoundProfiles> find_profiles(const ProfilePlaces& places);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
