// SPDX-License-Identifier: Apache-2.0
// The meaning of the driver's result codes, for ordinary calls and for calls refused before the driver.
#include "errors.hpp"

#include "abi.hpp"
#include "cuda_errors.hpp"

namespace isthmus::platform::cuda {
namespace {

namespace result = cuda_abi::result;

struct Row {
    int result;
    Code code;
    bool sticky;
    std::string_view meaning;
    std::string_view remedy;
};

constexpr std::string_view lost_remedy =
    "start a new process: this one gets the same answer from every later call on the device. Pinned and managed "
    "memory stays readable by the CPU";
constexpr std::string_view debug_remedy =
    "run it on the CPU device or the simulator, or under compute-sanitizer, to find the faulting access; the process "
    "must be restarted, because every later call on the device answers the same";
constexpr std::string_view capture_remedy =
    "make such calls before or after the capture, or in a stream that is not part of it";
constexpr std::string_view rebuild_remedy =
    "compile the kernel's source for this GPU's compute capability, or for PTX (docs/kernels.md: ARCHITECTURES of "
    "isthmus_add_kernels, --arch of isthmus-kernel-image)";

// Ascending by number; a code without a row is Code::driver_error with the driver's own text.
constexpr Row rows[] = {
    {1, Code::invalid_argument, false, "the driver found an argument invalid", {}},
    {2, Code::out_of_memory, false, "not enough memory (or an RLIMIT_AS below what the driver reserves)",
     "free or shrink buffers, or close other users of the GPU (nvidia-smi lists them)"},
    {3, Code::driver_error, false, "the driver is not initialised in this process",
     "open the runtime in this process; after fork() only a new program (exec) can use CUDA"},
    {4, Code::device_lost, false, "the driver is shutting down with the process",
     "end GPU work before main() returns; handlers registered before the runtime was opened run too late"},
    {34, Code::driver_mismatch, false, "this is the toolkit's stub library, made for linking only",
     "take the stubs directory out of LD_LIBRARY_PATH"},
    {36, Code::driver_too_old, false, "this call needs a newer driver", "install a newer driver"},
    {46, Code::not_permitted, false, "the device is in use exclusively, or unavailable",
     "end the other process, or set the compute mode to default (nvidia-smi -c 0)"},
    {100, Code::no_device, false, "the driver shows no device", "look at CUDA_VISIBLE_DEVICES and nvidia-smi -L"},
    {101, Code::wrong_device, false, "the driver does not accept this device for the call",
     "use a device that has the capability that the call needs (isthmus caps)"},
    {200, Code::no_gpu_code, false, "the kernel image is damaged or not GPU code at all", "rebuild the kernels"},
    {201, Code::invalid_handle, false, "no context was current, or the context is gone",
     "do not reset or destroy the device's primary context while the runtime is open"},
    {209, Code::no_gpu_code, false, "the kernel image has no binary for this GPU and no PTX to make one from",
     rebuild_remedy},
    {214, Code::device_lost, true, "the GPU's memory had an error that ECC could not correct", lost_remedy},
    {215, Code::unsupported, false, "this device does not have that limit", {}},
    {217, Code::unsupported, false, "these two devices have no peer access",
     "copy between them instead; the driver then goes through host memory"},
    {218, Code::no_gpu_code, false, "the PTX in the kernel image does not compile for this GPU", rebuild_remedy},
    {220, Code::device_lost, true, "the NVLink had an error that could not be corrected", lost_remedy},
    {221, Code::no_gpu_code, false,
     "the kernel image has only PTX for this GPU, and the driver's PTX compiler library is missing",
     "install libnvidia-ptxjitcompiler.so.1 (in a container: driver capability 'compute'), or compile the kernel's "
     "source for this GPU's architecture"},
    {222, Code::no_gpu_code, false, "the kernel image's PTX is newer than this driver understands",
     "update the driver, compile the kernel's source with the toolkit that matches it, or compile it for this GPU's "
     "architecture so that no PTX is needed"},
    {223, Code::no_gpu_code, false, "compiling PTX is switched off (CUDA_DISABLE_PTX_JIT)",
     "unset CUDA_DISABLE_PTX_JIT, or compile the kernel's source for this GPU's architecture"},
    {224, Code::unsupported, false, "this device does not support the affinity asked for", {}},
    {226, Code::device_lost, true, "the GPU contained an error and stopped this process's work", lost_remedy},
    {304, Code::system_limit, false, "the operating system refused the driver a resource",
     "look at the limits of processes, threads, open files and memory of this process and its container"},
    {400, Code::invalid_handle, false, "a stream, event or function is unknown to the driver or belongs elsewhere",
     "use objects with the runtime and the device that made them"},
    {401, Code::driver_error, false, "an object is not in a state that allows the call", {}},
    {500, Code::invalid_argument, false, "the driver does not find the name that was asked for", {}},
    {600, Code::not_ready, false, "the work is still running", "wait for it, or ask again later"},
    {700, Code::device_lost, true, "a kernel touched an address that this GPU may not touch", debug_remedy},
    {701, Code::invalid_argument, false, "the kernel needs more registers or shared memory than a launch may have",
     "use smaller blocks or less shared memory"},
    {702, Code::device_lost, true, "a kernel ran longer than the display's watchdog allows",
     "split the kernel, or use a GPU without a display; the process must be restarted"},
    {704, Code::in_use, false, "peer access is already enabled", {}},
    {705, Code::not_accessible, false, "peer access is not enabled", "enable it before use"},
    {708, Code::in_use, false, "the device's primary context is already active with other flags", {}},
    {709, Code::device_lost, false,
     "other code of this process destroyed the device's primary context (a reset, or a release too many), and device, "
     "managed and pinned memory is gone with it",
     "open a new runtime, and keep cudaDeviceReset and cuDevicePrimaryCtxReset away while one is open"},
    {710, Code::device_lost, true, "a device-side assert failed", debug_remedy},
    {711, Code::system_limit, false, "no more peers can be enabled", {}},
    {712, Code::in_use, false, "this memory, or a part of it, is registered already",
     "register a range once and share the registration"},
    {713, Code::invalid_argument, false, "this memory is not registered", "unregister exactly what was registered"},
    {714, Code::device_lost, true, "a kernel overran its stack", debug_remedy},
    {715, Code::device_lost, true, "a kernel ran into an illegal instruction", debug_remedy},
    {716, Code::device_lost, true, "a kernel used a misaligned address", debug_remedy},
    {717, Code::device_lost, true, "a kernel used an address of the wrong memory space", debug_remedy},
    {718, Code::device_lost, true, "a kernel jumped to an invalid place", debug_remedy},
    {719, Code::device_lost, true, "a kernel failed (trap, or an exception on the device)", debug_remedy},
    {720, Code::invalid_argument, false, "a cooperative launch needs more blocks than can be resident",
     "launch fewer blocks"},
    {721, Code::device_lost, true, "a kernel ended without giving back its tensor memory", debug_remedy},
    {800, Code::not_permitted, false, "the operation is not permitted",
     "look at the process's permissions and devices (a fabric handle needs an IMEX channel file: `isthmus doctor "
     "--fabric` says what is missing), and do not call into the runtime from a host callback"},
    {801, Code::unsupported, false, "this device, driver or kind of memory does not support it",
     "ask the capability first (isthmus caps)"},
    {802, Code::system_error, false, "the system is not ready for CUDA yet",
     "on machines with NVSwitch start nvidia-fabricmanager and wait until it has configured the fabric"},
    {803, Code::driver_mismatch, false, "libcuda and the kernel module are of different versions",
     "reboot, or reload the kernel module, after a driver update"},
    {804, Code::driver_mismatch, false, "the forward-compatibility libcuda does not support this GPU",
     "take /usr/local/cuda/compat out of the library path, and update the driver instead"},
    {805, Code::system_error, false, "the MPS control daemon cannot be reached",
     "start nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY"},
    {806, Code::system_error, false, "the MPS server answered wrongly", "restart nvidia-cuda-mps-control"},
    {807, Code::system_error, false, "the MPS server is not ready", "try again shortly"},
    {808, Code::system_limit, false, "the MPS server has no room for another client", "end another client"},
    {809, Code::system_limit, false, "the MPS server has no connections left", "end another client"},
    {810, Code::device_lost, true, "the MPS server ended this client", lost_remedy},
    {900, Code::capture_error, false, "the call is not allowed while a capture is open; the capture is lost",
     capture_remedy},
    {901, Code::capture_error, false, "the capture was made invalid by an earlier call", capture_remedy},
    {902, Code::capture_error, false, "the call would join two captures", capture_remedy},
    {903, Code::capture_error, false, "the stream did not begin this capture", "end it on the stream that began it"},
    {904, Code::capture_error, false, "a stream that joined the capture was not joined back",
     "let the beginning stream wait for an event of each joined stream before the end"},
    {905, Code::capture_error, false, "the capture would depend on work outside of it",
     "let it wait for events only that are recorded in it, and wait for earlier work before it begins"},
    {906, Code::capture_error, false, "the legacy default stream would join the capture",
     "use non-blocking streams, and not the default stream, while capturing"},
    {907, Code::capture_error, false, "the event was recorded in a capture and has no state of its own",
     "query it after the graph was launched, through an event recorded outside"},
    {908, Code::capture_error, false, "the capture was begun by another thread", "end it on that thread"},
    {909, Code::timed_out, false, "the driver's own deadline passed", {}},
    {910, Code::invalid_argument, false, "the graph differs too much for an update in place",
     "instantiate the graph again"},
    {999, Code::driver_error, false, "the driver does not know why", "dmesg may say more (lines with NVRM or Xid)"},
};

// Codes with a special meaning for one call (observed on driver 580; of pools with a limit: CUDA 12.2, CUmemPoolProps).
struct CallRow {
    std::string_view call;
    int result;
    std::string_view meaning;
    std::string_view remedy;
};
constexpr CallRow call_rows[] = {
    {"cuGraphLaunch", 1, "the graph cannot be launched again before the memory that its last launch allocated is freed",
     "free it before the next launch, or in the graph itself"},
    {"cuGraphInstantiateWithFlags", 801, "a graph that allocates memory has one instance at a time",
     "destroy the other instance first, or allocate before the capture"},
    {"cuMemAllocFromPoolAsync", 2, "the device, or the pool by its limit (PoolOptions::max_bytes), has no memory left",
     "release memory of the pool, or make one with a larger limit"},
    {"cuMemFreeAsync", 801, "this memory is not of a pool", "release it through the buffer that owns it"},
};

const Row* row_of(int cu_result) noexcept {
    for (const Row& row : rows) {
        if (row.result == cu_result) return &row;
    }
    return nullptr;
}

}  // namespace

Code code_of(int cu_result) noexcept {
    if (cu_result == result::success) return Code::ok;
    const Row* row = row_of(cu_result);
    return row ? row->code : Code::driver_error;
}

bool is_sticky(int cu_result) noexcept {
    const Row* row = row_of(cu_result);
    return row && row->sticky;
}

bool may_pass(int cu_result) noexcept {
    switch (code_of(cu_result)) {
        case Code::out_of_memory:
        case Code::system_limit:
        case Code::system_error: return true;
        case Code::driver_error: return cu_result != result::not_initialized;
        default: return false;
    }
}

std::string_view result_name(int cu_result) noexcept {
    switch (cu_result) {
#define ISTHMUS_CUDA_RESULT(name, spelling, value) \
    case value: return #spelling;
        ISTHMUS_CUDA_RESULTS(ISTHMUS_CUDA_RESULT)
        ISTHMUS_CUDA_RESULTS_13(ISTHMUS_CUDA_RESULT)
#undef ISTHMUS_CUDA_RESULT
        default: return {};
    }
}

Explanation explain_result(int cu_result) noexcept {
    const Row* row = row_of(cu_result);
    return row ? Explanation{row->meaning, row->remedy} : Explanation{};
}

Explanation explain_result_of(int cu_result, std::string_view call) noexcept {
    for (const CallRow& row : call_rows) {
        if (row.result == cu_result && row.call == call) return {row.meaning, row.remedy};
    }
    return explain_result(cu_result);
}

Explanation explain_refusal(Code code, std::string_view call) noexcept {
    switch (code) {
        case Code::no_gpu_code:
            return {"the kernel was built without GPU code",
                    "compile its source with nvcc 12 or newer (isthmus_add_kernels without NO_GPU, "
                    "isthmus-kernel-image with "
                    "--nvcc; docs/kernels.md), or launch it on the CPU device"};
        case Code::unsupported:
            if (call == "release") {
                return {"the CUDA backend handed out no memory of this kind",
                        "release the block as its allocator handed it out"};
            }
            if (call == "allocate") {
                return {"the CUDA backend does not allocate this kind of memory",
                        "ask for device, pool, managed, pinned or write_combined memory"};
            }
            return {"the driver does not have this function", "update the driver"};
        case Code::capture_error: return {"the stream is not captured, or the capture was lost", capture_remedy};
        case Code::wrong_device: return {"the driver opened no device of this number", "name a device of this runtime"};
        case Code::invalid_argument:
            if (call.starts_with("cuMemset")) {
                return {"the elements of a fill have 1, 2 or 4 bytes", "fill with elements of such a size"};
            }
            return {"the index space needs more blocks than one launch may have (2147483647 in x, 65535 in y and z)",
                    "split the launch, or give the largest dimension to x"};
        case Code::in_use:
            return {"the simulator knows another kernel of this name in the same image",
                    "give the kernels of one file different names"};
        case Code::forked:
            return {"the runtime was opened before fork(), and CUDA does not work in the child",
                    "open the runtime in the child only, or start the child with exec"};
        default: return {};
    }
}

namespace {

// Formats e.g. CUDA_ERROR_INVALID_VALUE, "invalid argument".
Words answer_text(int cu_result, std::string_view driver_text) {
    const std::string_view named = result_name(cu_result);
    Words text;
    text.append(named.empty() ? "unknown code" : named);
    if (!driver_text.empty()) text.append(", \"").append(driver_text).append("\"");
    return text;
}

// `answer`: the driver's answer; empty if the driver was not called.
Error worded(Code code, std::string_view what, const Explanation& explanation, std::string_view answer) {
    const auto& [meaning, remedy] = explanation;
    if (meaning.empty()) {
        if (answer.empty()) return make_error_as<errors::refused_before_driver_unexplained>(code, what);
        return make_error_as<errors::driver_answered_unknown_code>(code, what, answer);
    }
    if (answer.empty()) return make_error_as<errors::refused_before_driver>(code, what, meaning, remedy);
    return make_error_as<errors::driver_answered>(code, what, meaning, answer, remedy);
}

}  // namespace

Error explain_status(const Status& status, std::string_view what_was_asked, std::string_view driver_text) {
    // In a forked child the driver answers 3; the cause to report is the fork.
    const bool asked_driver = status.driver_code != 0 && status.code != Code::forked;
    const Explanation explanation =
        asked_driver ? explain_result_of(status.driver_code, status.call) : explain_refusal(status.code, status.call);
    return worded(status.code, what_was_asked, explanation,
                  asked_driver ? answer_text(status.driver_code, driver_text) : Words())
        .from_call(status.call, status.driver_code);
}

}  // namespace isthmus::platform::cuda
