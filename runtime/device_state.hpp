// DeviceState: one opened device, shared by everything that was made on it.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/export_finding.hpp>
#include <isthmus/litmus.hpp>
#include <isthmus/log.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <platform/driver.hpp>

#include "atomic_rules.hpp"
#include "books.hpp"
#include "device_slabs.hpp"
#include "copy_bounce.hpp"
#include "event_pool.hpp"
#include "host_calls.hpp"
#include "launch_path.hpp"
#include "memory_budget.hpp"
#include "memory_pool_state.hpp"
#include "process.hpp"
#include "running_services.hpp"
#include "unreturned_pieces.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace isthmus::inline v0::detail {

class Deadline;
struct StreamState;

// What every part of one runtime shares. Immutable after open().
struct RuntimeConfig {
    MachineFacts machine;
    LaunchMode launch_mode = LaunchMode::relaxed;
    std::chrono::nanoseconds wait_timeout{};
    WaitPolicy wait_policy = WaitPolicy::adaptive;
    LogCallback log;
    rules::BudgetOptions budget;
    std::vector<LitmusFinding> litmus_findings;
    std::vector<ExportFinding> export_findings;
    std::uint64_t generation = 0;  // process::generation() at open

    void say(Severity severity, std::string_view line) const {
        if (log) log(severity, line);
    }
    bool forked() const noexcept { return process::generation() != generation; }
};

struct DeviceState : std::enable_shared_from_this<DeviceState> {
    DeviceState(std::shared_ptr<const RuntimeConfig> shared, std::shared_ptr<Books> memory_books,
                std::unique_ptr<platform::Driver> opened, std::size_t position);
    ~DeviceState();

    const std::shared_ptr<const RuntimeConfig> config;
    const std::shared_ptr<Books> books;
    const std::shared_ptr<platform::Driver> driver;
    platform::Execution& execution;  // of the driver
    const std::size_t index;
    const Capabilities capabilities;
    const std::uint32_t reachable;  // rules::reachable_kinds
    const std::array<rules::PathAnswer, memory_kind_count> paths;
    const rules::GrantedAtomics atomics;
    const bool synchronous;

    bool reaches(MemoryKind kind) const noexcept { return (reachable >> static_cast<unsigned>(kind)) & 1u; }
    bool is_lost() const noexcept { return lost_code_.load(std::memory_order_acquire) != 0; }
    // Forked child, lost device or host function: answered without a driver call (R2, R3, S20).
    bool usable() const noexcept { return !is_lost() && !config->forked() && !in_host_function; }
    // … not even what needs no driver: unusable() says why.
    bool barred() const noexcept { return config->forked() || in_host_function; }
    Error unusable(std::string_view what) const;
    // The typed error for a Status; latches a sticky one.
    Error failure(const platform::Status& status, std::string_view what);
    // Finds the kernel's code; loads it where no service runs on the device, else a Status that failure() explains.
    // Locks may be held.
    platform::Status resolve(const KernelInfo& kernel, platform::FunctionHandle& out);

    // Is what the context owned gone, with it or with a fault? One cheap driver call while the device is well (K11).
    bool context_gone() { return is_lost() || driver->context_died(); }

    std::weak_ptr<StreamState> first_stream;  // the Device's; set while that is made
    DevicePools pools;
    DeviceSlabs slabs;
    struct Copies {
        CopyBounce bounce;
        std::mutex mutex;
        std::weak_ptr<StreamState> carrier;  // carrier_stream()'s
    };
    Copies copies;
    RunningServices services;
    UnreturnedPieces unreturned;
    std::mutex wrapping;  // external streams, one after the other; taken before a stream's mutex
    std::atomic<std::uint64_t> put_off_bytes{0};        // released while a capture was open
    std::atomic<std::uint64_t> budget_credit_bytes{0};  // may be allocated before the system is asked again
    // Asked when nothing else made room (K19): true, try again.
    using OutOfMemoryHandler = std::function<bool(std::size_t bytes)>;
    void set_out_of_memory_handler(OutOfMemoryHandler handler);
    bool make_room(std::size_t bytes);

    // Pooled events. take_event() gives one reference; drop_event() puts the event back with the last.
    EventPool events;
    platform::Status take_event(FenceEvent*& out, platform::EventKind kind = platform::EventKind::plain) {
        return events.take(execution, kind, out);
    }
    void drop_event(FenceEvent* event) noexcept { events.drop(execution, event); }
    // Takes over the reference to an event behind a destroyed stream's last work: the device does not close before
    // it, because closing a driver waits for its kernels, and a hung one would never let go.
    void outlive(FenceEvent* last_work);
    // … of a stream that ended before its work, and behind which no event could be recorded.
    void leave_unfenced() noexcept { unfenced_.store(true, std::memory_order_relaxed); }
    // Waits for the last work of destroyed streams.
    Result<void> wait_for_ended_streams(Wait wait);

    // Closures: ends those that ran, or, on a lost device, all; and what host functions left to be ended. Expects no
    // lock: users' code may run.
    void end_host_functions(HostCalls& calls);
    // At the end of the runtime: waits for them, because they may hold the streams and buffers that hold them, and
    // nobody may wait after this.
    void settle_host_functions();
    // Takes over the closures of a stream that ends before them.
    void end_later(HostCalls& calls);
    // Waits for what other code gave to the device's context, where that can be asked and no capture is open.
    Result<void> wait_for_others(const Deadline& deadline);

    // Where staged content is brought to the host's side: a stream of its own, so that a view waits behind nobody's
    // later work. Lives as long as a buffer that used it.
    std::shared_ptr<StreamState> download_stream();
    void add_stream(const std::shared_ptr<StreamState>& stream);
    std::vector<std::shared_ptr<StreamState>> live_streams();

private:
    bool all_work_ended();
    bool external_capture_open();
    void free_leftovers();

    std::atomic<int> lost_code_{0};
    std::mutex handler_mutex_;
    std::shared_ptr<const OutOfMemoryHandler> out_of_memory_handler_;
    std::mutex last_works_mutex_;
    std::vector<FenceEvent*> last_works_;
    std::atomic<bool> unfenced_{false};
    HostCalls orphaned_calls_;
    std::mutex streams_mutex_;
    std::vector<std::weak_ptr<StreamState>> streams_;
    std::weak_ptr<StreamState> download_stream_;
};

// "NVIDIA H200 (device 1)", for messages: machines often have several devices of one name.
std::string named(const DeviceState& device);

}  // namespace isthmus::inline v0::detail
