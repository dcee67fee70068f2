// SPDX-License-Identifier: Apache-2.0
// Device: one GPU, or the CPU; where memory, streams and launches come from.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/adopt.hpp>
#include <isthmus/allocator.hpp>
#include <isthmus/buffer.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/event.hpp>
#include <isthmus/export.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/hints.hpp>
#include <isthmus/host_view.hpp>
#include <isthmus/memory_pool.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/stream.hpp>
#include <isthmus/view.hpp>
#include <isthmus/wait.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace isthmus {
inline namespace v0 {

class Module;  // module.hpp
struct ModuleOptions;

namespace detail {
class DeviceAllocators;
}

struct StreamOptions {
    int priority = 0;  // −1 high, 0 low; clamped (S13)
};

// One GPU, or the CPU. Owned by the Runtime; all functions are thread-safe.
class ISTHMUS_API Device {
public:
    explicit Device(std::shared_ptr<detail::DeviceState> state);
    Device(const Device&) = default;  // the same device; a move copies, so that no Device is ever empty
    Device& operator=(const Device&) = default;
    ~Device() = default;

    std::size_t index() const noexcept;  // within the runtime
    bool is_cpu() const noexcept;
    std::string_view name() const noexcept;
    const Capabilities& capabilities() const noexcept;
    // The first call asks the driver for the attributes that opening the runtime did not need: about 120 calls, without
    // a context. In host functions, in a forked child and after the device was lost, the driver is not asked, and
    // attributes that were not read before are absent. Thread-safe.
    const DeviceFacts& facts() const noexcept;
    bool healthy() const noexcept;  // false after a sticky error (R2)

    Stream& stream() noexcept;  // exists from the start (S4)
    // The stream that this thread's calls use on this device where they name none: that of the innermost ScopedStream
    // on this device, else the one that was set, else stream(). See current.hpp.
    Stream current_stream() const;
    // Makes the stream the calling thread's current one of this device until the thread sets another or ends, or the
    // runtime closes; it is held until then. Within a ScopedStream of this device it takes the place of the scope's
    // stream, and the end of the scope restores what was current before the scope. Which device is current does not
    // change. set_current_stream(stream()) restores the start. Work is ordered as by ScopedStream::enter(): what the
    // stream is given from now on comes behind what the previous current one was given (S6).
    // Errors, with nothing changed: wrong_device (a stream of another device), not_permitted (the thread is running
    // its last destructors), those of Stream::wait_stream().
    Result<void> set_current_stream(const Stream& stream);
    // These run on the current stream, like the members of Stream with the same names.
    template <class Space, class... P, class... A>
    Result<LaunchReport> launch(const Kernel<void(Space, P...)>& kernel,
                                typename KernelTraits<void(Space, P...)>::ExtentType extent, A&&... arguments) {
        return current_stream().launch(kernel, extent, std::forward<A>(arguments)...);
    }
    template <class T>
    Result<void> copy(TypedBuffer<T>& to, const TypedBuffer<T>& from) {
        return current_stream().copy(to, from);
    }
    template <class T>
    Result<void> fill(TypedBuffer<T>& to, const std::type_identity_t<T>& value) {
        return current_stream().fill(to, value);
    }
    Result<Event> record(EventOptions options = {}) { return current_stream().record(options); }
    Result<void> record(Event& event) { return current_stream().record(event); }
    Result<void> wait(const Event& event) { return current_stream().wait(event); }
    Result<void> wait_stream(Stream& other) { return current_stream().wait_stream(other); }

    Result<Stream> create_stream(StreamOptions options = {});
    // Wraps a stream that other code made (S5): a CUstream of this device's primary context, or nullptr for the legacy
    // default stream of that context. Its owner destroys it, after the last Stream, Capture or scope of it is gone:
    // drivers crash on a destroyed stream. Events and buffers that were used with it may stay. Wrapping it again gives
    // the same stream with the same id (S17). Wrapping the native_handle() of a stream of the runtime gives that
    // stream.
    // Each operation costs two more driver calls, about 0.1 µs: whether code beside the runtime captures the stream,
    // and a fence. During such a capture only launches, fills and copies between buffers are recorded. The runtime does
    // not learn when that graph runs: nothing waits for it, and it does not hold the buffers. Refused there with
    // capture_error, before the capture is harmed: what Capture refuses, staged buffers, pool memory that another
    // stream allocated, call_on_host(), and allocating from a pool that does not exist yet (call pool() before). Memory
    // allocated there belongs to the graph, whose owner frees it.
    // Errors: wrong_device (a stream of another context), unsupported (the CPU device; the per-thread default stream,
    // which is a different stream on each thread), device_lost.
    Result<Stream> wrap_stream(void* native);
    // Errors: unsupported (interprocess without Feature::ipc_events), invalid_argument (EventOptions), device_lost.
    Result<Event> create_event(EventOptions options = {});

    // Allocates `count` elements from the current allocator (current_allocator()): device memory unless another one was
    // set. count = 0 gives an empty buffer of the allocator's kind, without calling the allocator.
    // Errors: invalid_argument (count × sizeof(T) overflows), unsupported, out_of_memory, capture_error (a capture is
    // open on this thread), device_lost; those of a user's allocator.
    template <class T>
    Result<Buffer<T>> allocate(std::size_t count) {
        return typed<T>(allocate_current(count, sizeof(T), alignof(T)));
    }
    // Allocates memory of this kind. A kind that the machine lacks is refused before the driver is called (K7). Pool
    // memory may be used on every stream when the call returns; Stream::allocate() does not wait for that.
    template <class T>
    Result<Buffer<T>> allocate(std::size_t count, MemoryKind kind) {
        return typed<T>(allocate_bytes(count, sizeof(T), alignof(T), kind));
    }
    // Allocates from this allocator, which the buffer keeps.
    template <class T>
    Result<Buffer<T>> allocate(std::size_t count, const Allocator& allocator) {
        return typed<T>(allocate_from(allocator, count, sizeof(T), alignof(T)));
    }
    // Allocates pageable host memory with NUMA placement. Locality::near_device is the node closest to this device
    // (H1).
    template <class T>
    Result<Buffer<T>> allocate_host(std::size_t count, const HostPlacement& placement = {}) {
        return typed<T>(allocate_host_bytes(count, sizeof(T), alignof(T), placement));
    }
    // Allocates memory for CPU and device. The machine's capabilities and the declared use decide its kind (G11);
    // explain() says why.
    template <class T>
    Result<Buffer<T>> allocate_shared(std::size_t count, const SharedUse& use = {}) {
        SharedUse words = use;
        words.updates = of_words(use.updates, std::is_floating_point_v<T>);
        return typed<T>(allocate_shared_bytes(count, sizeof(T), alignof(T), words, std::is_signed_v<T>));
    }

    // Adopts memory that other code allocated, as a buffer of `count` elements; adopt.hpp states the terms.
    // Errors, after which the memory is not adopted: invalid_argument (null, no elements, misaligned for T), in_use (it
    // overlaps a buffer of this runtime), not_accessible (it is not mapped, or not for the declared use), unsupported
    // (it cannot be of the requested kind; managed memory of other code where attribute 89 = 0), wrong_device (memory
    // of another GPU, an event of another runtime), unverified (the system does not say what it is), capture_error (a
    // capture is open on this thread), out_of_memory, device_lost.
    template <class T>
    Result<Buffer<T>> adopt(void* pointer, std::size_t count, AdoptOptions options = {}) {
        return typed<T>(adopt_bytes(pointer, count, sizeof(T), alignof(T), std::move(options)));
    }
    // Adopts `count` elements of a dma-buf, from `offset_bytes` on: a camera's, a decoder's or a display's frame. The
    // descriptor stays the caller's, and may be closed after the call: the library keeps a duplicate and a shared
    // mapping of its own until the last use, and calls AdoptOptions::release behind it, before it unmaps the memory.
    // Where the driver imports it (Thor and later: tried each time), or its pages can be registered, it is used in
    // place, otherwise copied by the CPU around each use; explain() says which. SharedUse::kind host is unsupported.
    // Each host view and each copy by the CPU is bracketed by DMA_BUF_IOCTL_SYNC, as the kernel asks for; opening a
    // view waits until other devices have finished, without a deadline. Views of parts and concurrent views are not
    // separate from the whole: both are for the whole buffer, and atomics of both sides are refused. Adopt a dma-buf
    // once, because caches are synchronised as a whole. Errors, after which nothing is adopted: invalid_argument (no
    // open descriptor, no dma-buf, a range that leaves it, an offset that is not aligned for T), not_accessible (a
    // declared write to a read-only dma-buf), unsupported (its exporter cannot map it), system_limit (descriptors),
    // system_error, those of adopt().
    template <class T>
    Result<Buffer<T>> adopt_dma_buf(int descriptor, std::size_t count, AdoptOptions options = {},
                                    std::uint64_t offset_bytes = 0) {
        return typed<T>(adopt_descriptor(descriptor, offset_bytes, count, sizeof(T), alignof(T), std::move(options)));
    }

    // The allocator of a kind of memory of this device; always the same one. Calls no driver and refuses nothing;
    // allocating may. On the CPU device every kind is host memory.
    // A block is given back once, to any allocator of the device that it came from. Otherwise the error is
    // unknown_pointer, interior_pointer, already_released or wrong_device (K8), and nothing has changed. While a
    // capture is open, blocks are freed after it. Blocks that are never given back are freed when the last handle of
    // the device is gone.
    Allocator allocator(MemoryKind kind) const;
    // The allocator of host memory with this placement.
    Allocator host_allocator(const HostPlacement& placement) const;
    // The allocator that allocate(count) uses on this thread: that of the innermost ScopedAllocator, else the one that
    // was set.
    Allocator current_allocator() const;
    void set_allocator(Allocator allocator);  // for all threads; an empty one restores device memory (K5)
    // pool() is the device's own pool of this kind (pool or managed_pool), which allocator(kind) and Stream::allocate()
    // use; made at its first use. create_pool() makes a separate one. Errors: unsupported, capture_error (make a pool
    // before the capture begins).
    Result<MemoryPool> pool(MemoryKind kind = MemoryKind::pool);
    Result<MemoryPool> create_pool(const PoolOptions& options = {});
    // Memory of the kinds device, pinned, write_combined, managed, registered and host that was released is kept for
    // the next allocation of its kind and about its size. Memory of the device's own pool that was released behind the
    // work of a stream is kept for the next Stream::allocate() there. What is kept and what is in use stay together
    // within 17/16 of the most that was in use since the last trim_cache(). Not kept: memory of other pools and of
    // users' allocators, pool memory of external streams and of those whose native_handle() was asked for, host memory
    // with strict or local placement, memory made to be exported, and other than pool memory that other code may use
    // unseen: whose device_address() was asked for, that a capture of other code took, or that got advice. No driver
    // call. In the child of a fork: nothing.
    CacheUsage cache_usage() const;
    // Gives kept memory back to the driver and the system until at most so many bytes are kept; the order is by size
    // times the number of releases since. Returns how many bytes went. While a capture is open or a service runs on the
    // device they go back after it. Also done where an allocation finds no memory. Errors: forked, not_permitted (a
    // host function).
    Result<std::uint64_t> trim_cache(std::uint64_t keep_bytes = 0);
    // Sets a function that is called when an allocation finds no memory although caches were given back and pending
    // frees waited for. It returns true if it released memory and the allocation is to be tried again; it must return
    // false in the end. It may be called by several threads at once, and may release and allocate (K19). Empty: none.
    void set_out_of_memory_handler(std::function<bool(std::size_t bytes)> handler);

    // Whether this device may access the buffer, by what the runtime knows: no driver call (K4).
    AccessAnswer can_access(const BufferBase& buffer) const;
    // Whether it may access all of [address, address + bytes). Memory of this runtime is answered as its buffer. Memory
    // that other code in the process obtained is asked of the driver once, and the answer is kept until allocations of
    // this runtime replace it (A10). Memory that no driver knows counts as ordinary host memory. A range that leaves
    // its allocation: no.
    AccessAnswer can_access(const void* address, std::size_t bytes) const;
    // Views answer as their owner (A13).
    template <class T>
    AccessAnswer can_access(const View<T>& view) const {
        return can_access(view.data, view_bytes(view.count, sizeof(T)));
    }
    template <class T>
    AccessAnswer can_access(const Out<T>& view) const {
        return can_access(view.data, view_bytes(view.count, sizeof(T)));
    }
    template <class T>
    AccessAnswer can_access(const HostView<T>& view) const {
        return view_access(view.scope());
    }
    // Several buffers at once: yes only if all are accessible. AccessAnswer::part is the first that is not.
    template <class A, class B, class... More>
    requires(std::derived_from<A, BufferBase>&& std::derived_from<B, BufferBase> &&
             (std::derived_from<More, BufferBase> && ...)) AccessAnswer
        can_access(const A& first, const B& second, const More&... more)
    const {
        const std::array<AccessAnswer, 2 + sizeof...(More)> parts{can_access(first), can_access(second),
                                                                  can_access(more)...};
        return combined(parts.data(), parts.size());
    }
    template <class... B>
    requires(sizeof...(B) > 0 && (std::derived_from<std::remove_cvref_t<B>, BufferBase> && ...)) AccessAnswer
        can_access(const std::tuple<B...>& buffers)
    const {
        const auto parts = std::apply(
            [this](const auto&... each) {
                return std::array<AccessAnswer, sizeof...(B)>{can_access(static_cast<const BufferBase&>(each))...};
            },
            buffers);
        return combined(parts.data(), parts.size());
    }
    template <class B, std::size_t extent>
    requires(std::derived_from<B, BufferBase>) AccessAnswer can_access(std::span<B, extent> buffers)
    const {
        std::vector<AccessAnswer> parts;
        for (const B& each : buffers) parts.push_back(can_access(static_cast<const BufferBase&>(each)));
        return combined(parts.data(), parts.size());
    }
    // What holds between two devices in general. Coarse, and NOT authoritative: GPU → CPU by pageable access, CPU → GPU
    // no, GPU → GPU by what is enabled for memory as the other device allocates it now. Managed and pinned memory,
    // pools and foreign memory differ: ask about the buffer.
    AccessAnswer can_access(const Device& other) const;

    // Whether enable_peer_access(owner) could succeed, and whether a pool of `owner` could allow() this device, with
    // the fact that decides. Enables nothing. At most one driver call, of a pair of GPUs whose access is not enabled
    // yet. not_verified: the driver was not asked (a host function, a forked child, a lost device) or did not answer.
    // In one direction, as the access (A15).
    AccessAnswer can_enable_peer_access(const Device& owner) const;
    AccessAnswer can_enable_pool_access(const Device& owner) const;
    // Lets this device access the device memory of `owner`. Pools are not included: each has its own access. The other
    // direction is enabled separately (A15). No driver call if it is enabled already. The owner's memory may be in use
    // meanwhile.
    // Errors: wrong_device (a device of another runtime), invalid_argument (the same device), unsupported (a CPU
    // device; no link between the two), device_lost.
    Result<void> enable_peer_access(const Device& owner);
    // The caller must have waited for kernels that use the access.
    Result<void> disable_peer_access(const Device& owner);
    // Whether this device allocated, adopted or imported the buffer, and not another one, whose memory it may be able
    // to access. An empty buffer: no. No driver call.
    bool owns(const BufferBase& buffer) const noexcept;
    // What a launch on this device does with memory of this kind.
    LaunchPath launch_path(MemoryKind kind) const noexcept;
    // A hint about the whole buffer, at once. `node`: for prefer_host, this NUMA node of the host; −1: any. A driver
    // before CUDA 12.2 knows the host as a whole. Errors and report as Stream::prefetch(); invalid_argument also for a
    // node beside other advice.
    Result<HintReport> advise(const BufferBase& buffer, Advice advice, int node = -1);
    // The advice in force for the whole buffer, and its last prefetch, as the driver tells them: for managed memory.
    // Not counted. Errors as advise().
    Result<AdviceReport> advice_for(const BufferBase& buffer) const;
    // How many hints of this device's runtime had which outcome, prefetches included.
    HintCounts hint_counts() const noexcept;
    // Loads ready-made code: PTX text, a cubin or a fatbin, from memory or from a file; module.hpp states the terms.
    // The image may go when the call returns. On the CPU device stand-ins run, and the image is only read for its
    // entries. PTX text is given as bytes: a string is the name of a file. Errors: no_gpu_code (no image; damaged; not
    // for this GPU; PTX that is too new or does not compile: with the compiler's words), system_error and not_permitted
    // (the file cannot be read), unsupported (the driver lacks calls that this needs), in_use (a service runs on the
    // device), out_of_memory, device_lost.
    Result<Module> load_module(std::span<const std::byte> image);
    Result<Module> load_module(std::span<const std::byte> image, const ModuleOptions& options);
    Result<Module> load_module(std::string_view path);
    Result<Module> load_module(std::string_view path, const ModuleOptions& options);
    // Waits for all work of the device: that of this runtime, stream by stream, then that of other code of the process
    // in the device's primary context. The latter needs cuCtxRecordEvent. Drivers before CUDA 12.5 have only
    // cuCtxSynchronize, which has no deadline: there this part is left out under Wait::never(). While a capture that a
    // runtime began is open, work of other code is not waited for, because both calls would end the capture (S19).
    // Captures that other code began in the context, and that this runtime cannot know, end (900).
    // Errors: timed_out, not_ready (Wait::never()), capture_error, device_lost.
    Result<void> synchronize(Wait wait = {});

    const std::shared_ptr<detail::DeviceState>& state() const noexcept { return state_; }

private:
    using Untyped = Result<std::shared_ptr<detail::BufferState>>;
    Untyped allocate_current(std::size_t count, std::size_t element_bytes, std::size_t alignment);
    Untyped allocate_from(const Allocator& allocator, std::size_t count, std::size_t element_bytes,
                          std::size_t alignment);
    Untyped allocate_bytes(std::size_t count, std::size_t element_bytes, std::size_t alignment, MemoryKind kind);
    Untyped allocate_host_bytes(std::size_t count, std::size_t element_bytes, std::size_t alignment,
                                const HostPlacement& placement);
    Untyped allocate_shared_bytes(std::size_t count, std::size_t element_bytes, std::size_t alignment,
                                  const SharedUse& use, bool is_signed);
    Untyped adopt_bytes(void* pointer, std::size_t count, std::size_t element_bytes, std::size_t alignment,
                        AdoptOptions options);
    Untyped adopt_descriptor(int descriptor, std::uint64_t offset_bytes, std::size_t count, std::size_t element_bytes,
                             std::size_t alignment, AdoptOptions options);
    AccessAnswer view_access(const detail::ViewScope& scope) const;
    AccessAnswer combined(const AccessAnswer* parts, std::size_t count) const;
    Result<void> switch_peer(const Device& owner, bool allowed);
    // The largest number on overflow: no memory is that long.
    static std::size_t view_bytes(std::uint64_t count, std::size_t element_bytes) noexcept {
        constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
        return count > most / element_bytes ? most : static_cast<std::size_t>(count) * element_bytes;
    }
    template <class T>
    static Result<Buffer<T>> typed(Untyped state) {
        if (!state) return std::move(state).error();
        return Buffer<T>(std::move(state).value());
    }
    std::shared_ptr<detail::DeviceState> state_;
    std::shared_ptr<detail::DeviceAllocators> allocators_;
    Stream stream_;
};

}  // namespace v0
}  // namespace isthmus
