// SPDX-License-Identifier: Apache-2.0
// The errors of opening drivers and of reading machine records, as data.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto cuda_not_asked_for =
    error_entry("F001", Code::no_driver,
                "CUDA was not asked for",
                "open the runtime with use_cuda");
inline constexpr auto record_not_opened =
    error_entry("F002", Code::invalid_argument,
                "machine record {path} cannot be opened: {reason}",
                "name a readable file, or one of the known machines");
inline constexpr auto record_too_large =
    error_entry("F003", Code::invalid_argument,
                "machine record {path} is larger than 16 MiB",
                "name a file that `isthmus caps --record` wrote");
inline constexpr auto record_not_read =
    error_entry("F004", Code::system_error,
                "machine record {path} cannot be read",
                "name a regular, readable file");
inline constexpr auto no_such_machine =
    error_entry("F005", Code::invalid_argument,
                "no machine is known by the name \"{name}\"",
                "one of {known}, or the path of a record");
inline constexpr auto record_does_not_fit =
    error_entry("F006", Code::invalid_argument,
                "machine record: {place} {fault}",
                "compare with the records in platform/machines and docs/machines.md");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
