// Device: one GPU, or the CPU. Owned by the Runtime; all functions are thread-safe.
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

namespace isthmus::inline v0 {

namespace detail {
class DeviceAllocators;
}

struct StreamOptions {
    int priority = 0;  // −1 high, 0 low; clamped (S13)
};

class ISTHMUS_API Device {
public:
    explicit Device(std::shared_ptr<detail::DeviceState> state);

    std::size_t index() const noexcept;  // within the runtime
    bool is_cpu() const noexcept;
    std::string_view name() const noexcept;
    const Capabilities& capabilities() const noexcept;
    // The first call asks the driver for the attributes that opening the runtime did not need: some 120 calls, and no
    // context. In host functions, in a forked child and once the device is lost it asks nothing, and attributes that
    // were not asked for before are absent. Thread-safe.
    const DeviceFacts& facts() const noexcept;
    bool healthy() const noexcept;  // false after a sticky error (R2)

    Stream& stream() noexcept;  // there from the start (S4)
    // What this thread's calls use here where they name no stream: that of its innermost ScopedStream on this device,
    // else stream(). See current.hpp.
    Stream current_stream() const;
    // On the current stream, as its members of the same names.
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
    Result<Event> record() { return current_stream().record(); }

    Result<Stream> create_stream(StreamOptions options = {});
    // A stream that other code made (S5): a CUstream of this device's primary context, or nullptr for the legacy
    // default stream of that context. Its owner destroys it, not before the last Stream, Capture or scope of it has
    // gone: drivers crash on a destroyed one. Events and buffers that it was used with may stay. Wrapped again it is
    // the same stream, id and all (S17); the native_handle() of an own stream gives that one.
    // Each operation costs two more driver calls, about 0.1 µs: whether code beside the runtime captures the stream,
    // and a fence. In such a capture launches, fills and copies between buffers are recorded and nothing else: when
    // that graph runs nobody tells, so that nothing waits for it, and buffers are not held. Refused there, before it
    // could be harmed (capture_error): what Capture refuses, staged buffers, pool memory that another stream allocated,
    // call_on_host, and allocating from a pool that was not there before (the remedy: pool()). Memory allocated there
    // is the graph's, whose owner frees it.
    // Errors: wrong_device (another context's), unsupported (the CPU device; the per-thread default stream, which is
    // another one on each thread), device_lost.
    Result<Stream> wrap_stream(void* native);
    // Errors: unsupported (interprocess, where Feature::ipc_events is not), invalid_argument (EventOptions),
    // device_lost.
    Result<Event> create_event(EventOptions options = {});

    // Memory from the current allocator (current_allocator()): device memory unless something else was set.
    // count = 0 gives an empty buffer of the allocator's kind, and nobody is asked.
    // Errors: invalid_argument (count × sizeof(T) overflows), unsupported, out_of_memory, capture_error (a capture is
    // open on this thread), device_lost; a user's allocator's own.
    template <class T>
    Result<Buffer<T>> allocate(std::size_t count) {
        return typed<T>(allocate_current(count, sizeof(T), alignof(T)));
    }
    // … of this kind. Kinds that the machine lacks are refused before the driver is called (K7). Pool memory may be
    // used on every stream at return; Stream::allocate does not wait for that.
    template <class T>
    Result<Buffer<T>> allocate(std::size_t count, MemoryKind kind) {
        return typed<T>(allocate_bytes(count, sizeof(T), alignof(T), kind));
    }
    // … from this allocator, which the buffer keeps.
    template <class T>
    Result<Buffer<T>> allocate(std::size_t count, const Allocator& allocator) {
        return typed<T>(allocate_from(allocator, count, sizeof(T), alignof(T)));
    }
    // Pageable host memory with NUMA placement; Locality::near_device is this device's closest node (H1).
    template <class T>
    Result<Buffer<T>> allocate_host(std::size_t count, const HostPlacement& placement = {}) {
        return typed<T>(allocate_host_bytes(count, sizeof(T), alignof(T), placement));
    }
    // Memory for both: the machine's row and the declared use decide which kind (G11); explain() says why.
    template <class T>
    Result<Buffer<T>> allocate_shared(std::size_t count, const SharedUse& use = {}) {
        SharedUse words = use;
        words.updates = of_words(use.updates, std::is_floating_point_v<T>);
        return typed<T>(allocate_shared_bytes(count, sizeof(T), alignof(T), words, std::is_signed_v<T>));
    }

    // Memory that somebody else allocated, as a buffer of `count` elements; adopt.hpp says what becomes of it.
    // Errors, with which nothing was taken: invalid_argument (null, no elements, misaligned for T), in_use (it overlaps
    // a buffer of this runtime), not_accessible (it is not mapped, or not for the declared use), unsupported (a kind
    // asked for that it cannot be; managed memory of other code on 89=0 machines), wrong_device (memory of another GPU,
    // an event of another runtime), unverified (the system does not say what it is), capture_error (a capture is open
    // on this thread), out_of_memory, device_lost.
    template <class T>
    Result<Buffer<T>> adopt(void* pointer, std::size_t count, AdoptOptions options = {}) {
        return typed<T>(adopt_bytes(pointer, count, sizeof(T), alignof(T), std::move(options)));
    }
    // A dma-buf by its file descriptor. Code::unsupported in this version, with what works instead: mapping it.
    template <class T>
    Result<Buffer<T>> adopt_dma_buf(int descriptor, std::size_t count, const AdoptOptions& options = {}) {
        return typed<T>(adopt_descriptor(descriptor, count, options));
    }

    // What allocates a kind of memory of this device; always the same one. Taking it calls no driver and refuses
    // nothing, allocating does. On the CPU device every kind is host memory.
    // Blocks are given back to any allocator of the device that they came from, once: unknown_pointer,
    // interior_pointer, already_released, wrong_device otherwise (K8), and nothing has changed then. While a capture
    // is open they are freed behind it. What is never given back is freed when the last handle of the device goes.
    Allocator allocator(MemoryKind kind) const;
    // Host memory placed like this.
    Allocator host_allocator(const HostPlacement& placement) const;
    // What allocate(count) uses on this thread: that of the innermost ScopedAllocator, else what was set.
    Allocator current_allocator() const;
    void set_allocator(Allocator allocator);  // for all threads; an empty one: device memory again (K5)
    // The device's own pool of this kind (pool or managed_pool), which allocator(kind) and Stream::allocate use; made
    // at its first use. And a pool apart. Errors: unsupported, capture_error (a pool is made before a capture begins).
    Result<MemoryPool> pool(MemoryKind kind = MemoryKind::pool);
    Result<MemoryPool> create_pool(const PoolOptions& options = {});
    // Called when an allocation found no memory although caches were given back and pending frees waited for. true:
    // memory was released, try again; must be false some day. May be called by several threads, and may release and
    // allocate (K19). Empty: none.
    void set_out_of_memory_handler(std::function<bool(std::size_t bytes)> handler);

    // May this device touch the buffer? From what the runtime knows: no driver call (K4).
    AccessAnswer can_access(const BufferBase& buffer) const;
    // … all of [address, address + bytes)? Inside memory of this runtime as its buffer; what another part of the
    // process obtained is asked of the driver once and remembered until this runtime is told otherwise by its own
    // allocations (A10); what no driver knows counts as ordinary host memory. A range that leaves its allocation: no.
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
    // Several buffers at once: yes only where all are; `part` of the answer says which was the first that is not.
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
    // What holds between two devices in general: GPU → CPU by pageable access, CPU → GPU no, GPU → GPU by what is
    // switched for memory as the other device allocates it now. Coarse, and NOT authoritative: managed and pinned
    // memory, pools and foreign memory differ. Ask about the buffer.
    AccessAnswer can_access(const Device& other) const;

    // Lets this device touch `owner`'s device memory (not its pools, which are opened one by one); the other direction
    // is a switch of its own (A15). Already so: no driver call. The owner's memory may be in use meanwhile.
    // Errors: wrong_device (of another runtime), invalid_argument (the same device), unsupported (a CPU device; a pair
    // that nothing links), device_lost.
    Result<void> enable_peer_access(const Device& owner);
    // The caller has waited for kernels that use it.
    Result<void> disable_peer_access(const Device& owner);
    // What a launch does with memory of this kind here.
    LaunchPath launch_path(MemoryKind kind) const noexcept;
    // A hint about the whole buffer, at once; errors and report as Stream::prefetch.
    Result<HintReport> advise(const BufferBase& buffer, Advice advice);
    // What became of all hints of this device's runtime, prefetches too.
    HintCounts hint_counts() const noexcept;
    // Waits for all that the device was given: by this runtime, stream by stream, and then by other code of the
    // process, in the device's primary context. The latter is asked with cuCtxRecordEvent. Drivers before CUDA 12.5
    // have only a wait that no deadline bounds, cuCtxSynchronize: there it is left out under Wait::never(). While a
    // capture is open that was begun through a runtime, other code's work is not waited for, because both calls would
    // end the capture (S19); captures that other code began in the context, and that this runtime cannot know, end
    // (900). Errors: timed_out, not_ready (Wait::never()), capture_error, device_lost.
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
    Untyped adopt_descriptor(int descriptor, std::size_t count, const AdoptOptions& options);
    AccessAnswer view_access(const detail::ViewScope& scope) const;
    AccessAnswer combined(const AccessAnswer* parts, std::size_t count) const;
    Result<void> switch_peer(const Device& owner, bool allowed);
    // The greatest number where it overflows: no memory is that long.
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

}  // namespace isthmus::inline v0
