// SPDX-License-Identifier: Apache-2.0
// A module with its own copy of the library. Its steps make nearly every library call that reaches the driver, one or a
// few related calls per step, and report each call's name, so that the program can check its current context.
#include "copies.hpp"
#include "kernels.hpp"

#include <isthmus/concurrent/frame_ring.hpp>
#include <isthmus/concurrent/service.hpp>
#include <isthmus/ipc/export_probe.hpp>
#include <isthmus/ipc/shared_event.hpp>
#include <isthmus/ipc/shared_memory.hpp>
#include <isthmus/isthmus.hpp>
#include <isthmus/mapping/mirrored_buffer.hpp>
#include <isthmus/mapping/virtual_memory.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using endings::increase;
using Numbers = Buffer<std::int32_t>;
constexpr std::size_t count = 1 << 12;

isthmus_test_after_call after_call = nullptr;

void failed(const std::string& what) {
    throw std::runtime_error(what);
}
// After the call, the caller's context must be current again, whatever the call returned.
template <class T>
T did(const char* call, Result<T> answer) {
    after_call(call);
    if (!answer) failed(std::string(call) + ": " + answer.error().text());
    if constexpr (!std::is_void_v<T>) return std::move(answer).value();
}
// As above, for a call that may be refused.
template <class T>
std::optional<T> tried(const char* call, Result<T> answer) {
    after_call(call);
    if (!answer) return std::nullopt;
    return std::move(answer).value();
}
template <class T>
void gone(const char* call, std::optional<T>& object) {
    object.reset();
    after_call(call);
}

struct World {
    Runtime runtime;
    Device& device = runtime.default_device();
    Stream stream;
    Numbers data;
    Numbers host_seen;
    std::int32_t expected = 0;

    static World open() {
        Runtime opened = did("Runtime::open", Runtime::open());
        Stream made = did("create_stream", opened.default_device().create_stream({.priority = -1}));
        return World(std::move(opened), made);
    }
    World(Runtime opened, const Stream& made) : runtime(std::move(opened)), stream(made) {
        data = did("allocate", device.allocate<std::int32_t>(count));
        host_seen = did("allocate_shared", device.allocate_shared<std::int32_t>(count));
        did("fill", stream.fill(data, 0));
    }
    bool has(Feature feature) const { return device.capabilities().has(feature); }
};

std::unique_ptr<World> world;

void launches() {
    for (const LaunchMode mode :
         {LaunchMode::relaxed, LaunchMode::checked, LaunchMode::strict, LaunchMode::staged, LaunchMode::verify}) {
        did("launch", world->stream.launch(LaunchOptions{.mode = mode}, increase, count, world->data));
        ++world->expected;
    }
    Numbers host = did("allocate_host", world->device.allocate_host<std::int32_t>(count));
    (void)did("write_on_host", host.write_on_host());
    did("staged launch", world->stream.launch(LaunchOptions{.mode = LaunchMode::staged}, increase, count, host));
    (void)tried("refused launch", world->runtime.cpu().stream().launch(LaunchOptions{.mode = LaunchMode::checked},
                                                                       increase, count, world->data));
    did("release", host.release());
}
void copies() {
    did("copy", world->stream.copy(world->host_seen, world->data));
    std::vector<std::int32_t> seen(count, -1);
    did("copy_to_host", world->stream.copy_to_host(std::span(seen), world->data));
    for (const std::int32_t one : seen) {
        if (one != world->expected) failed("copied " + std::to_string(one));
    }
    did("copy_from_host", world->stream.copy_from_host(world->data, std::span<const std::int32_t>(seen)));
    did("copy_region", world->stream.copy_region(world->data, {0, 64, 0}, world->data, {2048, 64, 0}, {16, 4, 1}));
    did("fill_bytes", world->stream.fill_bytes(world->host_seen, 0));
}
void views() {
    did("copy", world->stream.copy(world->host_seen, world->data));
    {
        auto view = did("read_on_host", world->host_seen.read_on_host());
        if (view[0] != world->expected || view[count - 1] != world->expected) failed("a view shows other values");
    }
    after_call("the end of a view");
    did("launch", world->stream.launch(increase, count, world->host_seen));
    (void)did("write_on_host", world->host_seen.write_on_host());
    (void)tried("atomics_on_host", world->host_seen.atomics_on_host<AtomicSet::add>());
    (void)tried("read_on_host of device memory", world->data.read_on_host());
}
void kinds() {
    for (int kind = 0; kind < memory_kind_count; ++kind) {
        std::optional<Numbers> made =
            tried("allocate of a kind", world->device.allocate<std::int32_t>(count, static_cast<MemoryKind>(kind)));
        if (!made) continue;
        (void)tried("prefetch", world->stream.prefetch(*made));
        (void)tried("advise", world->device.advise(*made, Advice::read_mostly));
        (void)tried("advice_for", world->device.advice_for(*made));
        const BufferBase* const batch[] = {&*made};
        (void)tried("prefetch of a batch", world->stream.prefetch(batch));
        (void)tried("discard", world->stream.discard(*made));
        did("launch", world->stream.launch(LaunchOptions{.mode = LaunchMode::staged}, increase, count, *made));
        (void)world->device.can_access(*made);
        after_call("can_access");
        if (kind % 2 == 0) did("release", made->release());
        gone("the end of a buffer", made);
    }
    HostPlacement near_device;
    near_device.locality = Locality::near_device;
    auto placed = tried("allocate_host", world->device.allocate_host<std::int32_t>(count, near_device));
    gone("the end of a buffer", placed);
}
void events() {
    std::optional<Event> timed = did("record", world->stream.record({.timing = true}));
    did("launch", world->stream.launch(increase, count, world->data));
    ++world->expected;
    std::optional<Event> end = did("record", world->stream.record({.timing = true}));
    std::optional<Stream> other = did("create_stream", world->device.create_stream());
    did("wait", other->wait(*end));
    did("wait_stream", other->wait_stream(world->stream));
    did("set_current_stream", world->device.set_current_stream(*other));
    did("wait on the current stream", world->device.wait_stream(world->stream));
    did("set_current_stream", world->device.set_current_stream(world->device.stream()));
    did("Event::synchronize", end->synchronize());
    (void)did("Event::finished", end->finished());
    (void)did("elapsed_ms", Event::elapsed_ms(*timed, *end));
    (void)did("mark", world->stream.mark());
    (void)did("poll", world->stream.poll());
    (void)did("finished", world->stream.finished());
    (void)did("priority", world->stream.priority());
    (void)did("native_handle", world->stream.native_handle());
    did("call_on_host", other->call_on_host([]() noexcept {}));
    (void)did("enqueue_native", other->enqueue_native("nothing", [](void*) {}));
    auto scope = did("open_native_scope", other->open_native_scope("nothing", updates(world->data)));
    (void)did("NativeScope::close", scope.close());
    did("wait_native", other->wait_native(did("Event::native_handle", end->native_handle())));
    gone("the end of a stream", other);
    gone("the end of an event", timed);
    if (auto shared = tried("create_event", world->device.create_event({.interprocess = true}))) {
        did("record", world->stream.record(*shared));
        (void)tried("export_event", export_event(*shared));
    }
    did("Stream::synchronize", world->stream.synchronize());
    did("Device::synchronize", world->device.synchronize());
    did("Runtime::synchronize", world->runtime.synchronize());
}
void graphs() {
    std::optional<Capture> capture = did("begin_capture", world->stream.begin_capture());
    did("launch", world->stream.launch(increase, count, world->data));
    did("fill", world->stream.fill(world->data, 0));
    did("launch", world->stream.launch(increase, count, world->data));
    (void)tried("an allocation in a capture", world->device.allocate<std::int32_t>(count));
    std::optional<Graph> graph = did("Capture::end", capture->end());
    gone("the end of a capture", capture);
    std::optional<GraphInstance> instance = did("instantiate", graph->instantiate());
    did("launch of a graph", world->stream.launch(*instance));
    did("launch of a graph", world->stream.launch(*instance));
    world->expected = 1;
    gone("the end of an instance", instance);
    gone("the end of a graph", graph);
    {
        const Capture dropped = did("begin_capture", world->stream.begin_capture());
        did("launch", world->stream.launch(increase, count, world->data));
    }
    after_call("a capture that is dropped");
}
void pools() {
    if (!world->has(Feature::pools)) return;
    auto pool = std::optional(did("create_pool", world->device.create_pool()));
    std::optional<Numbers> pooled = did("Stream::allocate", world->stream.allocate<std::int32_t>(count));
    did("launch", world->stream.launch(increase, count, *pooled));
    (void)did("usage", pool->usage());
    did("trim", pool->trim(0));
    did("set_release_threshold", pool->set_release_threshold(1 << 20));
    gone("the end of pool memory", pooled);
    gone("the end of a pool", pool);
}
void mapped_memory() {
    auto grown =
        std::optional(did("GrowableBuffer::create", GrowableBuffer<std::int32_t>::create(world->device, 4 * count)));
    did("resize", grown->resize(count));
    did("resize", grown->resize(3 * count));
    did("launch", world->stream.launch(increase, count, *grown));
    gone("the end of a growable buffer", grown);
    auto ring = tried("MirroredBuffer::create", MirroredBuffer<std::int32_t>::create(world->device, count));
    gone("the end of a mirrored buffer", ring);
    if (!world->has(Feature::virtual_memory)) return;
    const MemoryGranularity unit = did("memory_granularity", memory_granularity(world->device));
    auto physical =
        std::optional(did("PhysicalMemory::create", PhysicalMemory::create(world->device, unit.minimum_bytes)));
    auto where = std::optional(did("reserve", AddressReservation::reserve(world->device, 2 * unit.minimum_bytes)));
    std::optional<Mapping> mapping = did("map", where->map(0, *physical));
    did("set_access", mapping->set_access({&world->device}));
    (void)did("query_access", mapping->query_access(world->device));
    (void)did("properties", physical->properties());
    did("unmap", mapping->unmap());
    gone("the end of a mapping", mapping);
    gone("the end of a reservation", where);
    gone("the end of physical memory", physical);
}
void shared_memory() {
    for (const ExportKinds kind : {ExportKinds::posix_fd, ExportKinds::fabric}) {
        (void)tried("probe_export", probe_export(world->device, kind));
    }
    for (const SeenBy seen_by : {SeenBy::gpus_only, SeenBy::cpus_and_gpus}) {
        auto made = tried("ExportableBuffer::create",
                          ExportableBuffer<std::int32_t>::create(world->device, count, {.seen_by = seen_by}));
        if (!made) continue;
        auto descriptor = tried("export_memory", export_memory(*made));
        if (descriptor) {
            auto taken = tried("import_memory", import_memory<std::int32_t>(world->device, *std::move(descriptor)));
            gone("the end of imported memory", taken);
        }
        gone("the end of exported memory", made);
    }
}
void foreign_memory() {
    void* memory = std::aligned_alloc(65536, 65536);
    auto adopted = tried("adopt", world->device.adopt<std::int32_t>(memory, count));
    if (adopted) {
        did("launch", world->stream.launch(LaunchOptions{.mode = LaunchMode::staged}, increase, count, *adopted));
        (void)did("read_on_host", adopted->read_on_host());
        did("release", adopted->release());
    }
    gone("the end of adopted memory", adopted);
    (void)world->device.can_access(memory, 64);
    after_call("can_access of an address");
    std::free(memory);
    std::optional<Stream> wrapped = did("wrap_stream", world->device.wrap_stream(nullptr));
    did("launch on the default stream", wrapped->launch(increase, count, world->data));
    ++world->expected;
    did("Stream::synchronize", wrapped->synchronize());
    gone("the end of a wrapped stream", wrapped);
    { const auto frames = did("FrameRing::create", FrameRing<std::int32_t>::create(world->device, count)); }
    after_call("the end of a ring");
}
void peers() {
    for (std::size_t at = 0; at < world->runtime.device_count(); ++at) {
        Device& other = *world->runtime.device(at).value();
        if (&other == &world->device || other.is_cpu()) continue;
        (void)other.can_enable_peer_access(world->device);
        after_call("can_enable_peer_access");
        const bool reached = tried("enable_peer_access",
                                   [&] {
                                       Result<void> answer = other.enable_peer_access(world->device);
                                       return answer ? Result<int>(0) : Result<int>(answer.error());
                                   }())
                                 .has_value();
        Numbers there = did("allocate", other.allocate<std::int32_t>(count));
        did("copy between devices", world->stream.copy(there, world->data));
        did("wait_stream", other.stream().wait_stream(world->stream));
        if (reached) did("disable_peer_access", other.disable_peer_access(world->device));
        did("Runtime::synchronize", world->runtime.synchronize());
    }
}
void services() {
    const char* const mode = std::getenv("ISTHMUS_SIM_MODE");
    if (mode != nullptr && std::string_view(mode) == "seeded") return;
    auto service = tried("Service::start", Service<std::uint32_t, std::uint32_t>::start(world->device, endings::echo));
    if (!service) return;
    if (did("Service::call", service->call(41)) != 41) failed("the service answers something else");
    did("Service::stop", service->stop());
    gone("the end of a service", service);
}

constexpr void (*steps[])() = {launches,      copies,        views,          kinds, events,   graphs, pools,
                               mapped_memory, shared_memory, foreign_memory, peers, services, copies};

int guarded(char* text, std::size_t size, void (*body)()) {
    try {
        body();
        return 0;
    } catch (const std::exception& error) {
        std::snprintf(text, size, "%s", error.what());
        return -1;
    }
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int isthmus_test_open(isthmus_test_after_call told, char* text,
                                                             std::size_t size) {
    after_call = told;
    const int opened = guarded(text, size, [] { world = std::make_unique<World>(World::open()); });
    return opened == 0 && world->device.is_cpu() ? 1 : opened;
}
__attribute__((visibility("default"))) int isthmus_test_steps() {
    return static_cast<int>(std::size(steps));
}
__attribute__((visibility("default"))) int isthmus_test_step(int step, char* text, std::size_t size) {
    return guarded(text, size, steps[step]);
}
__attribute__((visibility("default"))) int isthmus_test_alone(int step) {
    return steps[step] == graphs || steps[step] == events || steps[step] == peers ? 1 : 0;
}
__attribute__((visibility("default"))) int isthmus_test_close() {
    world.reset();
    after_call("the end of a runtime");
    return 0;
}
}
