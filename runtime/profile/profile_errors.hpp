// SPDX-License-Identifier: Apache-2.0
// Error entries: profiles of devices.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto profile_not_read =
    error_entry("T001", Code::invalid_argument,
                "the profile {file} cannot be read: {reason}",
                "write one with `isthmus tune --output {file}`; the profile 'none' opens a Runtime without one");
inline constexpr auto profile_damaged =
    error_entry("T002", Code::invalid_argument,
                "the profile {file} is damaged at byte {place:number}: {fault}",
                "write it again with `isthmus tune --output {file}`, or remove it");
inline constexpr auto profile_of_another_schema =
    error_entry("T003", Code::unsupported,
                "the profile {file} has the schema '{schema}', and this version of isthmus reads '{known}'",
                "write it again with this version's `isthmus tune --output {file}`, or remove it");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
