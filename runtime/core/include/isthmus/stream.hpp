// Stream: work on one device in order. Launches, copies and fills return before the work is done (GPU) or when it is
// (CPU device).
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/allocator.hpp>
#include <isthmus/buffer.hpp>
#include <isthmus/copy.hpp>
#include <isthmus/event.hpp>
#include <isthmus/export.hpp>
#include <isthmus/graph.hpp>
#include <isthmus/hints.hpp>
#include <isthmus/host_function.hpp>
#include <isthmus/kernel.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/launch_options.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace isthmus::inline v0 {

namespace detail {
struct StreamState;
struct DeviceState;
}  // namespace detail

// Made by Device::create_stream; every device has one from the start. A handle: copies name the same stream, and one
// that was moved from still does. Thread-safe. Destroying the last waits for nothing: its work goes on, and buffers
// know what they still wait for.
class ISTHMUS_API Stream {
public:
    explicit Stream(std::shared_ptr<detail::StreamState> state);
    Stream(const Stream&) = default;  // no move: a stream is never empty
    Stream& operator=(const Stream&) = default;
    ~Stream() = default;

    // Runs the kernel over the index space. Arguments are checked at compile time: Buffer<T> (or a raw view, or a
    // std::span of host memory: on CPU devices, and on GPUs in LaunchMode::staged) where the kernel has View<T>,
    // View<const T> or Out<T>, values without narrowing. One driver call; where the CPU may view an argument of the
    // previous operations that this one does not use, one pooled event is recorded before it.
    // Errors: in_use (a conflicting host view is open), not_accessible, wrong_device and unverified (see LaunchMode),
    // invalid_argument (a number that its parameter does not hold), no_gpu_code, invalid_handle (an empty buffer),
    // capture_error (LaunchMode::verify, or staging, while a capture is open), timed_out (verify, staging),
    // not_ordered (OrderCheck::refuse; copies, fills and graphs, too), device_lost. A refused launch changed nothing.
    template <class Space, class... P, class... A>
    Result<LaunchReport> launch(const Kernel<void(Space, P...)>& kernel,
                                typename KernelTraits<void(Space, P...)>::ExtentType extent, A&&... arguments) {
        return launch(LaunchOptions{}, kernel, extent, std::forward<A>(arguments)...);
    }
    // As above, with a mode for this launch alone (L10).
    template <class Space, class... P, class... A>
    Result<LaunchReport> launch(const LaunchOptions& options, const Kernel<void(Space, P...)>& kernel,
                                typename KernelTraits<void(Space, P...)>::ExtentType extent, A&&... arguments) {
        using Traits = KernelTraits<void(Space, P...)>;
        if constexpr (detail::CheckArguments<void(Space, P...), A...>::value) {
            const Extent items = Traits::extent(extent);
            if constexpr ((detail::is_buffer_or_value<P, A> && ...)) {
                detail::BufferLaunch<P...> launch(arguments...);
                Result<LaunchReport> report = LaunchReport{};
                if (launch.fits &&
                    launch_buffers(options, kernel.info(), items, launch.pack, launch.buffers.data(), report)) {
                    return report;
                }
            }
            return launch_described<Space, P...>(options, kernel.info(), items, arguments...);
        }
    }
    // What launch() would do with these arguments: per argument and as a whole. Launches nothing, waits for nothing
    // and changes nothing; an address that nobody knows is asked of the driver, as the launch would.
    template <class Space, class... P, class... A>
    LaunchExplanation explain(const LaunchOptions& options, const Kernel<void(Space, P...)>& kernel,
                              typename KernelTraits<void(Space, P...)>::ExtentType extent, A&&... arguments) const {
        using Traits = KernelTraits<void(Space, P...)>;
        if constexpr (detail::CheckArguments<void(Space, P...), A...>::value) {
            const std::array<detail::LaunchArgument, sizeof...(P)> described{
                detail::describe_argument<P>(arguments)...};
            return explain_described(options, kernel.info(), Traits::extent(extent), described.data(),
                                     described.size());
        }
    }
    template <class Space, class... P, class... A>
    LaunchExplanation explain(const Kernel<void(Space, P...)>& kernel,
                              typename KernelTraits<void(Space, P...)>::ExtentType extent, A&&... arguments) const {
        return explain(LaunchOptions{}, kernel, extent, std::forward<A>(arguments)...);
    }

    // Pool memory in the order of this stream: nothing is waited for, the stream may use it at once, and other streams
    // are made to wait for the allocation before their first use of the buffer. Released, it is freed behind the work
    // that uses it, without waiting. Errors as Device::allocate; unsupported where the device has no pools.
    template <class T>
    Result<Buffer<T>> allocate(std::size_t count) {
        return typed<T>(allocate_bytes(nullptr, count, sizeof(T), alignof(T)));
    }
    // … from this allocator: a MemoryPool's, or any other, whose memory is then there at return.
    template <class T>
    Result<Buffer<T>> allocate(std::size_t count, const Allocator& allocator) {
        return typed<T>(allocate_bytes(&allocator, count, sizeof(T), alignof(T)));
    }

    // Copies are ordered on this stream, whichever device it belongs to; between devices, what used either buffer
    // there comes before, and what follows there behind. The host waits only where pageable memory takes part
    // (CopyPath says how). Numbers are elements. No elements: nothing is done. Errors, before anything has changed:
    // invalid_argument (a box that leaves its side, which is named, overlapping sides, sizes that differ),
    // invalid_handle (an empty buffer), wrong_device (another runtime's), in_use (a conflicting host view is open),
    // unsupported, capture_error, device_lost. After a driver's error part of the destination may have been written.
    template <class T>
    Result<void> copy(TypedBuffer<T>& to, const TypedBuffer<T>& from) {  // all of it
        return copy_whole(to.state(), from.state(), sizeof(T));
    }
    template <class T>
    Result<void> copy(TypedBuffer<T>& to, std::size_t to_offset, const TypedBuffer<T>& from, std::size_t from_offset,
                      std::size_t count) {
        return copy_region(to, {to_offset, 0, 0}, from, {from_offset, 0, 0}, {count, 1, 1});
    }
    // A rectangle or a box; both sides may lie in one buffer where they do not overlap.
    template <class T>
    Result<void> copy_region(TypedBuffer<T>& to, const CopyLayout& to_layout, const TypedBuffer<T>& from,
                             const CopyLayout& from_layout, const CopyBox& box) {
        return copy_request({{&to.state(), 0, 0, to_layout}, {&from.state(), 0, 0, from_layout}, box, sizeof(T)});
    }
    // From and to memory of the caller's. Pinned or registered memory (the runtime's or anybody's) is copied
    // asynchronously: it has to live, and the source to stay as it is, until the stream has come there. Of any other
    // memory the source has been read, and the destination written, when the call returns.
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
    // How a copy between these would go from here, and why. No driver call.
    CopyExplanation explain_copy(const BufferBase& to, const BufferBase& from) const;

    // Sets elements. On a device patterns of 1, 2 and 4 bytes, and those that repeat one, in any box; of 8 and 16
    // bytes where rows follow each other without gaps; others: unsupported. Host memory takes any.
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

    // Records what this stream is given from now on, instead of running it; see graph.hpp.
    // Errors: capture_error (this stream is captured already), in_use (a staged launch or a copy in pieces is under way
    // here on another thread), device_lost.
    Result<Capture> begin_capture();
    // Launches a graph: one driver call, ordered like any operation; its buffers are claimed as a kernel's arguments
    // are. Errors: in_use (a conflicting host view), wrong_device, device_lost, capture_error.
    Result<void> launch(const GraphInstance& instance);

    // A hint, in the order of this stream: where the buffer is wanted next. Attaches managed memory where CPU and GPU
    // share it by phases (89=0). Errors: invalid_handle, wrong_device (another runtime's), invalid_argument (a node
    // that is not there), device_lost. What cannot be done is no error: the report says so, and it is counted.
    Result<HintReport> prefetch(const BufferBase& buffer, HintPlace place = HintPlace::on_device());

    // Calls function() on the CPU, behind what the stream was given and before what it is given next: on a thread of
    // the driver's, or, on the CPU device, at once. It must be noexcept. What it calls of this library is refused
    // (not_permitted), so that buffers and streams it lets go of end later. The runtime destroys it after it has run,
    // when somebody waits, or at the end of the device, or, where the device was lost, unrun: nothing that has to
    // happen may depend on it (S20). In a capture it is called at every launch, by one thread per instance, and
    // destroyed with the graph; a graph of the CPU device calls it within the launch, which keeps the stream and the
    // instance to itself: there it must not wait for a thread that uses either.
    // Errors: device_lost, capture_error (captured by code beside the runtime).
    template <class F>
    Result<void> call_on_host(F function) {
        return call_erased(std::make_shared<detail::HostFunctionOf<F>>(std::move(function)));
    }

    // None of these four blocks the host (S10). On a captured stream an event of the capture is recorded, and a stream
    // that waits for it joins: see Capture.
    // A fresh event: one driver call, but for the first of them. Errors: unsupported and invalid_argument
    // (EventOptions), capture_error, device_lost.
    Result<Event> record(EventOptions options = {});
    Result<void> record(Event& event);        // wrong_device: the event is of another device than the stream
    Result<void> wait(const Event& event);    // later work here waits for its last record. May cross devices
    Result<void> wait_stream(Stream& other);  // record there, wait here
    Result<bool> finished();
    Result<void> synchronize(Wait wait = {});

    // How far this stream has come, in positions (LaunchReport::position): of what it was given through the runtime;
    // what other code gave to its native handle has none, and marks and polls do not tell of it. What any view, wait,
    // event or poll saw of it counts, on any thread. One load, no driver call; what it does not know yet it denies.
    bool completed(std::uint64_t position) const noexcept;
    // Asks the driver and answers the position up to which all is done. The driver is asked once where nothing ended
    // since, about 2 log2(n) times where n marks were passed. Waits for nothing. Between marks it can tell less: the
    // position moves from mark to mark, or to the end when the stream is idle. Errors: device_lost.
    Result<std::uint64_t> poll();
    // Puts a mark (a pooled event) behind all that the stream was given; answers its position. No driver call where one
    // stands there. A stream keeps 64, then fewer of the oldest. Errors: capture_error, device_lost.
    Result<std::uint64_t> mark();

    std::uint64_t id() const noexcept;  // never reused, unlike a driver's handle (S17)
    // As the driver has it: −1 high, 0 low (S13); 0 where the device knows none. External ones may have others.
    Result<int> priority() const;
    bool external() const noexcept;  // made by other code: Device::wrap_stream
    // The CUstream, for other code to use; it lives as long as a Stream of it. Errors: unsupported (the CPU device),
    // device_lost.
    Result<void*> native_handle() const;
    // The mode of launches on this stream from now on (L10).
    void set_launch_mode(LaunchMode mode) noexcept;
    LaunchMode launch_mode() const noexcept;

    const std::shared_ptr<detail::StreamState>& state() const noexcept { return state_; }

private:
    Result<void> call_erased(std::shared_ptr<detail::HostFunction> function);
    // Apart from launch(), which most launches do not leave: what is not run stays out of the way.
    template <class Space, class... P, class... A>
    [[gnu::noinline]] Result<LaunchReport> launch_described(const LaunchOptions& options, const KernelInfo& kernel,
                                                            const Extent& extent, A&... arguments) {
        return detail::with_packed<P...>(
            [&](void* pack, const detail::LaunchArgument* described, std::size_t count) {
                return launch_packed(options, kernel, extent, pack, described, count);
            },
            arguments...);
    }
    // false: nothing was done, and launch_packed() is to do it.
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

// Without a stream: on the current stream of the device that made the destination (K22). With one: on that, whichever
// device it belongs to.
template <class T>
Result<void> copy(TypedBuffer<T>& to, const TypedBuffer<T>& from) {
    Result<Stream> stream = detail::stream_of_destination(to.state());
    return stream ? stream->copy(to, from) : std::move(stream).error();
}
template <class T>
Result<void> copy(TypedBuffer<T>& to, const TypedBuffer<T>& from, Stream& stream) {
    return stream.copy(to, from);
}

}  // namespace isthmus::inline v0
