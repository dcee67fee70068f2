// SPDX-License-Identifier: Apache-2.0
// The meaning of the driver's result codes: pure functions from numbers to a Code, an explanation and a remedy.
#pragma once

#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace isthmus::platform::cuda {

// The Code that a result of an ordinary call means (0 → Code::ok).
Code code_of(int cu_result) noexcept;
// After such a code, every later call of the process on that device returns the same code (observed: 700, 716, 719).
bool is_sticky(int cu_result) noexcept;
// Can the same call succeed when repeated at once or later? Not after a fault, nor if the answer concerns the
// arguments, the machine or an open capture.
bool may_pass(int cu_result) noexcept;
inline bool may_pass(const Status& status) noexcept {
    return may_pass(status.driver_code);
}
// "CUDA_ERROR_INVALID_VALUE"; empty for a number unknown to this version.
std::string_view result_name(int cu_result) noexcept;

struct Explanation {
    std::string_view meaning;  // one clause; empty: nothing to add to the driver's own text
    std::string_view remedy;
};
// For codes of ordinary calls.
Explanation explain_result(int cu_result) noexcept;
// The same for a known call, for which the code may have a special meaning.
Explanation explain_result_of(int cu_result, std::string_view call) noexcept;
// For Status values without a driver code: calls refused before the driver was called.
Explanation explain_refusal(Code code, std::string_view call) noexcept;

// Distinguishes two causes that cuInit reports with one code.
struct InitFacts {
    std::string library_path{};
    int driver_version = 0;
    std::uint64_t open_files_limit = UINT64_MAX;     // RLIMIT_NOFILE; UINT64_MAX: unlimited or unknown
    std::uint64_t address_space_limit = UINT64_MAX;  // RLIMIT_AS, in bytes
    std::uint64_t process_limit = UINT64_MAX;        // RLIMIT_NPROC
};
// Why cuInit (or cuDriverGetVersion, or counting the devices) failed.
Error explain_init(int cu_result, const InitFacts& facts);

// The Error for a Status: what was asked, the driver's answer (its own text is `driver_text`), and a remedy.
Error explain_status(const Status& status, std::string_view what_was_asked, std::string_view driver_text);

}  // namespace isthmus::platform::cuda
