// SPDX-License-Identifier: Apache-2.0
// The driver's codes as typed errors with explanations: pure functions.
#include "errors.hpp"

#include "abi.hpp"
#include "says.hpp"

#include <gtest/gtest.h>

#include <set>

namespace isthmus::platform::cuda {
namespace {

namespace result = cuda_abi::result;

constexpr int all_results[] = {
#define VALUE(name, spelling, value) value,
    ISTHMUS_CUDA_RESULTS(VALUE) ISTHMUS_CUDA_RESULTS_13(VALUE)
#undef VALUE
};

// keeps R1
TEST(CudaErrors, OnlySuccessIsOk) {
    for (const int code : all_results) EXPECT_EQ(code_of(code) == Code::ok, code == 0) << code;
    EXPECT_EQ(code_of(12345), Code::driver_error);
}

// keeps R1
TEST(CudaErrors, CodesThatCallersBranchOnAreTyped) {
    const std::pair<int, Code> expected[] = {
        {result::invalid_value, Code::invalid_argument},
        {result::out_of_memory, Code::out_of_memory},
        {result::not_ready, Code::not_ready},
        {result::invalid_handle, Code::invalid_handle},
        {result::no_binary_for_gpu, Code::no_gpu_code},
        {result::unsupported_ptx_version, Code::no_gpu_code},
        {result::not_permitted, Code::not_permitted},
        {result::not_supported, Code::unsupported},
        {result::operating_system, Code::system_limit},
        {result::stream_capture_unsupported, Code::capture_error},
        {result::captured_event, Code::capture_error},
        {result::host_memory_already_registered, Code::in_use},
        {result::illegal_address, Code::device_lost},
    };
    for (const auto& [number, code] : expected) EXPECT_EQ(code_of(number), code) << number;
}

// keeps R2
TEST(CudaErrors, StickyCodesAreExactlyThoseAfterWhichTheDeviceIsLost) {
    const std::set<int> sticky = {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810};
    for (const int code : all_results) {
        EXPECT_EQ(is_sticky(code), sticky.count(code) == 1) << code;
        if (is_sticky(code)) {
            EXPECT_EQ(code_of(code), Code::device_lost) << code;
        }
    }
    EXPECT_FALSE(is_sticky(0));
}

// keeps L8: the refusal names what happened, the driver's code and its words
TEST(CudaErrors, AFaultingKernelIsExplainedWithTheDriversCodeAndText) {
    const Error error =
        explain_status({Code::device_lost, 700, "cuStreamSynchronize"}, "waiting for the stream", "an illegal access");
    EXPECT_EQ(error.code(), Code::device_lost);
    EXPECT_EQ(error.driver_code(), 700);
    EXPECT_EQ(error.call(), "cuStreamSynchronize");
    EXPECT_TRUE(says(error.message(), "waiting for the stream"));
    EXPECT_TRUE(says(error.message(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    EXPECT_TRUE(says(error.message(), "an illegal access"));
    EXPECT_TRUE(says(error.remedy(), "compute-sanitizer"));
}

// keeps R1
TEST(CudaErrors, MissingGpuCodeIsToldApartFromCodeForAnotherGpuAndFromNewerPtx) {
    const Error none = explain_status({Code::no_gpu_code, 0, "cuModuleLoadData"}, "launching scale", "");
    EXPECT_TRUE(says(none.message(), "built without GPU code"));
    EXPECT_TRUE(says(none.remedy(), "nvcc"));
    EXPECT_EQ(none.driver_code(), 0);
    const Error other = explain_status({Code::no_gpu_code, 209, "cuModuleLoadData"}, "launching scale", "");
    EXPECT_TRUE(says(other.message(), "no binary for this GPU"));
    EXPECT_TRUE(says(other.remedy(), "compute capability"));
    const Error newer = explain_status({Code::no_gpu_code, 222, "cuModuleLoadData"}, "launching scale", "");
    EXPECT_TRUE(says(newer.message(), "newer than this driver"));
    EXPECT_TRUE(says(newer.remedy(), "update the driver"));
}

TEST(CudaErrors, APoolThatIsFullSpeaksOfItsLimit) {
    const Error full = explain_status({Code::out_of_memory, 2, "cuMemAllocFromPoolAsync"}, "allocating", "");
    EXPECT_TRUE(says(full.message(), "PoolOptions::max_bytes"));
    const Error other = explain_status({Code::out_of_memory, 2, "cuMemAlloc_v2"}, "allocating", "");
    EXPECT_FALSE(says(other.message(), "PoolOptions"));
}

// Other code may return a number that is no CUresult, such as a cudaError_t below 100.
TEST(CudaErrors, AnUnknownNumberSaysWhereToLookItUp) {
    const Error unknown = explain_status({Code::driver_error, 35, "scale"}, "work 'scale' of other code", "");
    EXPECT_TRUE(says(unknown.message(), "unknown code"));
    EXPECT_TRUE(says(unknown.remedy(), "cudaError_t"));
}

// Build options of this project mean nothing to a program that uses an installed library.
TEST(CudaErrors, NoRemedyNamesAnOptionOfThisBuild) {
    int remedies = 0;
    for (int code = 0; code < 1000; ++code) {
        const Error error = explain_status({Code::no_gpu_code, code, "cuModuleLoadData"}, "launching scale", "");
        EXPECT_FALSE(says(error.remedy(), "-D")) << code << ": " << error.remedy();
        remedies += error.remedy().empty() ? 0 : 1;
    }
    EXPECT_GT(remedies, 20);
}

// keeps R1
TEST(CudaErrors, AReleaseThatIsRefusedSpeaksOfReleasing) {
    const Error release = explain_status({Code::unsupported, 0, "release"}, "releasing memory", "");
    EXPECT_FALSE(says(release.message(), "allocate")) << release.text();
    EXPECT_TRUE(says(release.remedy(), "release"));
    const Error allocate = explain_status({Code::unsupported, 0, "allocate"}, "allocating", "");
    EXPECT_TRUE(says(allocate.message(), "allocate"));
}

TEST(CudaErrors, AnAnswerThatNothingExplainsSaysWhatWasAsked) {
    const Error error = explain_status({Code::timed_out, 0, "wait"}, "waiting for the stream", "");
    EXPECT_EQ(error.code(), Code::timed_out);
    EXPECT_EQ(error.message(), "waiting for the stream");
    EXPECT_EQ(error.remedy(), "");
}

TEST(CudaErrors, OnlyFailuresThatMayPassAreTriedAgain) {  // keeps R6
    for (const int code : {2, 304, 802, 999}) EXPECT_TRUE(isthmus::platform::cuda::may_pass(code)) << code;
    for (const int code : {0, 1, 3, 4, 201, 400, 700, 709, 713, 801, 900}) {
        EXPECT_FALSE(isthmus::platform::cuda::may_pass(code)) << code;
    }
}

// keeps R3
TEST(CudaErrors, AForkedChildIsToldAboutTheForkAndNotAboutInitialisation) {
    const Error error = explain_status({Code::forked, 3, "cuMemAlloc_v2"}, "allocating 64 bytes", "not initialized");
    EXPECT_EQ(error.code(), Code::forked);
    EXPECT_TRUE(says(error.message(), "fork()"));
    EXPECT_FALSE(says(error.message(), "not initialized"));
    EXPECT_TRUE(says(error.remedy(), "exec"));
}

TEST(CudaErrors, ACodeOfTheFutureKeepsItsNumberAndTheDriversWords) {
    const Error error = explain_status({Code::driver_error, 4242, "cuMemAlloc_v2"}, "allocating", "something new");
    EXPECT_EQ(error.driver_code(), 4242);
    EXPECT_TRUE(says(error.message(), "something new"));
}

// keeps D9: each way in which cuInit fails is its own error with its own remedy
TEST(CudaInitErrors, EachCodeHasItsOwnKindAndRemedy) {
    struct Case {
        int code;
        Code kind;
        std::string_view message;
        std::string_view remedy;
    };
    const Case cases[] = {
        {100, Code::no_device, "no device", "CUDA_VISIBLE_DEVICES"},
        {3, Code::forked, "forked", "exec"},
        {34, Code::driver_mismatch, "stub", "LD_LIBRARY_PATH"},
        {803, Code::driver_mismatch, "different driver versions", "reboot"},
        {804, Code::driver_mismatch, "forward-compatibility", "compat"},
        {999, Code::driver_error, "does not know why", "nvidia_uvm"},
        {2, Code::out_of_memory, "no memory", "container"},
        {304, Code::system_limit, "operating system", "ulimit -u"},
        {36, Code::driver_too_old, "newer kernel driver", "update"},
        {46, Code::not_permitted, "exclusively", "compute mode"},
        {101, Code::no_device, "no valid device", "CUDA_VISIBLE_DEVICES"},
        {802, Code::system_error, "not ready", "fabricmanager"},
        {805, Code::system_error, "MPS", "nvidia-cuda-mps-control"},
    };
    for (const Case& one : cases) {
        const Error error = explain_init(one.code, {.library_path = "/usr/lib/libcuda.so.1"});
        EXPECT_EQ(error.code(), one.kind) << one.code;
        EXPECT_TRUE(says(error.message(), one.message)) << one.code << ": " << error.message();
        EXPECT_TRUE(says(error.remedy(), one.remedy)) << one.code << ": " << error.remedy();
        EXPECT_TRUE(says(error.remedy(), "CPU device")) << one.code;
    }
}

// keeps D9: two causes that the driver reports alike are told apart by the process's limits
TEST(CudaInitErrors, ATinyLimitOfOpenFilesIsToldApartFromAMachineWithoutDevice) {
    const Error limited = explain_init(100, {.open_files_limit = 12});
    EXPECT_EQ(limited.code(), Code::system_limit);
    EXPECT_TRUE(says(limited.message(), "12"));
    EXPECT_TRUE(says(limited.remedy(), "ulimit -n"));
    EXPECT_EQ(explain_init(100, {.open_files_limit = 1024}).code(), Code::no_device);
}

TEST(CudaInitErrors, AnAddressSpaceLimitIsToldApartFromAFullMachine) {
    const Error limited = explain_init(2, {.address_space_limit = std::uint64_t{8} << 30});
    EXPECT_EQ(limited.code(), Code::system_limit);
    EXPECT_TRUE(says(limited.message(), "8192 MiB"));
    EXPECT_TRUE(says(limited.remedy(), "ulimit -v"));
    EXPECT_EQ(explain_init(2, {}).code(), Code::out_of_memory);
}

TEST(CudaInitErrors, AnUnknownCodeStillSaysWhereToLook) {
    const Error error = explain_init(4242, {});
    EXPECT_EQ(error.code(), Code::driver_error);
    EXPECT_TRUE(says(error.remedy(), "dmesg"));
}

}  // namespace
}  // namespace isthmus::platform::cuda
