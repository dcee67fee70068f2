// SPDX-License-Identifier: Apache-2.0
// From a library name to opened devices: load, initialise, read facts. Every failure is an explained Error.
#include "cuda_driver.hpp"

#include "context.hpp"
#include "cuda_device.hpp"
#include "cuda_errors.hpp"

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
    if (!named) file = "libcuda.so.1";  // bare name: the loader's search path decides, as in other programs
    Result<os::SharedLibrary> opened = os::SharedLibrary::open(file);
    if (opened.ok()) return opened;
    const std::string_view reason = opened.error().message();
    return (named ? make_error<errors::named_driver_not_opened>(reason) : make_error<errors::driver_not_found>(reason))
        .from_call("dlopen", 0);
}

Result<std::shared_ptr<Library>> start(const std::string& file, MachineFacts& machine) {
    Result<os::SharedLibrary> opened = open_library(file);
    if (!opened.ok()) return std::move(opened).error();
    auto library = std::make_shared<Library>();
    library->file = *opened;
    const Result<int> version = ask_version(library->file);
    if (!version.ok()) return version.error();
    machine.driver_version = *version;  // reported even if it is too old
    Result<Api> api = load_api(library->file, *version);
    if (!api.ok()) return std::move(api).error();
    library->api = *api;
    library->process = ::getpid();
    library->register_twin =
        reinterpret_cast<isthmus_sim_register_kernel_fn>(library->file.symbol("isthmus_sim_register_kernel"));
    library->set_stand_in =
        reinterpret_cast<isthmus_sim_set_stand_in_fn>(library->file.symbol("isthmus_sim_set_stand_in"));
    library->lend_simulated = reinterpret_cast<isthmus_sim_lend_fn>(library->file.symbol("isthmus_sim_lend"));
    library->lend_part_simulated =
        reinterpret_cast<isthmus_sim_lend_part_fn>(library->file.symbol("isthmus_sim_lend_part"));
    library->simulated_fact = reinterpret_cast<isthmus_sim_fact_fn>(library->file.symbol("isthmus_sim_fact"));
    const CUresult code = library->api.init(0);
    if (code != result::success) return explain_init(code, init_facts(*library)).from_call("cuInit", code);
    return library;
}

// A larger count is treated as a damaged answer.
constexpr int max_devices = 4096;

// After a fault, every call that needs a context returns the fault's code until the process ends, in new contexts too
// (observed on driver 580); resetting a context does not clear it. Creating and destroying an event is the cheapest
// such call. A context is created for this only if a device of this process has faulted before. Other failures are left
// to the first use of the device.
Status find_fault(const Library& library, CUdevice device) {
    const Api& api = library.api;
    const CaptureCare care(library);
    unsigned flags = 0;
    int active = 0;
    CUresult code = api.primary_context_get_state(device, &flags, &active);
    const char* call = "cuDevicePrimaryCtxGetState";
    CUcontext context = nullptr;
    if (code == result::success) {
        if (active == 0 && !Library::fault_seen.load(std::memory_order_relaxed)) return {};
        call = "cuDevicePrimaryCtxRetain";
        code = api.primary_context_retain(&context, device);
    }
    const bool retained = context != nullptr && code == result::success;
    if (retained) {
        call = "cuCtxPushCurrent_v2";
        code = api.context_push(context);
    }
    if (retained && code == result::success) {
        CUevent event = nullptr;
        call = "cuEventCreate";
        code = api.event_create(&event, event_disable_timing);
        if (code == result::success) (void)api.event_destroy(event);
        CUcontext ours = nullptr;
        (void)api.context_pop(&ours);
    }
    if (retained) (void)api.primary_context_release(device);
    const Status status = library.status(code, call);
    return status.code == Code::device_lost && code != result::context_is_destroyed ? status : Status{};
}

}  // namespace

Result<OpenedDevices> open_devices(const std::string& library_file, MachineFacts& machine,
                                   std::span<const int> attributes) {
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
    if (count < 0 || count > max_devices) {
        return make_error<errors::absurd_device_count>(count).from_call("cuDeviceGetCount", 0);
    }
    OpenedDevices opened;
    library->contexts.resize(static_cast<std::size_t>(count));
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        CUdevice device = 0;
        code = api.device_get(&device, ordinal);
        if (code == result::success) {
            std::unique_ptr<DeviceContext>& context = library->contexts[static_cast<std::size_t>(ordinal)];
            context = std::make_unique<DeviceContext>(*library, device);
            DeviceFacts facts = read_facts(api, ordinal, device, attributes);
            if (attributes.empty()) facts.pci = read_pci(*library, facts);
            opened.drivers.push_back(make_device(library, std::move(facts), *context));
            opened.found.push_back(find_fault(*library, device));
        } else if (!opened.absence) {
            opened.absence = explain_init(code, init_facts(*library)).from_call("cuDeviceGet", code);
        }
    }
    if (opened.drivers.empty()) return std::move(*opened.absence);
    return opened;
}

}  // namespace isthmus::platform::cuda
