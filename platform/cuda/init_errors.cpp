// SPDX-License-Identifier: Apache-2.0
// Why the driver failed to start, from cuInit's code and facts about the process.
#include "errors.hpp"

#include "abi.hpp"
#include "cuda_errors.hpp"

namespace isthmus::platform::cuda {
namespace {

namespace result = cuda_abi::result;

// Below these the driver fails to start (observed on driver 580: 12 open files, 8 GiB of address space).
constexpr std::uint64_t enough_open_files = 64;
constexpr std::uint64_t enough_address_space = std::uint64_t{64} << 30;

Error no_device(const InitFacts& facts) {
    if (facts.open_files_limit < enough_open_files) {
        return make_error<errors::too_few_files_for_driver>(facts.open_files_limit);
    }
    return make_error<errors::driver_shows_no_device>();
}

Error out_of_memory(const InitFacts& facts) {
    if (facts.address_space_limit < enough_address_space) {
        return make_error<errors::address_space_too_small_for_driver>(facts.address_space_limit >> 20);
    }
    return make_error<errors::driver_without_memory_to_start>();
}

Error operating_system(const InitFacts& facts) {
    if (facts.process_limit == UINT64_MAX) return make_error<errors::system_refused_driver>();
    return make_error<errors::too_few_processes_for_driver>(facts.process_limit);
}

}  // namespace

Error explain_init(int cu_result, const InitFacts& facts) {
    const std::string_view library = facts.library_path.empty() ? "libcuda.so.1" : std::string_view(facts.library_path);
    switch (cu_result) {
        case result::no_device: return no_device(facts);
        case result::out_of_memory: return out_of_memory(facts);
        case result::operating_system: return operating_system(facts);
        case result::not_initialized: return make_error<errors::driver_start_in_forked_child>();
        case result::stub_library: return make_error<errors::driver_is_a_stub>(library);
        case result::system_driver_mismatch: return make_error<errors::driver_and_module_differ>(library);
        case result::compat_not_supported_on_device:
            return make_error<errors::compatibility_driver_without_gpu>(library);
        case result::call_requires_newer_driver: return make_error<errors::driver_needs_newer_module>(library);
        case result::system_not_ready: return make_error<errors::system_not_ready_for_driver>();
        case result::invalid_device: return make_error<errors::driver_found_no_valid_device>();
        case result::unknown: return make_error<errors::driver_does_not_know_why>();
        default: break;
    }
    const Explanation explanation = explain_result(cu_result);
    const std::string_view named = result_name(cu_result);
    const std::string_view answer = named.empty() ? "unknown code" : named;
    const Code code = code_of(cu_result);
    if (explanation.meaning.empty()) return make_error_as<errors::driver_not_started_by_unknown_code>(code, answer);
    return make_error_as<errors::driver_not_started>(
        code, explanation.meaning, answer,
        explanation.remedy.empty() ? "run nvidia-smi and look at dmesg for NVRM and Xid" : explanation.remedy);
}

}  // namespace isthmus::platform::cuda
