// From a library's name to opened devices: load, initialise, read facts; every way to fail is an explained Error.
#include "cuda_driver.hpp"

#include "context.hpp"
#include "cuda_device.hpp"

#include <sys/resource.h>
#include <unistd.h>

namespace isthmus::platform::cuda {
namespace {

std::uint64_t limit_of(decltype(RLIMIT_AS) resource) noexcept {
    struct rlimit limit {};
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur;
}

InitFacts init_facts(const Library& library) {
    return {library.file.path(), library.api.driver_version, limit_of(RLIMIT_NOFILE), limit_of(RLIMIT_AS),
            limit_of(RLIMIT_NPROC)};
}

Result<os::SharedLibrary> open_library(const std::string& asked) {
    std::string file = asked.empty() ? os::environment("ISTHMUS_CUDA_LIBRARY") : asked;
    const bool named = !file.empty();
    if (!named) file = "libcuda.so.1";  // the bare name: the loader's search path decides, as for everyone else
    Result<os::SharedLibrary> opened = os::SharedLibrary::open(file);
    if (opened.ok()) return opened;
    return Error(Code::no_driver, "no CUDA driver: " + std::string(opened.error().message()),
                 named ? "let ISTHMUS_CUDA_LIBRARY (or RuntimeOptions::cuda_library) name a libcuda.so.1 of this "
                         "architecture, or none, to take the system's"
                       : "install NVIDIA's driver (in a container: --gpus all; a Jetson: --runtime nvidia); without "
                         "one everything runs on the CPU device")
        .from_call("dlopen", 0);
}

Result<std::shared_ptr<Library>> start(const std::string& file, MachineFacts& machine) {
    Result<os::SharedLibrary> opened = open_library(file);
    if (!opened.ok()) return std::move(opened).error();
    auto library = std::make_shared<Library>();
    library->file = *opened;
    const Result<int> version = ask_version(library->file);
    if (!version.ok()) return version.error();
    machine.driver_version = *version;  // worth knowing also where it is too old
    Result<Api> api = load_api(library->file, *version);
    if (!api.ok()) return std::move(api).error();
    library->api = *api;
    library->process = ::getpid();
    library->register_twin =
        reinterpret_cast<isthmus_sim_register_kernel_fn>(library->file.symbol("isthmus_sim_register_kernel"));
    library->simulated_fact = reinterpret_cast<isthmus_sim_fact_fn>(library->file.symbol("isthmus_sim_fact"));
    const CUresult code = library->api.init(0);
    if (code != result::success) return explain_init(code, init_facts(*library)).from_call("cuInit", code);
    return library;
}

}  // namespace

Result<OpenedDevices> open_devices(const std::string& library_file, MachineFacts& machine) {
    Result<std::shared_ptr<Library>> started = start(library_file, machine);
    if (!started.ok()) return std::move(started).error();
    const std::shared_ptr<Library>& library = *started;
    const Api& api = library->api;
    if (library->simulated_fact) read_simulated_machine(library->simulated_fact, machine);

    int count = 0;
    CUresult code = api.device_get_count(&count);
    if (code != result::success || count == 0) {
        if (code == result::success) code = result::no_device;
        return explain_init(code, init_facts(*library)).from_call("cuDeviceGetCount", code);
    }
    OpenedDevices opened;
    library->contexts.resize(static_cast<std::size_t>(count));
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        CUdevice device = 0;
        code = api.device_get(&device, ordinal);
        if (code == result::success) {
            std::unique_ptr<DeviceContext>& context = library->contexts[static_cast<std::size_t>(ordinal)];
            context = std::make_unique<DeviceContext>(*library, device);
            opened.drivers.push_back(make_device(library, read_facts(api, ordinal, device), *context));
        } else if (!opened.absence) {
            opened.absence = explain_init(code, init_facts(*library)).from_call("cuDeviceGet", code);
        }
    }
    if (opened.drivers.empty()) return std::move(*opened.absence);
    return opened;
}

}  // namespace isthmus::platform::cuda
