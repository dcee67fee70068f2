// SPDX-License-Identifier: Apache-2.0
// Lock, checkpoint, restore and unlock of the calling process. Device memory is this process's memory already, so that
// a checkpoint moves nothing: what a program sees of one is that its calls wait, and which steps are refused.
#include "checkpoint.hpp"

#include "call.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>

namespace isthmus::sim {
namespace {

struct Checkpoints {
    std::mutex mutex;  // guards the members below
    ProcessState state = ProcessState::running;
    bool locking = false;  // a lock waits for work
    int thread = 0;        // of the restore thread; 0: none yet
    std::condition_variable changed;
    std::atomic<bool> closed{false};  // calls wait
};

Checkpoints& checkpoints() {
    static Checkpoints* const instance = new Checkpoints();  // never destroyed: calls may wait until the process ends
    return *instance;
}

template <class Arguments>
bool zeroed(const Arguments& arguments) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&arguments);
    return std::all_of(bytes, bytes + sizeof arguments, [](unsigned char byte) { return byte == 0; });
}

// 0 for this process. Observed: 304 where no such process is.
Result find_process(const char* function, int pid) {
    if (pid == static_cast<int>(::getpid())) return result::ok;
    if (pid <= 0 || (::kill(pid, 0) != 0 && errno == ESRCH)) return result::operating_system;
    say("%s: checkpoints of other processes are not modelled", function);
    return result::not_supported;
}

bool work_remains(Driver& d) {
    std::vector<engine::StreamId> streams;
    for (int device = 0; d.valid(device); ++device) streams.push_back(d.engine().legacy_stream(device));
    {
        const std::lock_guard lock(d.mutex);
        for (const Stream* stream : d.streams.all()) streams.push_back(stream->id);
        for (const Context* context : d.contexts.all()) streams.push_back(legacy_stream_of(d, *context));
    }
    return std::any_of(streams.begin(), streams.end(), [&](engine::StreamId stream) {
        return d.engine().capture_info(stream).state == engine::CaptureState::none &&
               d.engine().query(stream) == result::not_ready;
    });
}

// Waits for the work that was submitted; false: not done within the time. 0: no limit.
bool drain(Driver& d, unsigned timeout_ms) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (work_remains(d)) {
        if (timeout_ms != 0 && std::chrono::steady_clock::now() >= end) return false;
        d.engine().progress();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
}

Result move(CheckpointStep wanted) {
    Checkpoints& all = checkpoints();
    const std::lock_guard lock(all.mutex);
    const CheckpointAnswer answer = step(all.state, wanted);
    if (answer.code != result::ok) return answer.code;
    if (all.locking) return result::illegal_state;
    all.state = answer.next;
    if (all.state != ProcessState::running) return result::ok;
    all.closed.store(false, std::memory_order_release);  // pairs with wait_while_locked()
    all.changed.notify_all();
    return result::ok;
}

Result lock_process(Driver& d, unsigned timeout_ms) {
    Checkpoints& all = checkpoints();
    for (int device = 0; d.valid(device); ++device) {
        if (const Result lost = d.engine().device_code(device)) return lost;  // observed
    }
    {
        const std::lock_guard lock(all.mutex);
        if (all.locking || all.state != ProcessState::running) return result::illegal_state;
        all.locking = true;
        all.closed.store(true, std::memory_order_release);  // pairs with wait_while_locked()
    }
    const bool done = drain(d, timeout_ms);
    const std::lock_guard lock(all.mutex);
    all.locking = false;
    if (done) {
        all.state = ProcessState::locked;
        return result::ok;
    }
    all.closed.store(false, std::memory_order_release);
    all.changed.notify_all();
    return result::not_ready;
}

// Documented: pairs name every device of the checkpoint, and a new one of the same chip for each.
Result check_pairs(const Driver& d, const RestoreArguments& arguments) {
    if (arguments.pair_count == 0) return result::ok;
    if (!arguments.pairs || arguments.pair_count != d.devices.size()) return result::invalid_value;
    const auto device_of = [&](const Uuid& uuid) {
        for (int device = 0; d.valid(device); ++device) {
            if (std::memcmp(uuid.bytes, d.machine.device(device).facts.uuid.bytes.data(), sizeof uuid.bytes) == 0)
                return device;
        }
        return -1;
    };
    std::vector<bool> named(d.devices.size());
    bool moves = false;
    for (unsigned at = 0; at < arguments.pair_count; ++at) {
        const int from = device_of(arguments.pairs[at].from), to = device_of(arguments.pairs[at].to);
        if (from < 0 || to < 0 || named[static_cast<std::size_t>(from)]) return result::invalid_value;
        named[static_cast<std::size_t>(from)] = true;
        moves = moves || from != to;
    }
    if (!moves) return result::ok;
    say("cuCheckpointProcessRestore: a restore onto another device is not modelled");
    return result::not_supported;
}

// Observed of a few functions that only tell, and of cuCtxSetCurrent; assumed of all that tell.
bool answers_while_locked(CallId id) {
    const std::string_view function = name(id);
    return function.find("Get") != std::string_view::npos || function.find("Query") != std::string_view::npos ||
           id == CallId::cuCtxSetCurrent || id == CallId::cuCheckpointProcessLock ||
           id == CallId::cuCheckpointProcessCheckpoint || id == CallId::cuCheckpointProcessRestore ||
           id == CallId::cuCheckpointProcessUnlock;
}

// The driver has a thread that restores; tools must not stop it. This one has nothing to do, and exists as long.
int restore_thread() {
    Checkpoints& all = checkpoints();
    std::unique_lock lock(all.mutex);
    if (all.thread == 0) {
        try {
            std::thread([&all] {
                {
                    const std::lock_guard inner(all.mutex);
                    all.thread = static_cast<int>(::syscall(SYS_gettid));
                }
                all.changed.notify_all();
                for (;;) ::pause();
            }).detach();
        } catch (const std::exception&) {
            return 0;
        }
        all.changed.wait(lock, [&] { return all.thread != 0; });
    }
    return all.thread;
}

}  // namespace

CheckpointAnswer step(ProcessState now, CheckpointStep step) noexcept {
    constexpr struct {
        CheckpointStep step;
        ProcessState from, to;
    } rows[] = {{CheckpointStep::lock, ProcessState::running, ProcessState::locked},
                {CheckpointStep::checkpoint, ProcessState::locked, ProcessState::checkpointed},
                {CheckpointStep::restore, ProcessState::checkpointed, ProcessState::locked},
                {CheckpointStep::unlock, ProcessState::locked, ProcessState::running}};
    for (const auto& row : rows) {
        if (row.step == step && row.from == now) return {result::ok, row.to};
    }
    return {result::illegal_state, now};
}

void wait_while_locked(CallId id) {
    Checkpoints& all = checkpoints();
    if (!all.closed.load(std::memory_order_acquire) || answers_while_locked(id)) return;
    std::unique_lock lock(all.mutex);
    all.changed.wait(lock, [&] { return !all.closed.load(std::memory_order_relaxed); });
}

extern "C" {

Result cuCheckpointProcessGetState(int pid, int* state) {
    if (!state) {  // observed: before cuInit, too
        return call_without_driver(CallId::cuCheckpointProcessGetState,
                                   []() -> Result { return result::invalid_value; });
    }
    return call(CallId::cuCheckpointProcessGetState, [&](Driver&) -> Result {
        if (const Result code = find_process("cuCheckpointProcessGetState", pid)) return code;
        const std::lock_guard lock(checkpoints().mutex);
        *state = static_cast<int>(checkpoints().state);
        return result::ok;
    });
}

Result cuCheckpointProcessGetRestoreThreadId(int pid, int* thread) {
    return call(CallId::cuCheckpointProcessGetRestoreThreadId, [&](Driver&) -> Result {
        if (!thread) return result::invalid_value;
        if (const Result code = find_process("cuCheckpointProcessGetRestoreThreadId", pid)) return code;
        const int found = restore_thread();
        if (found == 0) return result::operating_system;
        *thread = found;
        return result::ok;
    });
}

Result cuCheckpointProcessLock(int pid, LockArguments* arguments) {
    return call(CallId::cuCheckpointProcessLock, [&](Driver& d) -> Result {
        LockArguments given = arguments ? *arguments : LockArguments{};
        const unsigned timeout_ms = given.timeout_ms;
        given.timeout_ms = 0;
        if (!zeroed(given)) return result::invalid_value;
        if (const Result code = find_process("cuCheckpointProcessLock", pid)) return code;
        return lock_process(d, timeout_ms);
    });
}

Result cuCheckpointProcessCheckpoint(int pid, ReservedArguments* arguments) {
    return call(CallId::cuCheckpointProcessCheckpoint, [&](Driver&) -> Result {
        if (arguments && !zeroed(*arguments)) return result::invalid_value;
        if (const Result code = find_process("cuCheckpointProcessCheckpoint", pid)) return code;
        return move(CheckpointStep::checkpoint);
    });
}

Result cuCheckpointProcessRestore(int pid, RestoreArguments* arguments) {
    return call(CallId::cuCheckpointProcessRestore, [&](Driver& d) -> Result {
        if (const Result code = find_process("cuCheckpointProcessRestore", pid)) return code;
        if (arguments) {
            RestoreArguments rest = *arguments;
            rest.pairs = nullptr;
            rest.pair_count = 0;
            if (!zeroed(rest)) return result::invalid_value;
            if (const Result code = check_pairs(d, *arguments)) return code;
        }
        return move(CheckpointStep::restore);
    });
}

Result cuCheckpointProcessUnlock(int pid, ReservedArguments* arguments) {
    return call(CallId::cuCheckpointProcessUnlock, [&](Driver&) -> Result {
        if (arguments && !zeroed(*arguments)) return result::invalid_value;
        if (const Result code = find_process("cuCheckpointProcessUnlock", pid)) return code;
        return move(CheckpointStep::unlock);
    });
}
}

}  // namespace isthmus::sim
