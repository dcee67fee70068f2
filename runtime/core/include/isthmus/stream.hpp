// SPDX-License-Identifier: Apache-2.0
// Stream: operations on one device, in order. On a GPU, launches, copies and fills return before the work is done; on
// the CPU device, when it is done.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/allocator.hpp>
#include <isthmus/buffer.hpp>
#include <isthmus/copy.hpp>
#include <isthmus/detail/launch_refusal.hpp>
#include <isthmus/event.hpp>
#include <isthmus/export.hpp>
#include <isthmus/graph.hpp>
#include <isthmus/hints.hpp>
#include <isthmus/host_function.hpp>
#include <isthmus/kernel.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/launch_options.hpp>
#include <isthmus/module_launch.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

namespace detail {
struct StreamState;
struct DeviceState;
template <class Signature>
struct ModuleTraits;
}  // namespace detail
template <class... U>
class NativeScope;

// A handle: copies and moved-from objects name the same stream. Thread-safe. Made by Device::create_stream(); each
// device has one from the start. Destroying the last handle waits for nothing: the work continues, and buffers still
// wait for it where they must.
class ISTHMUS_API Stream {
public:
    explicit Stream(std::shared_ptr<detail::StreamState> state);
    Stream(const Stream&) = default;  // no move: a stream is never empty
    Stream& operator=(const Stream&) = default;
    ~Stream() = default;

    // Runs the kernel over the index space. Arguments are checked at compile time: a parameter View<T>, View<const T>
    // or Out<T> takes a Buffer<T>, a raw view, or a std::span of host memory (on CPU devices; on GPUs in
    // LaunchMode::staged). Values convert without narrowing.
    // Cost: one driver call. If an earlier operation used a buffer that the CPU may view and this launch does not use
    // it, one pooled event is recorded before the launch.
    // Errors: in_use (a conflicting host view or native scope is open), not_accessible, wrong_device and unverified
    // (see LaunchMode),
    // invalid_argument (a number that its parameter cannot hold; an extent with a negative number, or beyond
    // largest_extent(), refused alike on every device), no_gpu_code, invalid_handle (an empty buffer),
    // capture_error (LaunchMode::verify or staging while a capture is open), timed_out (verify, staging), not_ordered
    // (OrderCheck::refuse; also for copies, fills and graphs), device_lost. A refused launch changes nothing.
    template <class Space, class... P, class... A>
    Result<LaunchReport> launch(const Kernel<void(Space, P...)>& kernel,
                                typename KernelTraits<void(Space, P...)>::ExtentType extent, A&&... arguments) {
        using Check = detail::CheckArguments<void(Space, P...), A...>;
        if constexpr (Check::value) {
            return launch(LaunchOptions{}, kernel, extent, std::forward<A>(arguments)...);
        } else {
            return detail::refuse_launch<Result<LaunchReport>, Check::found.mistake, Check::found.argument>();
        }
    }
    // The same with a launch mode for this launch alone (L10).
    template <class Space, class... P, class... A>
    Result<LaunchReport> launch(const LaunchOptions& options, const Kernel<void(Space, P...)>& kernel,
                                typename KernelTraits<void(Space, P...)>::ExtentType extent, A&&... arguments) {
        using Traits = KernelTraits<void(Space, P...)>;
        using Check = detail::CheckArguments<void(Space, P...), A...>;
        if constexpr (Check::value) {
            const Extent items = Traits::extent(extent);
            if constexpr ((detail::is_buffer_or_value<P, A> && ...)) {
                detail::BufferLaunch<P...> launch(arguments...);
                Result<LaunchReport> report = LaunchReport{};
                if (launch.fits && detail::is_ordinary(Traits::rank, items) &&
                    launch_buffers(options, kernel.info(), items, launch.pack, launch.buffers.data(), report)) {
                    return report;
                }
            }
            return launch_described<Space, P...>(options, kernel.info(), items, arguments...);
        } else {
            return detail::refuse_launch<Result<LaunchReport>, Check::found.mistake, Check::found.argument>();
        }
    }
    // These do not compile, and say why in one sentence: something else than a kernel, and a kernel without its extent.
    template <class K, class... A>
    requires(detail::is_no_kernel<K>) Result<LaunchReport> launch(const K&, detail::AnyExtent, A&&...) {
        return detail::refuse_kernel<Result<LaunchReport>, K>();
    }
    template <class K, class... A>
    requires(detail::is_no_kernel<K>) Result<LaunchReport> launch(const LaunchOptions&, const K&, detail::AnyExtent,
                                                                  A&&...) {
        return detail::refuse_kernel<Result<LaunchReport>, K>();
    }
    template <class Space, class... P, class E, class... A>
    requires(!std::is_convertible_v<E, typename KernelTraits<void(Space, P...)>::ExtentType>)
        Result<LaunchReport> launch(const Kernel<void(Space, P...)>&, E&&, A&&...) {
        return detail::refuse_extent<Result<LaunchReport>, typename KernelTraits<void(Space, P...)>::ExtentType, E>();
    }
    // Reports what launch() would do with these arguments, each and as a whole. Launches, waits for and changes
    // nothing. Like launch(), asks the driver about an address that the runtime does not know.
    template <class Space, class... P, class... A>
    LaunchExplanation explain(const LaunchOptions& options, const Kernel<void(Space, P...)>& kernel,
                              typename KernelTraits<void(Space, P...)>::ExtentType extent, A&&... arguments) const {
        using Traits = KernelTraits<void(Space, P...)>;
        using Check = detail::CheckArguments<void(Space, P...), A...>;
        if constexpr (Check::value) {
            const std::array<detail::LaunchArgument, sizeof...(P)> described{
                detail::describe_argument<P>(arguments)...};
            return explain_described(options, kernel.info(), Traits::extent(extent), described.data(),
                                     described.size());
        } else {
            return detail::refuse_launch<LaunchExplanation, Check::found.mistake, Check::found.argument>();
        }
    }
    template <class Space, class... P, class... A>
    LaunchExplanation explain(const Kernel<void(Space, P...)>& kernel,
                              typename KernelTraits<void(Space, P...)>::ExtentType extent, A&&... arguments) const {
        return explain(LaunchOptions{}, kernel, extent, std::forward<A>(arguments)...);
    }
    // The same for a kernel of a ready-made module (module.hpp): launch(kernel, {.grid = {blocks}, .block = {threads}},
    // arguments...). Further errors, before the driver is called: invalid_argument (a shape beyond the limits of the
    // device or the kernel), unsupported (a cluster where the device or driver has none), wrong_device (a module of
    // another device), invalid_handle (the module was released).
    template <class Signature, class... A>
    Result<LaunchReport> launch(const ModuleKernel<Signature>& kernel,
                                const typename detail::ModuleTraits<Signature>::Shape& shape, A&&... arguments);
    template <class Signature, class... A>
    Result<LaunchReport> launch(const LaunchOptions& options, const ModuleKernel<Signature>& kernel,
                                const typename detail::ModuleTraits<Signature>::Shape& shape, A&&... arguments);
    template <class Signature, class... A>
    LaunchExplanation explain(const LaunchOptions& options, const ModuleKernel<Signature>& kernel,
                              const typename detail::ModuleTraits<Signature>::Shape& shape, A&&... arguments) const;
    template <class K, class... A>
    requires(detail::is_no_kernel<K>) LaunchExplanation explain(const K&, detail::AnyExtent, A&&...)
    const { return detail::refuse_kernel<LaunchExplanation, K>(); }

    // Allocates pool memory in the order of this stream, without waiting. This stream may use it at once; others are
    // made to wait for the allocation before their first use. When released, it is freed behind the work that uses it,
    // without waiting; the device may keep it for the next allocation on that stream (Device::cache_usage()). Its
    // content is then that of its last owner.
    // Errors: as Device::allocate(); unsupported where the device has no pools.
    template <class T>
    Result<Buffer<T>> allocate(std::size_t count) {
        return typed<T>(allocate_bytes(nullptr, count, sizeof(T), alignof(T)));
    }
    // Allocates from this allocator. If it is not that of a MemoryPool, the memory is ready when the call returns.
    template <class T>
    Result<Buffer<T>> allocate(std::size_t count, const Allocator& allocator) {
        return typed<T>(allocate_bytes(&allocator, count, sizeof(T), alignof(T)));
    }

    // Copies run in the order of this stream, whichever device it belongs to. A copy between devices is ordered on both
    // devices: after the earlier uses of either buffer there, and before the later ones. The host waits only where
    // pageable memory takes part (see CopyPath). Offsets and counts are in elements; a copy of no elements does
    // nothing.
    // Errors, before anything has changed: invalid_argument (a box that leaves its side, which is named; overlapping
    // sides; sizes that differ), invalid_handle (an empty buffer), wrong_device (a buffer of another runtime), in_use
    // (a conflicting host view is open), unsupported, capture_error, device_lost. After a driver error, part of the
    // destination may have been written.
    template <class T>
    Result<void> copy(TypedBuffer<T>& to, const TypedBuffer<T>& from) {  // the whole buffer
        return copy_whole(to.state(), from.state(), sizeof(T));
    }
    template <class T>
    Result<void> copy(TypedBuffer<T>& to, std::size_t to_offset, const TypedBuffer<T>& from, std::size_t from_offset,
                      std::size_t count) {
        return copy_region(to, {to_offset, 0, 0}, from, {from_offset, 0, 0}, {count, 1, 1});
    }
    // Copies a rectangle or a box. Both sides may lie in one buffer if they do not overlap.
    template <class T>
    Result<void> copy_region(TypedBuffer<T>& to, const CopyLayout& to_layout, const TypedBuffer<T>& from,
                             const CopyLayout& from_layout, const CopyBox& box) {
        return copy_request({{&to.state(), 0, 0, to_layout}, {&from.state(), 0, 0, from_layout}, box, sizeof(T)});
    }
    // Copies from and to host memory of the caller. Page-locked memory (pinned or registered, by the runtime or by
    // other code) is copied asynchronously: it must stay valid, and a source unchanged, until the stream has completed
    // the copy. Of other memory, the source has been read, or the destination written, when the call returns.
    template <class T>
    Result<void> copy_from_host(TypedBuffer<T>& to, std::span<const std::type_identity_t<T>> from,
                                std::size_t to_offset = 0) {
        return copy_region_from_host(to, {to_offset, 0, 0}, from, {}, {from.size(), 1, 1});
    }
    template <class T>
    Result<void> copy_to_host(std::span<std::type_identity_t<T>> to, const TypedBuffer<T>& from,
                              std::size_t from_offset = 0) {
        return copy_region_to_host(to, {}, from, {from_offset, 0, 0}, {to.size(), 1, 1});
    }
    template <class T>
    Result<void> copy_region_from_host(TypedBuffer<T>& to, const CopyLayout& to_layout,
                                       std::span<const std::type_identity_t<T>> from, const CopyLayout& from_layout,
                                       const CopyBox& box) {
        return copy_request(
            {{&to.state(), 0, 0, to_layout}, detail::end_of(from.data(), from.size(), from_layout), box, sizeof(T)});
    }
    template <class T>
    Result<void> copy_region_to_host(std::span<std::type_identity_t<T>> to, const CopyLayout& to_layout,
                                     const TypedBuffer<T>& from, const CopyLayout& from_layout, const CopyBox& box) {
        return copy_request(
            {detail::end_of(to.data(), to.size(), to_layout), {&from.state(), 0, 0, from_layout}, box, sizeof(T)});
    }
    // Reports how this stream would copy between these buffers, and why. No driver call.
    CopyExplanation explain_copy(const BufferBase& to, const BufferBase& from) const;

    // Sets elements. On a device, any box takes values of 1, 2 or 4 bytes, and values that repeat such a pattern;
    // values of 8 and 16 bytes need rows without gaps; others are unsupported. Host memory takes any value.
    template <class T>
    Result<void> fill(TypedBuffer<T>& to, const std::type_identity_t<T>& value) {
        return fill_region(to, {}, {to.size(), 1, 1}, value);
    }
    template <class T>
    Result<void> fill_region(TypedBuffer<T>& to, const CopyLayout& layout, const CopyBox& box,
                             const std::type_identity_t<T>& value) {
        return fill_request({to.state(), layout, box, sizeof(T), &value});
    }
    // Sets every byte.
    template <class T>
    Result<void> fill_bytes(TypedBuffer<T>& to, std::uint8_t value) {
        return fill_request({to.state(), {}, {to.size_bytes(), 1, 1}, 1, &value});
    }

    // Begins a capture: from now on the stream records what it is given, instead of running it; see graph.hpp.
    // Errors: capture_error (it is already captured), in_use (another thread has a staged launch or a copy in chunks
    // under way on it), device_lost.
    Result<Capture> begin_capture();
    // Launches a graph: one driver call. Ordered like any operation; claims the graph's buffers as a kernel claims its
    // arguments.
    // Errors: in_use (a conflicting host view is open), wrong_device, device_lost, capture_error.
    Result<void> launch(const GraphInstance& instance);

    // A hint, in the order of this stream, about where the buffer is used next. Attaches managed memory where CPU and
    // GPU use it in turn (attribute 89 = 0).
    // Errors: invalid_handle, wrong_device (a buffer of another runtime), invalid_argument (a NUMA node that does not
    // exist), device_lost. A hint that cannot be followed is no error: the report says so, and it is counted.
    Result<HintReport> prefetch(const BufferBase& buffer, HintPlace place = HintPlace::on_device());
    // The same about several buffers, with a report for each: one driver call for those that the driver moves, where it
    // has cuMemPrefetchBatchAsync (CUDA 13), else one each. Also invalid_handle: a null pointer.
    Result<std::vector<HintReport>> prefetch(std::span<const BufferBase* const> buffers,
                                             HintPlace place = HintPlace::on_device());
    // A hint, in the order of this stream, that the content is not needed any more: it is indeterminate until it is
    // written, and the driver moves none of it. With `next`, the buffer is also brought there, without its content.
    // Claims the buffer as a kernel that writes it. Where the driver has no such call (before CUDA 13), nothing
    // changes. Errors and report as prefetch().
    Result<HintReport> discard(const BufferBase& buffer, std::optional<HintPlace> next = std::nullopt);
    Result<std::vector<HintReport>> discard(std::span<const BufferBase* const> buffers,
                                            std::optional<HintPlace> next = std::nullopt);

    // Calls function() on the CPU, after the stream's earlier work and before its later work: on a thread of the
    // driver, or, on the CPU device, at once. F must be noexcept to call. Calls of this library from within it are
    // refused (not_permitted); buffers and streams that it drops are released later.
    // The runtime destroys the function after it has run: in a later wait, or when the device closes. If the device was
    // lost, it may be destroyed without having run, so that nothing that has to happen may depend on it (S20).
    // In a capture, it is called at every launch, by one thread per instance, and destroyed with the graph. A graph of
    // the CPU device calls it within the launch, which holds the stream and the instance: there it must not wait for a
    // thread that uses either.
    // Errors: device_lost, capture_error (other code captures the stream).
    template <class F>
    Result<void> call_on_host(F function) {
        if (Result<void> fine = may_call_on_host(); !fine) return fine;
        return call_erased(std::make_shared<detail::HostFunctionOf<F>>(std::move(function)));
    }

    // Gives the stream work of other code on buffers: a library's, or a kernel of the user's own. native_work.hpp
    // defines both, and says what they do.
    template <class F, class... U>
    Result<std::uint64_t> enqueue_native(const char* name, F&& work, U... uses);
    template <class... U>
    Result<NativeScope<U...>> open_native_scope(const char* name, U... uses);

    // The next five functions do not block the host (S10). On a captured stream, an event of the capture is recorded,
    // and a stream that waits for it joins the capture; see Capture.
    // Records a fresh event of the device's pool: one driver call, except for the first events.
    // Errors: unsupported and invalid_argument (EventOptions), capture_error, device_lost.
    Result<Event> record(EventOptions options = {});
    Result<void> record(Event& event);        // wrong_device: the event belongs to another device
    Result<void> wait(const Event& event);    // later work waits for the event's last record; may cross devices
    Result<void> wait_stream(Stream& other);  // records on `other`, waits here
    // Later work waits for a CUevent of other code, of any device: for its last record, if there is one. The event must
    // exist, and must not have been recorded in a capture. On the CPU device the host waits, within the runtime's
    // timeout; nullptr is a CPU device's event there, and has happened.
    // Errors: invalid_handle (nullptr on a GPU), capture_error (the stream is captured: let work that enqueue_native()
    // gives it wait), unsupported (the CPU device without a GPU), timed_out, device_lost.
    Result<void> wait_native(void* cu_event);
    // Whether all work of this stream has finished, also that of other code. Does not wait.
    Result<bool> finished();
    // Waits until it has (S9). Errors: timed_out, not_ready (Wait::never()); of both functions: capture_error (the
    // stream is captured), in_use (its kernel is a service that runs), device_lost.
    Result<void> synchronize(Wait wait = {});

    // Whether the operation at this position (LaunchReport::position) is known to have completed, by any view, wait,
    // event or poll on any thread; false while that is not known. One load, no driver call.
    // Only operations given through the runtime have positions. Work that other code gave to the native handle has
    // none, and mark() and poll() do not cover it.
    bool completed(std::uint64_t position) const noexcept;
    // Asks the driver, and returns the position up to which all operations have completed. Does not wait. One query if
    // nothing has completed since the last one, about 2 log2(n) if n marks were passed. The position advances from mark
    // to mark, and to the end when the stream is idle: completed operations between two marks are not reported. Errors:
    // device_lost.
    Result<std::uint64_t> poll();
    // Records a mark (a pooled event) behind all operations of the stream, and returns its position. No driver call if
    // that position is marked already. A stream keeps at most 64 marks, and then thins out the oldest. Errors:
    // capture_error, device_lost.
    Result<std::uint64_t> mark();

    std::uint64_t id() const noexcept;  // never reused, unlike a CUstream (S17)
    // The driver's priority: −1 high, 0 low (S13); 0 where the device has no priorities. External streams may have
    // other values.
    Result<int> priority() const;
    bool external() const noexcept;  // made by other code: Device::wrap_stream
    // The CUstream, for use by other code; valid while a Stream names it. Errors: unsupported (the CPU device),
    // device_lost.
    Result<void*> native_handle() const;
    // The mode of later launches on this stream (L10).
    void set_launch_mode(LaunchMode mode) noexcept;
    LaunchMode launch_mode() const noexcept;

    const std::shared_ptr<detail::StreamState>& state() const noexcept { return state_; }

private:
    Result<void> may_call_on_host();  // before the function is copied to the heap
    Result<void> call_erased(std::shared_ptr<detail::HostFunction> function);
    // Out of line: most launches do not need it, and code that does not run stays out of launch().
    template <class Space, class... P, class... A>
    [[gnu::noinline]] Result<LaunchReport> launch_described(const LaunchOptions& options, const KernelInfo& kernel,
                                                            const Extent& extent, A&... arguments) {
        return detail::with_packed<P...>(
            [&](void* pack, const detail::LaunchArgument* described, std::size_t count) {
                return launch_packed(options, kernel, extent, pack, described, count);
            },
            arguments...);
    }
    // Expects an ordinary extent. Returns false if it has done nothing: launch_packed() then does the launch.
    bool launch_buffers(const LaunchOptions& options, const KernelInfo& kernel, const Extent& extent, void* pack,
                        const std::shared_ptr<detail::BufferState>* const* buffers, Result<LaunchReport>& report);
    Result<LaunchReport> launch_packed(const LaunchOptions& options, const KernelInfo& kernel, const Extent& extent,
                                       void* pack, const detail::LaunchArgument* arguments, std::size_t count);
    LaunchExplanation explain_described(const LaunchOptions& options, const KernelInfo& kernel, const Extent& extent,
                                        const detail::LaunchArgument* arguments, std::size_t count) const;
    Result<std::shared_ptr<detail::BufferState>> allocate_bytes(const Allocator* allocator, std::size_t count,
                                                                std::size_t element_bytes, std::size_t alignment);
    template <class T>
    static Result<Buffer<T>> typed(Result<std::shared_ptr<detail::BufferState>> state) {
        if (!state) return std::move(state).error();
        return Buffer<T>(std::move(state).value());
    }
    Result<void> copy_whole(const std::shared_ptr<detail::BufferState>& to,
                            const std::shared_ptr<detail::BufferState>& from, std::size_t element_bytes);
    Result<void> copy_request(const detail::CopyRequest& request);
    Result<void> fill_request(const detail::FillRequest& request);
    std::shared_ptr<detail::StreamState> state_;
};

namespace detail {
ISTHMUS_API Result<Stream> stream_of_destination(const std::shared_ptr<BufferState>& to);
}

// Copies on the current stream of the device that made the destination (K22), or on `stream`, whichever device that
// belongs to.
template <class T>
Result<void> copy(TypedBuffer<T>& to, const TypedBuffer<T>& from) {
    Result<Stream> stream = detail::stream_of_destination(to.state());
    return stream ? stream->copy(to, from) : std::move(stream).error();
}
template <class T>
Result<void> copy(TypedBuffer<T>& to, const TypedBuffer<T>& from, Stream& stream) {
    return stream.copy(to, from);
}

}  // namespace v0
}  // namespace isthmus
