// SPDX-License-Identifier: Apache-2.0
// The errors of the vocabulary, as data.
#pragma once

#include "private/error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto no_uuid =
    error_entry("Z001", Code::invalid_argument,
                "'{text}' is no UUID of a device",
                "write GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx, or MIG-… for a part of one, as nvidia-smi -L does");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
