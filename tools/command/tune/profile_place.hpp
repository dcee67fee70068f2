// SPDX-License-Identifier: Apache-2.0
// Where profiles lie, and how a new one takes its place.
#pragma once

#include "measurements.hpp"

#include <string>
#include <vector>

namespace isthmus::tools::tune {

// profile.json in the folder "isthmus" of the user's configuration ($XDG_CONFIG_HOME, else ~/.config). Empty: neither
// variable names a folder.
std::string own_profile_path();
// The profile that Runtime::open() finds without an option: that of ISTHMUS_PROFILE, the user's, or the system's in
// /etc/isthmus. Empty: there is none.
std::string found_profile_path();

// A whole file; throws Failure (exit code 2) where it cannot be read.
std::string text_of_file(const std::string& path);
// Makes the folders of the path that are missing; throws Failure.
void make_folders_of(const std::string& path);

// The devices of an existing profile with `measured` among them, instead of an earlier entry of the same device.
std::vector<Measurements> merged(std::vector<Measurements> existing, Measurements measured);

}  // namespace isthmus::tools::tune
