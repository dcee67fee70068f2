// SPDX-License-Identifier: Apache-2.0
// Dependency counting: work becomes ready when everything before it has ended, runs without the lock, and then releases
// its successors.
#include "core.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace isthmus::sim::engine {

namespace {

constexpr std::uint64_t virtual_operation_ns = 1000;

bool runs_code(const Work& work) {
    return work.operation.body || work.operation.callback || work.operation.delay_ns != 0;
}

}  // namespace

bool& host_function_flag() noexcept {
    static thread_local bool flag = false;
    return flag;
}

StreamId& running_stream() noexcept {
    static thread_local StreamId stream = StreamId::none;
    return stream;
}

std::uint64_t*& reached_by_running_work() noexcept {
    static thread_local std::uint64_t* reached = nullptr;
    return reached;
}

std::uint64_t Core::next_random() {  // splitmix64: the same numbers with every standard library
    std::uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

std::uint64_t Core::now_ns() const {
    if (options.mode == Mode::seeded) return virtual_ns;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

WorkRef Core::make_work(const Stream& stream, Operation operation) {
    auto work = std::make_shared<Work>();
    work->operation = std::move(operation);
    if (work->operation.device < 0) work->operation.device = stream.device;
    work->stream = stream.id;
    work->priority = stream.options.priority;
    return work;
}

void Core::link(const WorkRef& before, const WorkRef& after) {
    if (!before) return;
    if (options.track_observation) merge_marks(*before, *after);
    if (before->done) return;
    before->successors.push_back(after);
    ++after->pending;
}

void Core::link_entry(const Stream& stream, const WorkRef& work) {
    link(stream.tail, work);
    if (!stream.options.blocking) return;
    const StreamId legacy = stream.options.legacy;
    if (stream.id != legacy) {
        const Stream* const first = find(legacy);  // nullptr: another thread destroys its context
        return first ? link(first->tail, work) : void();
    }
    for (const auto& [id, other] : streams) {
        if (other.options.legacy == legacy && other.options.blocking && other.id != stream.id) link(other.tail, work);
    }
    for (const Orphan& orphan : devices[stream.device].orphans) {
        if (orphan.legacy == legacy && orphan.blocking) link(orphan.tail, work);
    }
}

void Core::seal(const WorkRef& work) {
    if (--work->pending != 0) return;
    if (!runs_code(*work) || is_dropped(*work)) return complete(work);
    ready[work->priority].push_back(work);
    ++ready_count;
    ++unannounced;
}

WorkRef Core::append(Stream& stream, Operation operation, const WorkRef& also_after) {
    WorkRef work = make_work(stream, std::move(operation));
    link_entry(stream, work);
    link(also_after, work);
    if (is_gpu_work(work->operation.kind)) issue(*work, work->operation.device);
    stream.tail = work;
    seal(work);
    return work;
}

void Core::bury(Operation operation) {
    graveyard.push_back(std::make_shared<const Operation>(std::move(operation)));
}

// Ordering-only and dropped successors end here, in a loop: a long chain of them needs no stack.
void Core::complete(const WorkRef& first) {
    std::deque<WorkRef> open{first};
    while (!open.empty()) {
        const WorkRef work = std::move(open.front());
        open.pop_front();
        work->done = true;
        work->ended_ns = now_ns();
        if (runs_code(*work)) bury(std::move(work->operation));
        if (work->launched) {
            graveyard.push_back(std::make_shared<const Graph>(std::move(*work->launched)));
            work->launched.reset();
        }
        for (const WorkRef& next : std::exchange(work->successors, {})) {
            if (--next->pending != 0) continue;
            if (!runs_code(*next) || is_dropped(*next)) {
                open.push_back(next);
            } else {
                ready[next->priority].push_back(next);
                ++ready_count;
                ++unannounced;
            }
        }
    }
    if (waiters != 0) ended.notify_all();
}

bool Core::is_dropped(const Work& work) const {
    if (stopping) return true;
    return devices[work.operation.device].code != 0 && work.operation.kind != Kind::stream_callback;
}

bool Core::latch(int device, int code) {
    Device& latched = devices[device];
    if (latched.code != 0) return false;
    latched.code = code;
    latched.grace_until_ns = now_ns() + options.grace_ns;
    ended.notify_all();
    delayed.notify_all();
    return true;
}

bool Core::lose(int device, int code) {
    if (!latch(device, code)) return false;
    if (hooks) hooks->device_latched(device, code);
    return true;
}

WorkRef Core::take() {
    if (options.mode == Mode::seeded) {
        for (std::size_t i = 0; i < sleeping.size();) {
            if (sleeping[i].first > virtual_ns) {
                ++i;
                continue;
            }
            ready[sleeping[i].second->priority].push_back(std::move(sleeping[i].second));
            ++ready_count;
            sleeping.erase(sleeping.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    if (ready_count == 0) return nullptr;
    // Priority is a hint on real hardware: the seeded mode draws from all ready work.
    std::size_t skip = options.mode == Mode::seeded ? next_random() % ready_count : 0;
    auto queue = ready.begin();
    while (skip >= queue->second.size()) skip -= (queue++)->second.size();
    const auto chosen = queue->second.begin() + static_cast<std::ptrdiff_t>(skip);
    WorkRef work = std::move(*chosen);
    queue->second.erase(chosen);
    if (queue->second.empty()) ready.erase(queue);
    --ready_count;
    unannounced = std::min(unannounced, ready_count);
    return work;
}

// Other ready work is drawn as often. Where only such work is left, another thread has to bring what it waits for.
void Core::call_later(Lock& lock, const WorkRef& work) {
    constexpr std::size_t patience = 64;
    constexpr auto pause = std::chrono::microseconds(50);
    lock.acquire();
    virtual_ns += virtual_operation_ns;
    --running;
    ready[work->priority].push_back(work);
    ++ready_count;
    if (waiters != 0) ended.notify_all();
    if (++fruitless < patience) return;
    lock.release();
    std::this_thread::sleep_for(pause);
    lock.acquire();
}

// Runs one operation with the lock released. These frames hold nothing that is lost when the operation's body handles a
// fault by siglongjmp, because it lands inside the body again.
void Core::run(Lock& lock, const WorkRef& work) {
    Operation& operation = work->operation;
    const int device = operation.device;
    ++running;
    if (operation.delay_ns != 0 && options.mode == Mode::threads) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(operation.delay_ns);
        lock.release();  // not through the condition variable: other ready work gets its executors first
        lock.acquire();
        while (!is_dropped(*work) && delayed.wait_until(lock.inner(), until) != std::cv_status::timeout) {
        }
    }
    if (is_host_work(operation.kind)) observe(*work);
    const bool dropped = is_dropped(*work);
    const int latched = devices[device].code;
    const Stream* const launched_on = find(work->stream);
    const bool of_own_device = launched_on == nullptr || launched_on->device == device;
    lock.release_and_clear();
    int result = code::ok;
    if (!dropped && is_host_work(operation.kind)) {
        if (hooks) hooks->host_work_begins(operation);
        host_function_flag() = true;
        if (operation.callback) operation.callback(latched);
        if (operation.body && latched == code::ok) result = operation.body();
        host_function_flag() = false;
        if (hooks) hooks->host_work_ends(operation);
    } else if (!dropped && operation.body) {
        const bool gpu = hooks && is_gpu_work(operation.kind);
        if (gpu) hooks->gpu_work_begins(operation);
        running_stream() = of_own_device ? work->stream : StreamId::none;
        reached_by_running_work() = &work->reached;
        result = operation.body();
        reached_by_running_work() = nullptr;
        running_stream() = StreamId::none;
        if (gpu) hooks->gpu_work_ends(operation);
    }
    if (result == code::later) return call_later(lock, work);
    operation.body = nullptr;
    operation.callback = nullptr;
    operation.delay_ns = 0;
    operation.details = nullptr;
    lock.acquire();
    virtual_ns += virtual_operation_ns;
    fruitless = 0;
    work->code = result;
    const bool lost = is_sticky(result) && lose(device, result);
    if (!lost && result != code::ok) {
        Stream* stream = find(work->stream);
        if (stream && stream->failure == code::ok) stream->failure = result;
    }
    --running;
    complete(work);
}

bool Core::step(Lock& lock) {
    WorkRef work = take();
    if (work && work->operation.delay_ns != 0 && !is_dropped(*work)) {
        sleeping.emplace_back(virtual_ns + std::exchange(work->operation.delay_ns, 0), std::move(work));
        return true;
    }
    if (work) {
        run(lock, work);
        return true;
    }
    if (!sleeping.empty()) {
        const auto first = std::min_element(sleeping.begin(), sleeping.end(),
                                            [](const auto& a, const auto& b) { return a.first < b.first; });
        virtual_ns = std::max(virtual_ns, first->first);
        return true;
    }
    if (running == 0) return false;
    ++waiters;  // another thread runs the awaited work
    ended.wait(lock.inner());
    --waiters;
    return true;
}

int Core::await(Lock& lock, const WorkRef& work, int device) {
    if (host_function_flag()) return code::not_permitted;
    while (work && !work->done) {
        if (options.mode == Mode::seeded) {
            if (step(lock)) continue;
            return devices[device].code != 0 ? devices[device].code : code::unknown;
        }
        // Work that runs after a sticky error cannot be killed as on hardware: it gets the grace time, once.
        const Device& waited = devices[device];
        if (waited.code != 0 && now_ns() >= waited.grace_until_ns) break;
        ++waiters;
        if (waited.code == 0) {
            ended.wait(lock.inner());
        } else {
            ended.wait_for(lock.inner(), std::chrono::nanoseconds(waited.grace_until_ns - now_ns()));
        }
        --waiters;
    }
    if (!graveyard.empty()) {
        lock.release_and_clear();
        lock.acquire();
    }
    if (devices[device].code != 0) {
        observe_device(device, last_sequence);  // counts as observed (assumed): managed memory stays readable
        return devices[device].code;
    }
    if (work) observe(*work);
    return code::ok;
}

}  // namespace isthmus::sim::engine
