// Why the driver could not be started, from cuInit's code and what is known of the process.
#include "composed.hpp"
#include "errors.hpp"

#include "abi.hpp"

namespace isthmus::platform::cuda {
namespace {

namespace result = cuda_abi::result;

// Below these the driver fails to start (observed on driver 580: 12 open files, 8 GiB of address space).
constexpr std::uint64_t enough_open_files = 64;
constexpr std::uint64_t enough_address_space = std::uint64_t{64} << 30;

constexpr std::string_view cpu_device_meanwhile = "; until then everything runs on the CPU device";

Error init_error(Code code, std::string message, std::string_view remedy) {
    return Error(code, std::move(message), std::string(remedy).append(cpu_device_meanwhile));
}

Error no_device(const InitFacts& facts) {
    if (facts.open_files_limit < enough_open_files) {
        return init_error(Code::system_limit,
                          composed("the driver shows no device, and this process may open only {} files: too few for "
                                   "the driver, which then reports \"no device\"",
                                   facts.open_files_limit),
                          "raise the limit (ulimit -n 1024, LimitNOFILE= in a systemd unit)");
    }
    return init_error(Code::no_device, "the driver works but shows no device",
                      "look at CUDA_VISIBLE_DEVICES, at nvidia-smi -L, at the permissions of /dev/nvidia*, and, in a "
                      "container, at --gpus (a Jetson: --runtime nvidia)");
}

Error out_of_memory(const InitFacts& facts) {
    if (facts.address_space_limit < enough_address_space) {
        return init_error(
            Code::system_limit,
            composed("the driver could not reserve its address space: this process is limited to {} MiB (RLIMIT_AS)",
                     facts.address_space_limit >> 20),
            "remove the limit (ulimit -v unlimited): the driver reserves far more than it uses. "
            "AddressSanitizer needs ASAN_OPTIONS=protect_shadow_gap=0");
    }
    return init_error(Code::out_of_memory, "the driver found no memory to start with",
                      "free memory, raise the container's limit, and, under AddressSanitizer, set "
                      "ASAN_OPTIONS=protect_shadow_gap=0");
}

Error operating_system(const InitFacts& facts) {
    std::string message = "the operating system refused the driver a resource";
    if (facts.process_limit != UINT64_MAX) {
        message += composed("; this user may have {} processes and threads", facts.process_limit);
    }
    return init_error(Code::system_limit, std::move(message),
                      "raise the limit of processes (ulimit -u, TasksMax= in a systemd unit, --pids-limit of a "
                      "container): the driver starts threads");
}

}  // namespace

Error explain_init(int cu_result, const InitFacts& facts) {
    const std::string library = facts.library_path.empty() ? std::string("libcuda.so.1") : facts.library_path;
    switch (cu_result) {
        case result::no_device: return no_device(facts);
        case result::out_of_memory: return out_of_memory(facts);
        case result::operating_system: return operating_system(facts);
        case result::not_initialized:
            return init_error(Code::forked,
                              "the driver cannot start in this process, which was forked after CUDA was in use",
                              "fork before anything uses CUDA, or start the child with exec");
        case result::stub_library:
            return init_error(Code::driver_mismatch,
                              composed("{} is the toolkit's stub, made for linking only, not a driver", library),
                              "take the stubs directory out of LD_LIBRARY_PATH, and install the driver");
        case result::system_driver_mismatch:
            return init_error(Code::driver_mismatch,
                              composed("the kernel module and {} are of different driver versions", library),
                              "reboot, or reload the kernel module, after a driver update; in a container, use the "
                              "host's libcuda and not one of the image");
        case result::compat_not_supported_on_device:
            return init_error(
                Code::driver_mismatch,
                composed("{} is the forward-compatibility library, which does not support this GPU", library),
                "take /usr/local/cuda/compat (cuda-compat) out of the library path, and update the "
                "driver instead");
        case result::call_requires_newer_driver:
            return init_error(Code::driver_too_old,
                              composed("{} needs a newer kernel driver than the machine has", library),
                              "update the driver of the machine (under WSL2: the Windows driver)");
        case result::system_not_ready:
            return init_error(Code::system_error, "the system is not ready for CUDA",
                              "on machines with NVSwitch, start nvidia-fabricmanager and wait for it");
        case result::invalid_device:
            return init_error(Code::no_device, "the driver found no valid device",
                              "look at CUDA_VISIBLE_DEVICES and nvidia-smi -L");
        case result::unknown:
            return init_error(Code::driver_error, "the driver could not start and does not know why",
                              "load the nvidia_uvm module (nvidia-modprobe -u, after a suspend: reload it), give the "
                              "process access to /dev/nvidia-uvm, and look at dmesg for NVRM and Xid");
        default: break;
    }
    const Explanation explanation = explain_result(cu_result);
    const std::string_view named = result_name(cu_result);
    std::string message = "the driver could not start";
    if (!explanation.meaning.empty()) message.append(": ").append(explanation.meaning);
    message.append(" [").append(named.empty() ? "unknown code" : named).append("]");
    return init_error(
        code_of(cu_result), std::move(message),
        explanation.remedy.empty() ? "run nvidia-smi and look at dmesg for NVRM and Xid" : explanation.remedy);
}

}  // namespace isthmus::platform::cuda
