// SPDX-License-Identifier: Apache-2.0
// Loops that never allocate: prepare() brings what a loop will use, rehearse() finds out when its turns are steady, and
// a sealed scope refuses everything else. docs/real-time.md has an example.
#pragma once

#include <isthmus/device.hpp>
#include <isthmus/export.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sealed_act.hpp>
#include <isthmus/sharing_use.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
struct SealState;
}

enum class SealScope : std::uint8_t {
    thread,   // this thread's calls, of every runtime
    runtime,  // every thread's calls of this runtime. Threads with a scope of their own count there
};
enum class SealMode : std::uint8_t {
    refuse,  // not_permitted, before anything was done
    report,  // it happens, and is counted
};
struct SealOptions {
    SealScope scope = SealScope::thread;
    SealMode mode = SealMode::refuse;
};

// A sealed scope, made by Runtime::seal(). In it a call that would use the heap, allocate, map or register memory, load
// code, make an object of the driver, or enter the system besides the driver's own launch, record and query, is refused
// (E012, E013) before it does, and is counted. Ends of buffers are not refused: memory goes to what is kept, and is
// counted only if it goes back to the driver. Movable; not thread-safe, except that other threads' calls may run.
class ISTHMUS_API Seal {
public:
    Seal(Seal&&) noexcept;
    Seal& operator=(Seal&&) noexcept;
    // As end(). On another thread than the scope's, that thread stays sealed.
    ~Seal();

    // How often something was refused, or counted, so far.
    std::uint64_t count() const noexcept;
    // Each call that was refused or counted, and how often; the first 64 calls, then "others". Uses the heap.
    std::vector<SealedPlace> places() const;
    // Ends the scope; count() and places() stay. Errors: not_permitted (a scope of another thread).
    Result<void> end();

    explicit Seal(std::unique_ptr<detail::SealState> state) noexcept;

private:
    std::unique_ptr<detail::SealState> state_;
};

// Memory that is kept for the loop: as many pieces as it holds at one time.
struct PreparedMemory {
    std::size_t bytes = 0;
    std::size_t count = 1;
    // allocate_shared() with this use; nullopt: Device::allocate().
    std::optional<SharedUse> shared{};
};
struct Preparation {
    // Driver events: one for each event that lives at one time, and one for each piece of work between streams, or
    // between a stream and the host, that has not ended. At most 256.
    std::size_t events = 0;
    std::vector<PreparedMemory> memory{};
    std::vector<const KernelInfo*> kernels{};  // Kernel::info(), Module kernels' info: their code is loaded
};
// Makes all of that and gives it to what the device keeps. The pages of shared memory are touched by the CPU. Call it
// before the scope, on any thread. Errors: those of the allocations and of loading a kernel; system_limit (the device
// keeps less than that: RuntimeOptions::cache_bytes; more events than it keeps); invalid_argument (0 bytes).
ISTHMUS_API Result<void> prepare(Device& device, const Preparation& what);

struct RehearsalOptions {
    std::uint32_t quiet_turns = 16;  // so many turns in succession must do nothing that a sealed scope refuses
    std::uint32_t most_turns = 1000;
};
struct Rehearsal {
    std::uint32_t turns = 0;            // that were run
    std::vector<SealedPlace> places{};  // what the earlier ones did: what the loop made for itself
};
namespace detail {
ISTHMUS_API Result<Rehearsal> rehearse(Result<void> (*turn)(void*), void* data, const RehearsalOptions& options);
}
// Runs turn() until quiet_turns turns in succession did nothing that a sealed scope of this thread would refuse. Then a
// loop of the same turns can be sealed. turn() returns Result<void>, and throws nothing; its error ends the rehearsal.
// Errors: in_use (the thread is sealed), not_ready (a turn of the last ones still did something: its place is named),
// invalid_argument.
template <class Turn>
Result<Rehearsal> rehearse(Turn&& turn, const RehearsalOptions& options = {}) {
    using Called = std::remove_reference_t<Turn>;
    return detail::rehearse([](void* data) noexcept -> Result<void> { return (*static_cast<Called*>(data))(); },
                            const_cast<void*>(static_cast<const void*>(&turn)), options);
}

// A thread that calls back once when a loop has not said for `limit` that it lives; and again after the loop has said
// so and then fell silent again. Works beside loops that hang in a driver's call. The destructor ends the thread, and
// waits for a callback that runs.
class ISTHMUS_API Watchdog {
public:
    using Late = std::function<void(std::chrono::nanoseconds silent_for)>;
    // Errors: invalid_argument (limit under 1 µs, no callback), system_error (no thread can be started).
    static Result<Watchdog> start(std::chrono::nanoseconds limit, Late late);
    Watchdog(Watchdog&&) noexcept;
    Watchdog& operator=(Watchdog&&) noexcept;
    ~Watchdog();
    // The loop lives. Any thread; no lock, heap or system call besides clock_gettime, which enters no kernel.
    void feed() noexcept;

private:
    struct [[gnu::visibility("hidden")]] State;
    explicit Watchdog(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace v0
}  // namespace isthmus
