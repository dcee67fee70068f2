// SPDX-License-Identifier: Apache-2.0
// Programs that keep a runtime and its objects where they are destroyed late or never: static and thread-local objects,
// exit handlers, the heap. Each is a process of its own. Memory and handles may be destroyed before or after the
// driver's own exit handlers run.
#include "scenes.hpp"

#include "kernels.hpp"

#include <isthmus/concurrent/frame_ring.hpp>
#include <isthmus/concurrent/service.hpp>
#include <isthmus/isthmus.hpp>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

namespace endings {
namespace {

using namespace isthmus;

constexpr std::size_t count = 1 << 12;
using Numbers = Buffer<std::int32_t>;

bool work_runs_by_itself() {
    const char* const mode = std::getenv("ISTHMUS_SIM_MODE");
    return mode == nullptr || std::string_view(mode) != "seeded";
}

// One object of each type, with kernels in flight.
struct World {
    Runtime runtime = Runtime::open().value();
    Device& device = runtime.default_device();
    Stream stream = device.create_stream().value();
    Numbers on_device = device.allocate<std::int32_t>(count).value();
    Numbers shared = device.allocate_shared<std::int32_t>(count).value();
    Numbers pinned = made_pinned();
    Numbers pooled;
    std::optional<MemoryPool> pool;
    GrowableBuffer<std::int32_t> growing = GrowableBuffer<std::int32_t>::create(device, 4 * count).value();
    FrameRing<std::int32_t> frames = FrameRing<std::int32_t>::create(device, count).value();
    std::optional<Event> event;
    std::optional<GraphInstance> graph;

    World() {
        growing.resize(count).value();
        for (Numbers* each : {&on_device, &shared, &pinned}) stream.fill(*each, 1).value();
        if (device.capabilities().has(Feature::pools)) {
            pool = device.pool().value();
            pooled = stream.allocate<std::int32_t>(count).value();
            stream.fill(pooled, 1).value();
        }
        {
            Capture capture = stream.begin_capture().value();
            (void)stream.launch(increase, count, pinned).value();
            graph = capture.end().value().instantiate().value();
        }
        (void)stream.launch(*graph).value();
        (void)stream.launch(take_long, count, on_device, 200).value();
        stream.call_on_host([]() noexcept {}).value();
        (void)stream.launch(take_long, count, shared, 200).value();
        event = stream.record().value();
    }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    Numbers made_pinned() {
        SharedUse use;
        use.kind = MemoryKind::pinned;
        return device.allocate_shared<std::int32_t>(count, use).value();
    }
};

// Calls that may come at any time: each returns a result or an error, and never crashes or waits forever.
void use(World& world) {
    const Wait soon = Wait::at_most(std::chrono::seconds(5));
    (void)world.stream.launch(increase, count, world.shared).ok();
    (void)world.stream.launch(*world.graph).ok();
    (void)world.shared.read_on_host(soon).ok();
    (void)world.stream.synchronize(soon).ok();
    (void)world.device.synchronize(soon).ok();
    (void)world.event->synchronize(soon).ok();
    (void)world.stream.record().ok();
    (void)world.device.allocate<std::int32_t>(count).ok();
    (void)world.device.create_stream().ok();
    (void)world.growing.resize(2 * count).ok();
    (void)world.device.can_access(world.on_device);
    (void)world.shared.release(soon).ok();
}

void say_ready() {
    std::puts("ready");
    std::fflush(stdout);
}

// Destroyed after the others: work that still runs then has time to touch freed memory.
struct Linger {
    Linger() = default;
    Linger(const Linger&) = delete;
    Linger& operator=(const Linger&) = delete;
    ~Linger() {
        if (wanted) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    bool wanted = false;
} linger;

// Destroyed after everything that main() makes, and after the driver's own exit handlers.
std::optional<World> kept, kept_too;
World* leaked = nullptr;
std::optional<HostView<const std::int32_t>> view_behind_its_buffer;
std::optional<Capture> capture_behind_its_stream;
std::optional<FrameToFill<std::int32_t>> frame_behind_its_ring;
std::optional<Stream> stream_behind_its_runtime;
std::optional<Numbers> buffer_behind_its_runtime;
std::optional<Event> event_behind_its_runtime;

void statics() {
    kept.emplace();
    say_ready();
    std::exit(ended);
}
void statics_made_late() {
    static World world;  // the driver is open already: this is destroyed before the driver's exit handlers
    use(world);
    say_ready();
    std::exit(ended);
}
// Uses shared memory, which the host unmaps where the device uses ordinary host memory.
void a_long_kernel_runs() {
    linger.wanted = true;
    kept.emplace();
    (void)kept->stream.launch(take_long, count, kept->shared, 10000).value();
    say_ready();
    std::exit(ended);
}
void two_runtimes() {
    kept.emplace();
    kept_too.emplace();
    (void)kept->stream.launch(increase, count, kept->pinned).value();
    say_ready();
    std::exit(ended);
}
void what_outlives_its_runtime() {
    kept.emplace();
    view_behind_its_buffer = kept->pinned.read_on_host().value();
    frame_behind_its_ring = kept->frames.begin_frame().value();
    event_behind_its_runtime = *kept->event;
    buffer_behind_its_runtime = kept->device.allocate_shared<std::int32_t>(count).value();
    stream_behind_its_runtime = kept->device.create_stream().value();
    capture_behind_its_stream = stream_behind_its_runtime->begin_capture().value();
    kept->device.synchronize().value();
    say_ready();
    std::exit(ended);
}
void thread_locals() {
    thread_local std::optional<World> world;
    world.emplace();
    say_ready();
    std::exit(ended);
}
void thread_locals_of_a_thread_that_ended() {
    std::thread([] {
        thread_local std::optional<World> world;
        world.emplace();
    }).join();
    say_ready();
    std::exit(ended);
}
void thread_locals_of_a_thread_that_goes_on() {
    std::atomic<bool> open = false;
    std::thread([&open] {
        thread_local std::optional<World> world;
        world.emplace();
        open = true;
        for (;;) ::pause();
    }).detach();
    while (!open) std::this_thread::yield();
    say_ready();
    std::exit(ended);
}
void at_the_end() {
    use(*leaked);
    delete leaked;
    leaked = nullptr;
}
void handlers_registered_before() {
    std::atexit(at_the_end);
    leaked = new World;
    say_ready();
    std::exit(ended);
}
void handlers_registered_behind() {
    leaked = new World;
    std::atexit(at_the_end);
    say_ready();
    std::exit(ended);
}
// The thread-local list of scopes is destroyed before exit handlers and static objects run.
void scopes_are_open() {
    static std::optional<ScopedDevice> device;
    static std::optional<ScopedAllocator> allocator;
    static std::optional<ScopedStream> stream;
    std::atexit([] {
        (void)leaked->runtime.current_device();
        (void)leaked->device.current_stream();
        (void)leaked->device.allocate<std::int32_t>(count).ok();
        {
            const ScopedDevice again(leaked->device);
            const ScopedAllocator other(leaked->device, leaked->device.allocator(MemoryKind::host));
            (void)ScopedStream::enter(leaked->stream).ok();
        }
        use(*leaked);
    });
    leaked = new World;
    for (int nested = 0; nested < 3; ++nested) {
        device.emplace(leaked->device);
        allocator.emplace(leaked->device, leaked->device.allocator(MemoryKind::pinned));
        stream = ScopedStream::enter(leaked->stream).value();
    }
    say_ready();
    std::exit(ended);
}
void handlers_that_open_a_runtime() {
    std::atexit([] {
        const Result<Runtime> late = Runtime::open();
        if (!late) return;
        Device& device = const_cast<Runtime&>(*late).default_device();
        (void)device.allocate<std::int32_t>(count).ok();
    });
    leaked = new World;
    say_ready();
    std::exit(ended);
}
void nobody_ends_it() {
    leaked = new World;
    say_ready();
    std::exit(ended);
}
void another_thread_exits() {
    kept.emplace();
    std::thread([] {
        say_ready();
        std::exit(ended);
    }).detach();
    for (;;) ::pause();
}
void threads_work_meanwhile() {
    leaked = new World;
    static std::atomic<int> busy = 0;
    for (int thread = 0; thread < 2; ++thread) {
        std::thread([] {
            for (;;) {
                (void)leaked->device.allocate_shared<std::int32_t>(count).ok();
                (void)leaked->stream.launch(increase, count, leaked->pinned).ok();
                (void)leaked->pinned.read_on_host(Wait::at_most(std::chrono::seconds(1))).ok();
                (void)leaked->stream.record().ok();
                ++busy;
            }
        }).detach();
    }
    while (busy < 20) std::this_thread::yield();
    say_ready();
    std::exit(ended);
}
void exit_without_handlers() {
    kept.emplace();
    say_ready();
    ::_exit(ended);
}
void quick_exit_with_a_handler() {
    std::at_quick_exit(at_the_end);
    leaked = new World;
    say_ready();
    std::quick_exit(ended);
}
void a_service_runs() {
    static std::optional<World> world;
    static std::optional<Service<std::uint32_t, std::uint32_t>> early;
    world.emplace();
    world->device.synchronize().value();
    const bool serves = !world->device.is_cpu() && !world->device.capabilities().has(Feature::kernel_timeout);
    if (serves && work_runs_by_itself()) {
        early = Service<std::uint32_t, std::uint32_t>::start(world->device, echo).value();
        if (early->call(5).value() != 5) std::abort();
    }
    say_ready();
    std::exit(ended);
}
void what_is_closed_in_order() {
    {
        World world;
        use(world);
    }
    say_ready();
}
void what_a_module_keeps() {
    kept.emplace();
    kept_too.emplace();
    kept_too.reset();
    say_ready();
}
void what_a_module_keeps_for_a_thread() {
    std::thread([] {
        thread_local std::optional<World> world;
        world.emplace();
    }).join();
    thread_local std::optional<World> own;
    own.emplace();
    own->device.synchronize().value();
    say_ready();
}
void a_handler_of_a_module() {
    leaked = new World;
    std::atexit(at_the_end);  // runs when the module is unloaded, or at exit
    say_ready();
}

}  // namespace

const Scene scenes[] = {
    {"statics", statics},
    {"statics_made_late", statics_made_late},
    {"a_long_kernel_runs", a_long_kernel_runs},
    {"two_runtimes", two_runtimes},
    {"what_outlives_its_runtime", what_outlives_its_runtime},
    {"thread_locals", thread_locals},
    {"thread_locals_of_a_thread_that_ended", thread_locals_of_a_thread_that_ended},
    {"thread_locals_of_a_thread_that_goes_on", thread_locals_of_a_thread_that_goes_on},
    {"handlers_registered_before", handlers_registered_before},
    {"handlers_registered_behind", handlers_registered_behind},
    {"scopes_are_open", scopes_are_open},
    {"handlers_that_open_a_runtime", handlers_that_open_a_runtime},
    {"nobody_ends_it", nobody_ends_it},
    {"another_thread_exits", another_thread_exits},
    {"threads_work_meanwhile", threads_work_meanwhile},
    {"exit_without_handlers", exit_without_handlers},
    {"quick_exit_with_a_handler", quick_exit_with_a_handler},
    {"a_service_runs", a_service_runs},
    {"what_is_closed_in_order", what_is_closed_in_order},
    {"what_a_module_keeps", what_a_module_keeps},
    {"what_a_module_keeps_for_a_thread", what_a_module_keeps_for_a_thread},
    {"a_handler_of_a_module", a_handler_of_a_module},
};
const std::size_t scene_count = std::size(scenes);

// For programs that load this file as a module and unload it again.
extern "C" __attribute__((visibility("default"))) int isthmus_test_play(const char* name) {
    for (const Scene& scene : scenes) {
        if (std::string_view(scene.name) != name) continue;
        scene.play();
        return 0;
    }
    return -1;
}

}  // namespace endings
