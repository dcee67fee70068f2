// SPDX-License-Identifier: Apache-2.0
// The text of a profile → the profiles of its devices. Pure. All of it or an error: no profile is read half. Members
// that the library does not need (measurements, the machine's record) are skipped.
#pragma once

#include <isthmus/profile.hpp>
#include <isthmus/result.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

inline constexpr std::string_view profile_schema = "isthmus-profile-1";

// `file` is for messages. Errors: profile_damaged, profile_of_another_schema.
Result<std::vector<DeviceProfile>> read_profiles(std::string_view text, const std::string& file);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
