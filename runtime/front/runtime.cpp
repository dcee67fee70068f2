// SPDX-License-Identifier: Apache-2.0
// Runtime: opens the drivers and holds the devices.
#include <isthmus/runtime.hpp>

#include <platform/driver_list.hpp>
#include <platform/os.hpp>

#include "cache_rules.hpp"
#include "composed.hpp"
#include "counter_list.hpp"
#include "current_scopes.hpp"
#include "device_errors.hpp"
#include "device_state.hpp"
#include "export_finding_rules.hpp"
#include "front_errors.hpp"
#include "launch_mode_rules.hpp"
#include "litmus_rules.hpp"
#include "process.hpp"
#include "profile_file.hpp"
#include "profile_rules.hpp"
#include "seal_state.hpp"
#include "wait_pause.hpp"

#include <string>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct RuntimeState {
    std::shared_ptr<const RuntimeConfig> config;
    std::shared_ptr<Books> books;
    std::optional<Error> cuda_absence;
    std::vector<std::unique_ptr<Device>> devices;  // the CPU is the last

    RuntimeState() = default;
    RuntimeState(const RuntimeState&) = delete;
    RuntimeState& operator=(const RuntimeState&) = delete;
    ~RuntimeState() {
        if (config->forked()) return;
        for (const std::unique_ptr<Device>& device : devices) {
            device->state()->dropped.close();
            device->state()->settle_host_functions();
            end_all_dropped_buffers(*device->state(), Wait{});
            close_lanes(*device->state());
        }
    }
};

}  // namespace detail

namespace {

// More than any machine has CPUs for; a size or a negative number by mistake is beyond it.
constexpr std::uint32_t most_cpu_threads = 1024;

// Logs, once for each finding that applies to no device, the reason.
template <class Finding>
void say_unused(const detail::RuntimeState& state, std::string_view what, const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
        std::string_view reason = "that device is not there";
        bool used = false;
        for (const std::unique_ptr<Device>& device : state.devices) {
            const AccessAnswer applies =
                rules::finding_applies(finding, state.config->machine, device->state()->driver->facts());
            used = used || applies;
            if (!applies && finding.device == device->state()->driver->facts().uuid) reason = applies.reason;
        }
        if (used) continue;
        state.config->say(Severity::warning, composed("{}{} is not used: {}", what, finding.device.text(), reason));
    }
}

// Logs which profile each device uses, and the reason for each that applies to no device.
void say_profiles(const detail::RuntimeState& state, std::string_view file) {
    const detail::RuntimeConfig& config = *state.config;
    for (const DeviceProfile& profile : config.profiles) {
        std::string_view reason = "that device is not there";
        const detail::DeviceSession* user = nullptr;
        for (const std::unique_ptr<Device>& device : state.devices) {
            const detail::DeviceSession& session = *device->state();
            const DeviceFacts& facts = session.driver->facts();
            const AccessAnswer applies = rules::profile_applies(profile, config.machine, facts, session.capabilities);
            if (applies) user = &session;
            if (!applies && profile.device == facts.uuid) reason = applies.reason;
        }
        if (user != nullptr) {
            config.say(Severity::info,
                       composed("{} uses its profile of {} ({})", detail::named(*user), profile.measured_on, file));
        } else {
            config.say(Severity::warning, composed("the profile of {} for {} ({}) is not used: {}", profile.measured_on,
                                                   profile.device.text(), file, reason));
        }
    }
}

}  // namespace

Runtime::Runtime(std::shared_ptr<detail::RuntimeState> state) : state_(std::move(state)) {}
Runtime::Runtime(Runtime&&) noexcept = default;
Runtime& Runtime::operator=(Runtime&&) noexcept = default;
Runtime::~Runtime() = default;

Result<Runtime> Runtime::open(const RuntimeOptions& options) {
    const std::string asked = options.launch_mode ? std::string() : platform::os::environment("ISTHMUS_LAUNCH_MODE");
    const std::optional<LaunchMode> mode = rules::mode_of_runtime(options.launch_mode, asked);
    if (!mode) return make_error<errors::unknown_launch_mode>(asked);
    if (options.cpu_threads > most_cpu_threads) {
        return make_error<errors::too_many_cpu_threads>(options.cpu_threads, most_cpu_threads);
    }
    if (options.observer != nullptr && !detail::Observer::readable(*options.observer)) {
        return make_error<errors::observer_too_small>(options.observer->size, sizeof(ObserverCallbacks));
    }
    Result<detail::FoundProfiles> profiles = detail::find_profiles(detail::profile_places(options.profile));
    if (!profiles) return std::move(profiles).error();
    const std::string cache = options.cache_bytes ? std::string() : platform::os::environment("ISTHMUS_CACHE_BYTES");
    const bool limit_stated = rules::cache_limit(options.cache_bytes, cache, 0).has_value();
    if (!limit_stated) return make_error<errors::unknown_cache_limit>(cache);
    const std::string segments = platform::os::environment("ISTHMUS_DEVICE_SEGMENTS");
    const std::optional<bool> segments_asked = rules::segments_asked(segments);
    if (!segments_asked) return make_error<errors::unknown_device_segments>(segments);
    platform::DriverSet opened = platform::open_drivers({options.use_cuda, options.cuda_library, options.cpu_threads});
    auto config = std::make_shared<detail::RuntimeConfig>();
    config->machine = std::move(opened.machine);
    config->launch_mode = *mode;
    config->wait_timeout = options.wait_timeout;
    config->wait_policy = options.wait_policy;
    config->log = options.log;
    config->observer = detail::Observer(options.observer);
    config->budget.reserve_bytes = options.host_reserve_bytes;
    config->budget.reserve_permille = options.host_reserve_permille;
    config->budget.allow_oversubscription = options.oversubscribe_managed;
    // The CPU device, which is the last, has the host's memory.
    const std::uint64_t host_bytes = opened.drivers.back()->facts().total_memory_bytes;
    config->cache_bytes = rules::cache_limit(options.cache_bytes, cache, host_bytes).value_or(0);
    config->device_segments = *segments_asked;
    config->gpus = opened.drivers.size() - 1;
    config->litmus_findings = options.litmus_findings;
    config->export_findings = options.export_findings;
    config->profiles = std::move(profiles->devices);
    config->generation = process::generation();
    auto books = std::make_shared<detail::Books>();
    if (options.order_check != OrderCheck::off) {
        books->order = std::make_unique<detail::OrderChecker>(options.order_check, config);
    }
    auto state = std::make_shared<detail::RuntimeState>();
    state->config = config;
    state->books = books;
    state->cuda_absence = std::move(opened.cuda_absence);
    if (options.use_cuda && state->cuda_absence) {
        config->say(Severity::info, composed("no CUDA: {}", state->cuda_absence->text()));
    }
    for (std::unique_ptr<platform::Driver>& driver : opened.drivers) {
        const std::size_t index = state->devices.size();
        auto device = std::make_shared<detail::DeviceState>(config, books, std::move(driver), index);
        if (!opened.found[index].ok()) (void)device->failure(opened.found[index], "opening a device");  // latches it
        state->devices.push_back(std::make_unique<Device>(std::move(device)));
    }
    say_unused(*state, "a litmus finding for ", config->litmus_findings);
    say_unused(*state, "a finding about exports for ", config->export_findings);
    say_profiles(*state, profiles->file);
    return Runtime(std::move(state));
}

namespace {

// For calls that return a reference: a Runtime that was moved from has nothing to refer to. These calls are noexcept,
// so raise() ends the program in std::terminate, which prints the error.
detail::RuntimeState& state_of(const std::shared_ptr<detail::RuntimeState>& state, const char* call) noexcept {
    if (!state) detail::raise(make_error<errors::runtime_moved_from>(call));
    return *state;
}

}  // namespace

Device& Runtime::default_device() noexcept {
    for (const std::unique_ptr<Device>& device : state_of(state_, "Runtime::default_device").devices) {
        if (device->healthy()) return *device;
    }
    return cpu();
}

Device& Runtime::current_device() noexcept {
    const detail::RuntimeState& state = state_of(state_, "Runtime::current_device");
    for (const detail::DeviceState* const scoped : detail::scoped_devices()) {
        for (const std::unique_ptr<Device>& device : state.devices) {
            if (device->state().get() == scoped) return *device;
        }
    }
    return default_device();
}

Device& Runtime::cpu() noexcept {
    return *state_of(state_, "Runtime::cpu").devices.back();
}
std::size_t Runtime::device_count() const noexcept {
    return state_ ? state_->devices.size() : 0;
}

Result<Device*> Runtime::device(std::size_t index) noexcept {
    if (!state_) return make_error<errors::runtime_moved_from>("Runtime::device");
    if (index < state_->devices.size()) return state_->devices[index].get();
    return make_error<errors::no_device_of_this_index>(index, state_->devices.size());
}

Result<Device*> Runtime::device(const Uuid& uuid) {
    if (!state_) return make_error<errors::runtime_moved_from>("Runtime::device");
    if (uuid) {  // the CPU device has no UUID
        for (const std::unique_ptr<Device>& device : state_->devices) {
            if (device->state()->driver->facts().uuid == uuid) return device.get();
        }
    }
    return make_error<errors::no_device_of_this_uuid>(uuid.text());
}

Result<void> Runtime::synchronize(Wait wait) {
    if (!state_) return make_error<errors::runtime_moved_from>("Runtime::synchronize");
    const detail::Deadline deadline(wait, state_->config->wait_timeout);
    Result<void> all;
    for (const std::unique_ptr<Device>& device : state_->devices) {
        Result<void> one = device->synchronize(deadline.left());
        if (all && !one) all = std::move(one);
    }
    return all;
}

const MachineFacts& Runtime::machine() const noexcept {
    return state_of(state_, "Runtime::machine").config->machine;
}
const std::optional<Error>& Runtime::cuda_absence() const noexcept {
    return state_of(state_, "Runtime::cuda_absence").cuda_absence;
}

Result<Seal> Runtime::seal(const SealOptions& options) {
    if (!state_) return make_error<errors::runtime_moved_from>("Runtime::seal");
    if (state_->config->forked()) return make_error<errors::runtime_of_the_parent>("sealing a runtime");
    std::vector<std::shared_ptr<detail::DeviceState>> devices;
    for (const std::unique_ptr<Device>& device : state_->devices) devices.push_back(device->state());
    return detail::begin_seal(options, state_->books, std::move(devices));
}

std::vector<Counter> Runtime::counters() const {
    if (!state_ || state_->config->forked()) return {};  // threads of the parent may have held the locks
    std::vector<std::shared_ptr<detail::DeviceState>> devices;
    for (const std::unique_ptr<Device>& device : state_->devices) devices.push_back(device->state());
    return detail::list_counters(*state_->books, devices);
}
std::string Runtime::counters_text() const {
    return prometheus_text(counters());
}

RuntimeStatistics Runtime::statistics() const noexcept {
    if (!state_) return {};
    const detail::LaunchBooks& books = state_->books->launches;
    const auto read = [](const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
    return {read(books.unverified_arguments), read(books.warnings_given),
            read(books.staged_launches),      read(books.prefetches),
            read(books.failed_hints),         state_->books->order ? state_->books->order->violations() : 0};
}

}  // namespace v0
}  // namespace isthmus
