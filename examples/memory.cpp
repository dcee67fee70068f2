// SPDX-License-Identifier: Apache-2.0
// The excerpts of docs/memory.md, as a program that runs on every machine.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

using isthmus::Device;
using isthmus::MemoryKind;
using isthmus::Stream;
using isthmus::Use;

int failures = 0;
void expect(bool held, const char* what) {
    if (held) return;
    std::printf("not so: %s\n", what);
    ++failures;
}
void say(const char* what, std::string_view text) {
    std::printf("%s: %.*s\n", what, static_cast<int>(text.size()), text.data());
}

void shared(Device& gpu, std::size_t size) {
    // show: shared
    auto frame =
        gpu.allocate_shared<std::uint8_t>(size, {.host = Use::writes_often, .device = Use::reads_once}).value();
    {
        auto pixels = frame.write_on_host().value();  // waits for work that still uses the frame
        for (auto& pixel : pixels) pixel = 7;
    }
    gpu.stream().launch(brighten, size, frame, 40).value();
    auto seen = frame.read_on_host().value();  // waits for the launch
    say("memory", frame.explain());
    // end
    expect(seen[0] == 47, "the kernel's result is seen through a view");
}

void by_kind(Device& gpu) {
    // show: kinds
    // Kinds that the machine lacks are refused before the driver is called, and the error says which fact refused them.
    for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::managed, MemoryKind::pool}) {
        auto buffer = gpu.allocate<float>(1024, kind);
        if (!buffer) say("refused", buffer.error().text());
    }
    // end
    expect(gpu.allocate<float>(1024, MemoryKind::pinned).ok(), "every machine has pinned memory");
}

void aligned(Device& gpu, std::size_t size) {
    // show: aligned
    // Where CPU and GPU share it, whichever kind the machine's row chooses:
    auto frame = gpu.allocate_shared<std::uint8_t>(size, {.host = Use::writes_often, .alignment_bytes = 4096}).value();
    // By kind, with any allocator:
    auto block = gpu.allocate<std::uint8_t>(size, isthmus::AlignedAllocator(gpu.allocator(MemoryKind::pinned), 4096));
    // end
    expect(reinterpret_cast<std::uintptr_t>(frame.write_on_host().value().data()) % 4096 == 0, "it begins at a page");
    expect(block.ok() && reinterpret_cast<std::uintptr_t>(block->write_on_host().value().data()) % 4096 == 0,
           "pinned memory begins at a page");
}

// An excerpt of docs/how-to.md. A file system without O_DIRECT refuses it when the file is opened.
void direct(Device& gpu) {
    std::FILE* made = std::tmpfile();
    if (made == nullptr) return;
    const std::vector<std::uint8_t> content(5000, 9);
    expect(std::fwrite(content.data(), 1, content.size(), made) == content.size() && std::fflush(made) == 0, "written");
    const std::string path = "/proc/self/fd/" + std::to_string(fileno(made));
    // show: direct
    int file = ::open(path.c_str(), O_RDONLY | O_DIRECT);
    if (file < 0) file = ::open(path.c_str(), O_RDONLY);  // this file system has no O_DIRECT (EINVAL)
    // Whole pages, from a page's beginning: the last read of a file may return less.
    auto buffer = gpu.allocate_shared<std::uint8_t>(8192, {.host = Use::writes_once, .alignment_bytes = 4096}).value();
    {
        auto bytes = buffer.write_on_host().value();
        const ssize_t got = ::read(file, bytes.data(), bytes.size());  // negative: an error, in errno
        // write_on_host() promises every element: fill what the file did not.
        std::fill(bytes.begin() + (got < 0 ? 0 : got), bytes.end(), std::uint8_t{0});
    }
    // end
    ::close(file);
    std::fclose(made);
    const auto bytes = buffer.read_on_host().value();
    expect(bytes[0] == 9 && bytes[4999] == 9 && bytes[5000] == 0, "the file's content is in the buffer");
}

void adaptors(Device& gpu) {
    // show: adaptors
    isthmus::StatisticsAllocator counted(gpu.allocator(MemoryKind::pinned));
    isthmus::TrackingAllocator tracked(isthmus::LimitAllocator(counted, 64 << 20));
    {
        auto points = gpu.allocate<float>(1 << 20, tracked).value();
        auto refused = gpu.allocate<float>(1 << 26, tracked);  // 256 MiB: refused without asking `counted`
        say("over the limit", refused.error().text());
    }
    say("leaks", tracked.leak_report().empty() ? "none" : tracked.leak_report());
    say("most at once", std::to_string(counted.counters().peak_bytes));
    // end
    expect(tracked.leak_report().empty() && counted.counters().peak_bytes == 4u << 20, "adaptors see what passes");
}

// show: own
// An allocator is a type with two functions. kind() is optional: the kind of an empty buffer.
struct Arena {
    isthmus::Result<isthmus::MemoryBlock> allocate(const isthmus::AllocationRequest& request) {
        isthmus::MemoryBlock block;
        block.host = std::aligned_alloc(
            request.alignment, (request.bytes + request.alignment - 1) / request.alignment * request.alignment);
        if (block.host == nullptr) return isthmus::Error(isthmus::Code::out_of_memory, "the arena is full");
        block.bytes = request.bytes;
        block.kind = MemoryKind::host;  // the true kind: it decides what may touch the memory
        return block;
    }
    isthmus::Result<void> release(const isthmus::MemoryBlock& block, Stream*) {
        std::free(block.host);
        return {};
    }
    MemoryKind kind() const noexcept { return MemoryKind::host; }
};
static_assert(isthmus::MemoryAllocator<Arena>);
// end

void scoped(Device& gpu) {
    // show: scoped
    {
        isthmus::ScopedAllocator here(gpu, Arena());  // this device, this thread, this scope
        auto scratch = gpu.allocate<float>(256).value();
        expect(scratch.kind() == MemoryKind::host, "the scope's allocator is used");
    }
    gpu.set_allocator(gpu.allocator(MemoryKind::pinned));  // this device, all threads, until set again
    auto pinned = gpu.allocate<float>(256).value();
    gpu.set_allocator({});  // device memory again; buffers keep their memory
    // end
    expect(gpu.is_cpu() || pinned.kind() == MemoryKind::pinned, "what was set is used");
    expect(gpu.is_cpu() || gpu.allocate<float>(1)->kind() == MemoryKind::device, "device memory is the default");
}

void pools(Device& gpu) {
    // show: pools
    auto made = gpu.create_pool({.max_bytes = 64 << 20});
    if (!made) return say("no pools", made.error().text());  // the CPU device, old drivers
    isthmus::MemoryPool pool = made.value();
    Stream& stream = gpu.stream();
    {
        auto scratch =
            stream.allocate<std::uint8_t>(1 << 20, pool.allocator()).value();  // usable at once on this stream
        stream.fill_bytes(scratch, 0).value();
    }  // freed behind the fill, without a wait of the host
    stream.synchronize().value();
    pool.trim(0).value();  // unused memory goes back to the device
    say("reserved", std::to_string(pool.usage().value().reserved_bytes));
    // end
    expect(pool.usage().value().used_bytes == 0, "what was released is not in use");
}

void in_order(Device& gpu) {
    if (!gpu.capabilities().has(isthmus::Feature::pools)) return;
    // show: ordered
    Stream& first = gpu.stream();
    Stream second = gpu.create_stream().value();
    auto data = first.allocate<std::uint8_t>(4096).value();  // the device's own pool
    first.fill_bytes(data, 6).value();
    second.wait_stream(first).value();                      // the program orders the content
    second.launch(brighten, data.size(), data, 1).value();  // the runtime orders the allocation
    // end
    expect(second.synchronize().ok(), "both streams end");
}

void placed(Device& gpu, std::size_t size) {
    // show: placed
    auto made = gpu.allocate_host<std::uint8_t>(
        size, {.locality = isthmus::Locality::near_device, .strict = false, .prefault = true});
    const isthmus::PlacementReport report = made.value().placement();
    say("placed", isthmus::name(report.placed));
    if (!report.reason.empty()) say("because", report.reason);
    // end
    expect(made->size() == size, "without strict the memory comes");
}

void registered(Device& gpu) {
    // show: registered
    auto made = gpu.allocate<std::uint8_t>(1 << 20, MemoryKind::registered);
    if (!made) return say("not registered", made.error().text());
    auto bytes = made->write_on_host().value();
    // end
    expect(bytes.size() == 1u << 20, "registered memory is the host's, too");
}

void short_of_memory(Device& gpu) {
    if (gpu.is_cpu()) return;  // some systems promise any amount of memory
    // show: handler
    gpu.set_out_of_memory_handler([](std::size_t bytes) {
        say("out of memory for bytes", std::to_string(bytes));
        return false;  // true: something was released, try again
    });
    auto refused = gpu.allocate<std::uint8_t>(std::size_t{1} << 44);
    if (!refused) say("refused", refused.error().text());  // requested, free, cached, pending
    // end
    gpu.set_out_of_memory_handler({});
    expect(refused.code() == isthmus::Code::out_of_memory, "16 TiB are too much");
}

void who_may(Device& gpu) {
    // show: access
    auto buffer = gpu.allocate<float>(16, MemoryKind::host).value();
    const isthmus::AccessAnswer answer = gpu.can_access(buffer);
    say(answer ? "yes" : "no", answer.reason);
    if (!answer) say("instead", answer.remedy);
    const std::vector<float> foreign(16);  // not of this runtime: looked up by address
    say("a vector", name(gpu.can_access(foreign.data(), foreign.size() * sizeof(float)).verdict));
    // end
    const bool pageable = gpu.is_cpu() || gpu.capabilities().has(isthmus::Feature::pageable_access);
    expect(static_cast<bool>(answer) == pageable, "ordinary memory is reached where attribute 88 says so");
}

void copies(Device& gpu) {
    // show: copies
    Stream& stream = gpu.stream();
    std::vector<float> picture(640 * 480, 6.0f);  // pageable: has been read when the call returns
    auto image = gpu.allocate<float>(picture.size()).value();
    stream.copy_from_host(image, std::span<const float>(picture)).value();
    auto corner = gpu.allocate<float>(64 * 64).value();
    stream.copy_region(corner, {}, image, {.offset = 8, .row_pitch = 640}, {.width = 64, .height = 64}).value();
    std::vector<float> seen(64 * 64);  // pageable: has been written when the call returns
    stream.copy_to_host(std::span<float>(seen), corner).value();
    const isthmus::HintReport hint = stream.prefetch(corner).value();  // a hint without effect is no error
    say("the hint", hint.reason);
    // end
    expect(seen.front() == 6.0f && seen.back() == 6.0f, "the corner came back");
}

void captured(Device& gpu, std::size_t size) {
    // show: captured
    auto data = gpu.allocate<std::uint8_t>(size).value();  // before the capture
    Stream stream = gpu.create_stream().value();
    auto capture = stream.begin_capture().value();
    stream.launch(brighten, size, data, 1).value();   // recorded, not run
    auto refused = gpu.allocate<std::uint8_t>(size);  // would end the capture: refused without a driver call
    isthmus::Graph graph = capture.end().value();
    isthmus::GraphInstance again = graph.instantiate().value();
    for (int i = 0; i < 10; ++i) stream.launch(again).value();  // one driver call each
    // end
    expect(gpu.is_cpu() || refused.code() == isthmus::Code::capture_error, "allocating beside the graph is refused");
    expect(data.release().code() == isthmus::Code::in_use, "the graph holds its buffers");
    expect(stream.synchronize().ok(), "the graph ran");
}

// show: reopened
// After Code::device_lost because other code destroyed the context: a new runtime works in the new context. After a
// fault (700, 716, 719 …) it does not: end the process.
isthmus::Result<isthmus::Runtime> open_again(isthmus::Runtime lost) {
    { const isthmus::Runtime closed = std::move(lost); }
    return isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked});
}
// end

void modes(Device& gpu) {
    // show: modes
    auto ordinary = gpu.allocate<std::uint8_t>(64, MemoryKind::host).value();
    Stream& stream = gpu.stream();
    stream.set_launch_mode(isthmus::LaunchMode::checked);
    auto launched = stream.launch(brighten, ordinary.size(), ordinary, 1);
    if (!launched) say("refused", launched.error().text());  // kernel, argument, kind, fact and remedy
    // For this launch, copied in and out where the GPU does not reach the buffer.
    stream.launch({.mode = isthmus::LaunchMode::staged}, brighten, ordinary.size(), ordinary, 1).value();
    // end
    expect(launched.ok() == static_cast<bool>(gpu.can_access(ordinary)), "checked launches refuse what is known");
    expect(ordinary.read_on_host().ok(), "staged launches reach any memory of the host");
}

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    Device& gpu = runtime.default_device();
    constexpr std::size_t size = 640 * 480;
    shared(gpu, size);
    by_kind(gpu);
    aligned(gpu, size);
    direct(gpu);
    adaptors(gpu);
    scoped(gpu);
    pools(gpu);
    in_order(gpu);
    placed(gpu, size);
    registered(gpu);
    short_of_memory(gpu);
    who_may(gpu);
    copies(gpu);
    captured(gpu, size);
    modes(gpu);
    isthmus::Runtime next = open_again(std::move(runtime)).value();
    expect(next.default_device().healthy(), "a runtime can be opened again");
    return failures == 0 ? 0 : 1;
}
