// What the driver's result codes mean: pure functions from numbers to a Code, an explanation and a remedy.
#pragma once

#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace isthmus::platform::cuda {

// The kind of failure that a code of an ordinary call means (0 → Code::ok).
Code code_of(int cu_result) noexcept;
// After such a code every later call of the process on that device answers the same (observed: 700, 716, 719).
bool is_sticky(int cu_result) noexcept;
// May the same call succeed when it is made again at once or later? Not after a fault, nor where the answer is about
// the arguments, the machine or an open capture.
bool may_pass(int cu_result) noexcept;
inline bool may_pass(const Status& status) noexcept {
    return may_pass(status.driver_code);
}
// "CUDA_ERROR_INVALID_VALUE"; empty for a number that this version does not know.
std::string_view result_name(int cu_result) noexcept;

struct Explanation {
    std::string_view meaning;  // one clause; empty: nothing to add to the driver's own text
    std::string_view remedy;
};
// For codes of ordinary calls.
Explanation explain_result(int cu_result) noexcept;
// The same where the call is known, and the code means something of its own to it.
Explanation explain_result_of(int cu_result, std::string_view call) noexcept;
// For Status values with no driver code: calls that were refused before the driver was asked.
Explanation explain_refusal(Code code, std::string_view call) noexcept;

// What decides between two causes that cuInit reports with one code.
struct InitFacts {
    std::string library_path{};
    int driver_version = 0;
    std::uint64_t open_files_limit = UINT64_MAX;     // RLIMIT_NOFILE; UINT64_MAX: unlimited or unknown
    std::uint64_t address_space_limit = UINT64_MAX;  // RLIMIT_AS, in bytes
    std::uint64_t process_limit = UINT64_MAX;        // RLIMIT_NPROC
};
// Why cuInit (or cuDriverGetVersion, or counting the devices) failed.
Error explain_init(int cu_result, const InitFacts& facts);

// The Error for a Status: what was asked, what the driver said (in its own words, `driver_text`), what works.
Error explain_status(const Status& status, std::string_view what_was_asked, std::string_view driver_text);

}  // namespace isthmus::platform::cuda
