// SPDX-License-Identifier: Apache-2.0
// One runtime for as long as an element or a buffer uses it. A process plays one machine: the driver's library, once
// loaded, stays.
#include "session.hpp"

#include "plugin_paths.hpp"

#include <machines/record.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

namespace isthmus::gst {
namespace {

// The simulator beside the installed plugin, beside the one of a build, or where it was installed.
std::optional<std::string> find_simulator() {
    Dl_info own{};
    std::string folder;
    if (::dladdr(static_cast<const void*>(simulator_from_plugin), &own) != 0 && own.dli_fname != nullptr) {
        folder = own.dli_fname;
        folder.resize(folder.find_last_of('/') == std::string::npos ? 0 : folder.find_last_of('/') + 1);
    }
    for (const std::string& path :
         {folder + simulator_from_plugin, folder + simulator_from_build, std::string(installed_simulator)}) {
        if (::access(path.c_str(), R_OK) == 0) return path;
    }
    return std::nullopt;
}

void log_line(Severity severity, std::string_view line) {
    const GstDebugLevel level = severity == Severity::error     ? GST_LEVEL_ERROR
                                : severity == Severity::warning ? GST_LEVEL_WARNING
                                                                : GST_LEVEL_LOG;
    GST_CAT_LEVEL_LOG(debug_category(), level, nullptr, "%.*s", static_cast<int>(line.size()), line.data());
}

// Selects the machine for this process, before its first runtime opens.
Result<void> play(const std::string& machine, RuntimeOptions& options) {
    static std::string played;  // under the lock of open_session()
    if (machine.empty()) return {};
    if (played.empty() && std::getenv("ISTHMUS_SIM") != nullptr) {
        GST_CAT_INFO(debug_category(), "machine=%s is ignored: ISTHMUS_SIM names the machine", machine.c_str());
        return {};
    }
    if (!played.empty() && played != machine) {
        return Error(Code::in_use, "machine=" + machine + ": this process plays " + played + " already",
                     "one machine in a process: the same `machine` on every element, and another process for another");
    }
    if (auto record = platform::machines::find_record(machine); !record) {
        return Error(Code::invalid_argument, "machine=" + machine + ": " + std::string(record.error().message()),
                     "a name that `isthmus caps --all` lists, or the file of a record");
    }
    if (std::getenv("ISTHMUS_CUDA_LIBRARY") == nullptr) {
        const std::optional<std::string> simulator = find_simulator();
        if (!simulator) {
            return Error(Code::unsupported, "machine=" + machine + ": the simulator is not installed",
                         "install isthmus with its simulator (isthmus/sim/libcuda.so.1)");
        }
        options.cuda_library = *simulator;
    }
    ::setenv("ISTHMUS_SIM", machine.c_str(), 1);
    played = machine;
    return {};
}

Result<std::shared_ptr<Session>> join(const std::string& machine) {
    static std::mutex lock;
    static std::weak_ptr<Session> current;
    const std::lock_guard locked(lock);
    RuntimeOptions options;
    if (Result<void> chosen = play(machine, options); !chosen) return std::move(chosen).error();
    if (std::shared_ptr<Session> open = current.lock()) return open;
    options.log = log_line;
    Result<Runtime> runtime = Runtime::open(options);
    if (!runtime) return std::move(runtime).error();
    if (runtime->cuda_absence()) log_line(Severity::info, runtime->cuda_absence()->text());
    auto made = std::make_shared<Session>(std::move(runtime).value());
    current = made;
    return made;
}

Result<Device*> find_device(Runtime& runtime, const std::string& name) {
    if (name.empty()) return &runtime.default_device();
    if (name == "cpu") return &runtime.cpu();
    std::size_t number = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (wrong == std::errc() && end == name.data() + name.size()) {
        if (number + 1 < runtime.device_count()) return runtime.device(number);
        return Error(Code::invalid_argument,
                     "device=" + name + ": there are " + std::to_string(runtime.device_count() - 1) + " GPUs here",
                     "a number below that, or cpu");
    }
    Result<Uuid> uuid = Uuid::parse(name);
    if (!uuid) return Error(Code::invalid_argument, "device=" + name + " is no device", "cpu, a number, or a UUID");
    return runtime.device(*uuid);
}

}  // namespace

GstDebugCategory* debug_category() noexcept {
    static GstDebugCategory* const category = _gst_debug_category_new("isthmus", 0, "isthmus: memory of CPU and GPU");
    return category;
}

Result<OpenSession> open_session(const SessionChoice& choice) {
    Result<std::shared_ptr<Session>> session = join(choice.machine);
    if (!session) return std::move(session).error();
    Result<Device*> device = find_device((*session)->runtime, choice.device);
    if (!device) return std::move(device).error();
    return OpenSession{std::move(session).value(), *device};
}

void install_session_properties(GObjectClass* type, guint first) {
    g_object_class_install_property(
        type, first,
        g_param_spec_string("device", "Device",
                            "Device that works on the frames: a GPU's number or UUID, or cpu (empty: the first "
                            "healthy GPU, without one the CPU)",
                            "", set_before_start));
    g_object_class_install_property(
        type, first + 1,
        g_param_spec_string("machine", "Machine",
                            "Simulated machine to play instead of this one, for tests: a name or a record's file "
                            "(empty: this machine; the environment variable ISTHMUS_SIM wins)",
                            "", set_before_start));
}

bool set_session_property(SessionChoice& choice, guint id, guint first, const GValue* value) {
    if (id != first && id != first + 1) return false;
    const char* const text = g_value_get_string(value);
    (id == first ? choice.device : choice.machine) = text == nullptr ? "" : text;
    return true;
}

bool get_session_property(const SessionChoice& choice, guint id, guint first, GValue* value) {
    if (id != first && id != first + 1) return false;
    g_value_set_string(value, (id == first ? choice.device : choice.machine).c_str());
    return true;
}

void post_error(GstElement* element, GstResourceError code, const Error& error) {
    const std::string message(error.message()), remedy(error.remedy());
    gst_element_message_full(element, GST_MESSAGE_ERROR, GST_RESOURCE_ERROR, static_cast<gint>(code),
                             g_strdup(message.c_str()),
                             g_strdup_printf("%s%s%s", std::string(name(error.code())).c_str(),
                                             remedy.empty() ? "" : "; what works: ", remedy.c_str()),
                             __FILE__, GST_FUNCTION, __LINE__);
}

}  // namespace isthmus::gst
