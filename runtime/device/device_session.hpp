// SPDX-License-Identifier: Apache-2.0
// DeviceSession: one opened driver, its capabilities, and whether it may still be called.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/export_finding.hpp>
#include <isthmus/litmus.hpp>
#include <isthmus/log.hpp>
#include <isthmus/profile.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <platform/driver.hpp>

#include "admission_rules.hpp"
#include "composed.hpp"
#include "event_pool.hpp"
#include "kept_blocks.hpp"
#include "memory_budget.hpp"
#include "observed.hpp"
#include "open_captures.hpp"
#include "process.hpp"
#include "running_services.hpp"
#include "sealed_step.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Shared by all parts of one runtime. Immutable after open().
struct RuntimeConfig {
    MachineFacts machine;
    LaunchMode launch_mode = LaunchMode::relaxed;
    std::chrono::nanoseconds wait_timeout{};
    WaitPolicy wait_policy = WaitPolicy::adaptive;
    LogCallback log;
    Observer observer;
    rules::BudgetOptions budget;
    std::uint64_t cache_bytes = 0;  // that each device keeps of released memory
    bool device_segments = false;   // asked for; why_no_segments() decides for each device
    std::size_t gpus = 0;
    std::vector<LitmusFinding> litmus_findings;
    std::vector<ExportFinding> export_findings;
    std::vector<DeviceProfile> profiles;
    std::uint64_t generation = 0;  // process::generation() at open

    void say(Severity severity, std::string_view line) const {
        if (log) log(severity, line);
    }
    bool forked() const noexcept { return process::generation() != generation; }
};

// What may have caused a fault, in words.
using Suspects = TextOf<768>;

// The part of a device that pools, slabs and bounce buffers need. DeviceState adds streams and buffers.
struct DeviceSession : std::enable_shared_from_this<DeviceSession> {
private:
    // Every call asks for these: they lie in one cache line.
    const std::uint64_t generation_;  // the configuration's
    std::atomic<int> lost_code_{0};

public:
    // `open` has to outlive the session.
    DeviceSession(std::shared_ptr<const RuntimeConfig> shared, const OpenCaptures& open,
                  std::unique_ptr<platform::Driver> opened, std::size_t position);

    const std::shared_ptr<const RuntimeConfig> config;
    const std::shared_ptr<platform::Driver> driver;
    platform::Execution& execution;  // of the driver
    const std::size_t index;
    const Capabilities capabilities;
    const bool synchronous;
    const OpenCaptures& captures;  // the runtime's

    const Observer& observer() const noexcept { return config->observer; }
    ObservedFacts observed() const noexcept {
        ObservedFacts facts;
        facts.device = static_cast<std::uint32_t>(index);
        return facts;
    }

    bool is_lost() const noexcept { return lost_code() != 0; }
    // False in a forked child, on a lost device and in a host function. Makes no driver call (R2, R3, S20).
    bool usable() const noexcept { return !is_lost() && !forked() && !process::here.in_host_function; }
    bool forked() const noexcept { return process::generation() != generation_; }
    // Each public call checks this once, before it takes a lock. The table of the calls and their bars is in
    // admission_rules.hpp.
    [[gnu::always_inline]] bool bars(rules::PublicCall call) const { return bar(call) != rules::Bar::none; }
    // The bar itself, for a call that reports captures or services by its own error. No lock may be held for a call
    // that depends on services.
    [[gnu::always_inline]] rules::Bar bar(rules::PublicCall call) const { return rules::bar_of(call, Now{*this}); }
    // The error for a barred call: after a fork, in a host function, inside another call, after a fault, during a
    // capture of this thread, or in a sealed scope.
    // `what` names the call more exactly than its rule does: "launching kernel 'scale'".
    [[gnu::cold]] Error refusal(rules::PublicCall call, std::string_view what = {}) const;
    // The typed error for a Status; a sticky one latches the device as lost.
    Error failure(const platform::Status& status, std::string_view what);
    // Finds the kernel's code, and loads it unless a service runs on the device. In that case returns a Status that
    // failure() explains. Locks may be held.
    platform::Status resolve(const KernelInfo& kernel, platform::FunctionHandle& out);

    // Before a step of a call that was admitted (sealed_step.hpp).
    platform::Status may_now(SealedAct act, const char* call) const noexcept {
        return sealed_step(sealed_by(), act, call);
    }
    // The same with its error. `what`: as in failure().
    Result<void> allow_now(SealedAct act, const char* call, std::string_view what) {
        if (const platform::Status fine = may_now(act, call); !fine.ok()) return failure(fine, what);
        return {};
    }
    // The sealed scope that a call of this thread runs in: the thread's own, else the runtime's; nullptr: none.
    SealBook* sealed_by() const noexcept {
        return sealed_here != nullptr ? sealed_here : sealed.load(std::memory_order_acquire);
    }
    std::atomic<SealBook*> sealed{nullptr};  // of the whole runtime; the runtime's books own it

    // true: the context's memory is gone, with the context or after a fault. One cheap driver call while the device is
    // healthy (K11).
    bool context_gone() { return is_lost() || driver->context_died(); }

    mutable RunningServices services;  // thread-safe

    // Pooled events. take_event() gives one reference; drop_event() of the last reference returns the event to the
    // pool.
    EventPool events;
    platform::Status take_event(FenceEvent*& out, platform::EventKind kind = platform::EventKind::plain) {
        return events.take(execution, kind, sealed_by(), out);
    }
    void drop_event(FenceEvent* event) noexcept { events.drop(execution, event); }
    // Of buffers: programs that allocate per step hold thousands. The alignment is that of a cache line.
    static constexpr std::size_t most_buffer_states = 4096;
    const OwnedBlocks buffer_states{new KeptBlocks(most_buffer_states, 64)};
    const OwnedBlocks buffer_books{new KeptBlocks(most_buffer_states)};  // what is out of line
    const OwnedBlocks buffer_extras{new KeptBlocks(most_buffer_states)};
    const OwnedBlocks second_sides{new KeptBlocks(most_buffer_states)};
    const OwnedBlocks buffer_parts{new KeptBlocks(most_buffer_states)};
    const OwnedBlocks native_scopes{new KeptBlocks};

    int lost_code() const noexcept { return lost_code_.load(std::memory_order_acquire); }  // 0: the device is healthy

protected:
    ~DeviceSession() = default;
    // Called once, by the thread that finds the fault; its locks are held, so that none may be waited for. What may
    // have caused the driver's code, to be appended to a sentence: "; it may have been caused by …"; or empty.
    // Without the heap: the thread may be in a sealed scope.
    virtual Suspects suspects(int /*driver_code*/) { return {}; }

private:
    // Implements rules::Circumstances; each function is called only when its answer is needed.
    struct Now {
        const DeviceSession& device;
        bool forked() const noexcept { return device.forked(); }
        bool host_function() const noexcept { return process::here.in_host_function; }  // also in work of other code
        bool native_work() const noexcept { return process::here.in_native_work; }
        bool taken_thread() const noexcept { return process::here.taken(); }
        bool lost() const noexcept { return device.is_lost(); }
        bool on_cpu() const noexcept { return device.synchronous; }
        bool captured_here() const { return device.captures.here(); }
        bool captured() const noexcept { return device.captures.any(); }
        // for calls that wait for the whole device
        bool serving() const { return device.services.hinders(rules::DriverUse::synchronize_device); }
        // A scope that refuses counts when the error is made: a call may ask twice.
        bool sealed(const rules::CallRule& rule) const noexcept {
            SealBook* const seal = device.sealed_by();
            if (seal == nullptr || seal->refuses()) return seal != nullptr;
            seal->note(rules::act_of(rule.sealed), rule.subject);
            return false;
        }
    };

    // Empty until found; then constant.
    std::string_view known_suspects() const noexcept {
        return suspects_found_.load(std::memory_order_acquire) ? suspects_.view()
                                                               : std::string_view();  // pairs with failure()
    }
    Suspects suspects_;
    std::atomic<bool> suspects_found_{false};
};

// "NVIDIA H200 (device 1)", for messages: machines often have several devices with one name.
Words named(const DeviceSession& device);

// The error of a call that would invalidate this thread's open capture (K13).
Error in_capture(std::string_view what);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
