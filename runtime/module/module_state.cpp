// SPDX-License-Identifier: Apache-2.0
// Loads an image, counts its launches, and unloads it behind them.
#include "module_state.hpp"

#include "composed.hpp"
#include "module_cache.hpp"
#include "module_errors.hpp"
#include "module_rules.hpp"
#include "process.hpp"
#include "recording.hpp"
#include "stream_state.hpp"
#include "wait_pause.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr int compute_major = 75, compute_minor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_...

std::uint32_t capability_of(const DeviceState& device) {
    const DeviceFacts& facts = device.driver->facts();
    return static_cast<std::uint32_t>(facts.attribute(compute_major).value_or(0) * 10 +
                                      facts.attribute(compute_minor).value_or(0));
}

// The image as drivers take it: they get no size, so that PTX needs its NUL, and they read whole words.
class DriverImage {
public:
    DriverImage(std::span<const std::byte> image, const images::ImageContents& contents) : image_(image.data()) {
        constexpr std::size_t alignment = 16;
        const bool is_text = contents.format == images::ImageFormat::ptx;
        if (!is_text && reinterpret_cast<std::uintptr_t>(image.data()) % alignment == 0) return;
        copy_.assign(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(contents.size_bytes));
        if (is_text) copy_.push_back(std::byte{0});
        image_ = copy_.data();
    }
    const void* get() const noexcept { return image_; }

private:
    const void* image_;
    std::vector<std::byte> copy_;
};

}  // namespace

// Held by graphs and captures that launch the module's kernels.
struct ModuleState::Token final : HeldCode {
    explicit Token(std::shared_ptr<ModuleState> held) noexcept : module(std::move(held)) {}
    void used_until(StreamState& stream, std::uint64_t position) noexcept override { module->note(stream, position); }
    const std::shared_ptr<ModuleState> module;
};

ModuleState::ModuleState(std::shared_ptr<DeviceState> owner, std::string named, images::ImageContents read,
                         const ModuleOptions& options)
    : device(std::move(owner)),
      name(std::move(named)),
      contents(std::move(read)),
      functions_(std::make_shared<ModuleFunctions>()) {
    functions_->stand_ins = options.stand_ins;
}

ModuleState::~ModuleState() = default;

Result<std::shared_ptr<ModuleState>> ModuleState::load(const std::shared_ptr<DeviceState>& device, std::string name,
                                                       std::span<const std::byte> image, images::ImageContents contents,
                                                       const ModuleOptions& options) {
    std::shared_ptr<ModuleState> made(new ModuleState(device, std::move(name), std::move(contents), options),
                                      end_when_allowed);
    if (!device->synchronous) {
        if (made->modules() == nullptr) return make_error<errors::modules_not_offered>(made->name, named(*device));
        if (Result<void> loaded = made->load_image(image, options); !loaded) return std::move(loaded).error();
    }
    if (Result<void> found = made->find_variables(); !found) return std::move(found).error();
    return made;
}

Error ModuleState::refused(const platform::Status& status, std::string_view what, const std::string& log) const {
    Error answer = device->failure(status, composed("{} of {}", what, name));
    if (answer.code() != Code::no_gpu_code) return answer;
    std::string details = requirements_text(contents, capability_of(*device));
    if (!log.empty()) details += composed(". The driver's compiler: {}", log);
    return make_error_as<errors::module_refused_by_driver>(answer.code(), answer.message(), details, answer.remedy())
        .from_call(answer.call(), answer.driver_code());
}

Result<void> ModuleState::load_image(std::span<const std::byte> image, const ModuleOptions& options) {
    const std::string what = composed("loading {}", name);
    // Loading may wait for the device's work.
    const std::optional<CallInFlight> call = device->services.enter(rules::DriverUse::load_code);
    if (!call) return device->services.refusal(rules::DriverUse::load_code, what);
    std::string log;
    const DriverImage given(image, contents);
    if (!options.cache_folder.empty() && contents.format == images::ImageFormat::ptx) {
        const auto* const text = static_cast<const char*>(given.get());
        const ModuleCache cache(options.cache_folder, {text, contents.size_bytes},
                                device->config->machine.driver_version, capability_of(*device));
        std::optional<std::vector<std::byte>> kept = cache.read();
        if (kept && modules()->load(kept->data(), log, handle_).ok()) return {};
        std::vector<std::byte> made;
        const platform::Status compiled = modules()->compile(text, contents.size_bytes, log, made);
        if (compiled.ok()) {
            const platform::Status loaded = modules()->load(made.data(), log, handle_);
            if (!loaded.ok()) return refused(loaded, "the code", log);
            cache.write(made);  // a cache that cannot be written is no error: the next load compiles again
            return {};
        }
        if (compiled.code != Code::unsupported) return refused(compiled, "compiling the code", log);
    }
    const platform::Status loaded = modules()->load(given.get(), log, handle_);
    if (!loaded.ok()) return refused(loaded, "the code", log);
    return {};
}

void ModuleState::end_when_allowed(ModuleState* module) {
    if (!module->put_off_end()) delete module;
}

// true: the end is put off, or was left to another call of end_when_allowed(). A kernel that hangs keeps its code:
// unloading it would wait, or take the code away under it.
bool ModuleState::put_off_end() {
    if (device->config->forked() || handle_ == platform::ModuleHandle::none) return false;
    const auto again = [this] { end_when_allowed(this); };
    if (process::here.in_host_function) return device->books->after_host_functions.put_off(again), true;
    if (device->is_lost()) {  // every call would answer the fault
        process::keep_until_exit(functions_);
        return false;
    }
    if (device->books->captures.any()) return device->books->captures.when_none_is_open(again), true;
    globals_.clear();
    if (Result<void> waited = wait_for_launches({}); !waited) {
        device->config->say(Severity::warning, composed("{} stays loaded: {}", name, waited.error().message()));
        process::keep_until_exit(functions_);
        return false;
    }
    const std::optional<CallInFlight> call = device->services.enter_or_put_off(rules::DriverUse::load_code, again);
    if (!call) return true;
    if (Result<void> unloaded = unload_now(); !unloaded) {
        device->config->say(Severity::warning, unloaded.error().text());
    }
    return false;
}

Result<void> ModuleState::unload_now() {
    if (handle_ == platform::ModuleHandle::none || device->is_lost()) return {};
    const platform::Status status = modules()->unload(handle_);
    if (!status.ok() && !device->driver->context_died()) return device->failure(status, composed("unloading {}", name));
    handle_ = platform::ModuleHandle::none;
    return {};
}

bool ModuleState::begin_launch() {
    const std::lock_guard lock(mutex_);
    if (released_) return false;
    ++launching_;
    return true;
}

void ModuleState::end_launch(StreamState* stream) {
    if (stream != nullptr) note(*stream, stream->issued);
    const std::lock_guard lock(mutex_);
    --launching_;
    launched_.notify_all();
}

// Streams whose launches have ended are forgotten, so that the module does not keep them.
void ModuleState::note(StreamState& stream, std::uint64_t position) {
    if (device->synchronous || stream.reached(position)) return;
    std::vector<Use> ended;  // a stream's end may wait for locks
    const std::lock_guard lock(mutex_);
    for (Use& use : uses_) {
        if (use.stream.get() == &stream) {
            use.position = std::max(use.position, position);
            return;
        }
        if (use.stream->reached(use.position)) ended.push_back(use);
    }
    std::erase_if(uses_, [](const Use& use) { return use.stream->reached(use.position); });
    uses_.push_back({stream.weak_from_this().lock(), position});
}

std::shared_ptr<void> ModuleState::token() {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<void> known = token_.lock();
    if (known == nullptr) {
        const std::shared_ptr<HeldCode> made = std::make_shared<Token>(weak_from_this().lock());
        known = made;  // a launch takes it as HeldCode
        token_ = known;
    }
    return known;
}

Result<void> ModuleState::wait_for_launches(const Wait& wait) {
    const Deadline deadline(wait, device->config->wait_timeout);
    std::vector<Use> uses;
    {
        const std::lock_guard lock(mutex_);
        uses = uses_;
    }
    for (const Use& use : uses) {
        Result<void> waited = use.stream->wait_until(use.position, deadline.left());
        if (!waited && !device->is_lost()) return waited;
    }
    return {};
}

Result<void> ModuleState::release(Wait wait) {
    const rules::Bar bar = device->bar(rules::PublicCall::release_module);
    if (bar == rules::Bar::capture || bar == rules::Bar::capture_elsewhere) {
        return make_error<errors::module_release_in_capture>(name);
    }
    if (bar != rules::Bar::none) return device->refusal(rules::PublicCall::release_module);
    const Deadline deadline(wait, device->config->wait_timeout);
    {
        std::unique_lock lock(mutex_);
        if (released_) return make_error<errors::module_was_released>(name, "what it holds");
        released_ = true;                                                     // no further launch begins
        constexpr std::chrono::nanoseconds longest = std::chrono::hours(24);  // longer times overflow the clock's
        const std::chrono::nanoseconds at_most =
            std::min(longest, deadline.left().timeout.value_or(std::chrono::nanoseconds(0)));
        const bool idle = launched_.wait_for(lock, at_most, [this] { return launching_ == 0; });
        if (!idle) {
            released_ = false;
            return make_error<errors::module_is_launching>(name);
        }
    }
    auto done = [&]() -> Result<void> {
        if (!token_.expired()) return make_error<errors::module_held_by_graph>(name);
        if (Result<void> waited = wait_for_launches(deadline.left()); !waited) return waited;
        for (auto& [variable, bytes] : globals_) {
            if (!bytes) continue;
            if (Result<void> gone = bytes.release(deadline.left()); !gone) return gone;
        }
        const std::optional<CallInFlight> call = device->services.enter(rules::DriverUse::load_code);
        if (!call) return device->services.refusal(rules::DriverUse::load_code, composed("unloading {}", name));
        return unload_now();
    }();
    if (!done) {
        const std::lock_guard lock(mutex_);
        released_ = false;
    }
    return done;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
