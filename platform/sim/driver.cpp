// SPDX-License-Identifier: Apache-2.0
// The single driver of the process: created by cuInit, with the hooks that open memory to GPU work.
#include "driver.hpp"

#include "access.hpp"
#include "call.hpp"
#include "checkpoint.hpp"
#include "green_contexts.hpp"
#include "graph_objects.hpp"
#include "module.hpp"
#include "semaphores.hpp"
#include "statistics.hpp"
#include "textures.hpp"
#include "user_objects.hpp"

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace isthmus::sim {
namespace {

std::atomic<Driver*> the_driver{nullptr};
std::atomic<bool> forked{false};
std::atomic<bool> exiting{false};
std::mutex init_mutex;

// A bit for each device whose memory work of this operation's device may access through pointers: the device itself and
// the peers of its contexts.
std::uint64_t reachable_devices(Driver& d, const engine::Operation& operation) {
    if (operation.kind != engine::Kind::kernel) return ~std::uint64_t{0};  // copies were checked at the call
    std::uint64_t bits = std::uint64_t{1} << operation.device;
    const std::lock_guard lock(d.mutex);
    for (const int peer : peers_of_device(d, operation.device)) bits |= std::uint64_t{1} << peer;
    return bits;
}

struct DriverHooks final : engine::Hooks {
    explicit DriverHooks(Driver& driver) : d(driver) {}
    Driver& d;
    void thread_begins() override { d.protection.thread_begins(); }
    // Operations on values open memory for each access alone: a wait may take long.
    void gpu_work_begins(const engine::Operation& operation) override {
        if (operation.kind == engine::Kind::words) return;
        if (operation.kind == engine::Kind::kernel) count_kernel();
        d.gpu_work.fetch_add(1, std::memory_order_relaxed);
        d.protection.gpu_work_begins(reachable_devices(d, operation));
    }
    void gpu_work_ends(const engine::Operation& operation) override {
        if (operation.kind == engine::Kind::words) return;
        d.protection.gpu_work_ends();
        d.gpu_work.fetch_sub(1, std::memory_order_release);  // pairs with the load in isthmus_sim_live
    }
    void host_work_begins(const engine::Operation&) override { update_managed_access(d); }
    void device_latched(int device, int code) override {
        count_sticky_code(code);
        say("device %d is lost: every call answers %d", device, code);
    }
};

engine::Options engine_options(const Machine& machine) {
    engine::Options options;
    options.devices = machine.device_count();
    const char* mode = ::secure_getenv("ISTHMUS_SIM_MODE");
    if (mode && std::strcmp(mode, "seeded") == 0) options.mode = engine::Mode::seeded;
    if (const char* seed = ::secure_getenv("ISTHMUS_SIM_SEED")) options.seed = std::strtoull(seed, nullptr, 0);
    if (const char* idle_ms = ::secure_getenv("ISTHMUS_SIM_IDLE_THREADS_MS")) {
        options.idle_thread_ns = std::strtoull(idle_ms, nullptr, 0) * 1'000'000;
    }
    for (int device = 0; device < machine.device_count(); ++device) {
        if (machine.attribute(device, attribute::concurrent_managed) == 0) options.track_observation = true;
    }
    return options;
}

// The size of a device's memory: the record's, or a smaller one set by a test.
std::uint64_t memory_bytes(const Machine& machine, int device) {
    const std::uint64_t recorded = machine.device(device).facts.total_memory_bytes;
    const char* wanted = ::secure_getenv("ISTHMUS_SIM_MEMORY_BYTES");
    const std::uint64_t bytes = wanted ? std::strtoull(wanted, nullptr, 0) : 0;
    return bytes != 0 && bytes < recorded ? bytes : recorded;
}

DeviceLimits limits_of(const Machine& machine, int device) {
    DeviceLimits limits;
    for (int axis = 0; axis < 3; ++axis) {
        limits.block[axis] = static_cast<unsigned>(machine.attribute(device, attribute::max_block_x + axis));
        limits.grid[axis] = static_cast<unsigned>(machine.attribute(device, attribute::max_grid_x + axis));
    }
    limits.threads_per_block = machine.attribute(device, attribute::max_threads_per_block);
    limits.shared_bytes = machine.attribute(device, attribute::max_shared_per_block);
    limits.phase_guarded = machine.attribute(device, attribute::concurrent_managed) == 0;
    return limits;
}

}  // namespace

Driver::Driver(const Machine& played) : machine(played), protection(played.device_count()) {
    devices = std::vector<DeviceState>(static_cast<std::size_t>(played.device_count()));
    for (int device = 0; device < played.device_count(); ++device) {
        DeviceState& state = devices[static_cast<std::size_t>(device)];
        state.primary.device = device;
        state.primary.primary = true;
        state.primary.id = next_context_id++;
        state.total_bytes = memory_bytes(played, device);
        state.limits = limits_of(played, device);
        state.legacy_settings.of_launches = first_settings(attribute_facts(*this, device));
        phase_guarded = phase_guarded || state.limits.phase_guarded;
        state.default_pool.device = device;
        state.default_pool.location = {1, device};
        state.default_pool.by_default = true;
        state.pool = &state.default_pool;
    }
    hooks_ = std::make_unique<DriverHooks>(*this);
    const engine::Options options = engine_options(played);
    seeded = options.mode == engine::Mode::seeded;
    engine_ = std::make_unique<engine::Engine>(options, hooks_.get());
    Protection::install_handler();
}

Driver* driver() noexcept {
    return the_driver.load(std::memory_order_acquire);
}  // pairs with start()

namespace {

Result start(unsigned flags) {
    if (forked) return result::not_initialized;
    if (exiting) return result::deinitialized;
    const std::lock_guard lock(init_mutex);
    const Machine& played = machine();
    if (!played.found()) {
        say("%s", played.problem().c_str());
        return result::no_device;
    }
    if (played.record().init_code != 0)
        return played.record().init_code > 0 ? played.record().init_code : result::no_device;
    if (flags != 0) return result::invalid_value;
    if (played.device_count() == 0) return result::no_device;
    if (driver()) return result::ok;
    the_driver.store(new Driver(played), std::memory_order_release);
    ::pthread_atfork(nullptr, nullptr, [] { forked = true; });
    // This matches the real driver: handlers that the program registered before cuInit run after this one.
    std::atexit([] { exiting = true; });
    return result::ok;
}

}  // namespace

namespace {

bool works_in_a_host_function(CallId id) {
    return id == CallId::cuStreamQuery || id == CallId::cuEventQuery || id == CallId::cuEventRecord;
}

}  // namespace

Result admission(CallId id) {
    if (forked.load(std::memory_order_relaxed)) return result::not_initialized;
    if (exiting.load(std::memory_order_relaxed)) return result::deinitialized;
    if (!driver()) return result::not_initialized;
    if (engine::Engine::in_host_function()) {
        return works_in_a_host_function(id) ? result::ok : result::not_permitted;
    }
    wait_while_locked(id);
    return result::ok;
}

void say(const char* format, ...) {
    char line[1024] = "isthmus simulator: ";
    const std::size_t start = std::strlen(line);
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line + start, sizeof(line) - start - 1, format, arguments);  // room for the end of the line
    va_end(arguments);
    count_message(format, line + start);
    log_line(line + start);
    static const bool quiet = ::secure_getenv("ISTHMUS_SIM_QUIET") != nullptr;
    if (quiet) return;
    // One fwrite() of the whole line: fprintf() of newer C libraries writes it in pieces, and lines of other threads
    // would stand in the middle of it.
    const std::size_t size = std::strlen(line);
    line[size] = '\n';
    std::fwrite(line, 1, size + 1, stderr);
}

namespace {

bool strict() noexcept {
    static const bool wanted = ::secure_getenv("ISTHMUS_SIM_STRICT") != nullptr;
    return wanted;
}

[[noreturn]] void abort_program(const char* what) {
    say("%s: %s: %s; a real driver leaves this undefined, and strict mode ends the program",
        ::program_invocation_short_name, current_call(), what);
    std::abort();
}

}  // namespace

void undefined(const char* what) {
    if (strict()) abort_program(what);
}

void die_like_the_driver(const char* what) {
    undefined(what);
    say("%s: the real driver ends here by a segmentation fault, and so does this one", what);
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV);
    std::abort();
}

extern "C" {

Result cuInit(unsigned flags) {
    return call_without_driver(CallId::cuInit, [&] {
        wait_while_locked(CallId::cuInit);
        return start(flags);
    });
}

Result cuDriverGetVersion(int* version) {
    return call_without_driver(CallId::cuDriverGetVersion, [&]() -> Result {
        if (!version) return result::invalid_value;
        *version = machine().found() ? machine().record().facts.driver_version : 0;
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
