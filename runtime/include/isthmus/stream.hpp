// Stream: work on one device in order. Launches, copies and fills return before the work is done (GPU) or when it is
// (CPU device).
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/allocator.hpp>
#include <isthmus/buffer.hpp>
#include <isthmus/event.hpp>
#include <isthmus/export.hpp>
#include <isthmus/graph.hpp>
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
    // device_lost. A refused launch changed nothing.
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
            typename Traits::Pack pack =
                detail::make_pack<P...>(detail::argument_value<P, std::remove_cvref_t<A>>(arguments)...);
            const std::array<detail::LaunchArgument, sizeof...(P)> described{
                detail::describe_argument<P>(arguments)...};
            return launch_packed(options, kernel.info(), Traits::extent(extent), &pack, described.data(),
                                 described.size());
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

    // Orders a copy of the whole buffer; both have the same size. Errors as launch, and invalid_argument.
    template <class T>
    Result<void> copy(Buffer<T>& destination, const Buffer<T>& source) {
        return copy_bytes(destination.state(), source.state());
    }
    // Sets every byte.
    template <class T>
    Result<void> fill_bytes(Buffer<T>& destination, std::uint8_t value) {
        return fill(destination.state(), value);
    }

    // Records what this stream is given from now on, instead of running it; see graph.hpp.
    // Errors: unsupported (the CPU device), capture_error (a capture of this stream is open), device_lost.
    Result<Capture> begin_capture();
    // Launches a graph: one driver call, ordered like any operation; its buffers are claimed as a kernel's arguments
    // are. Errors: in_use (a conflicting host view), wrong_device, device_lost, capture_error.
    Result<void> launch(const GraphInstance& instance);

    Result<Event> record(bool timing = false);  // a fresh event (S10)
    Result<void> record(Event& event);          // the event is of this stream's device
    Result<void> wait(const Event& event);      // later work here waits; the host does not. May cross devices
    Result<void> wait_stream(Stream& other);    // record there, wait here
    Result<bool> finished();
    Result<void> synchronize(Wait wait = {});

    std::uint64_t id() const noexcept;  // never reused, unlike a driver's handle (S17)
    // The mode of launches on this stream from now on (L10).
    void set_launch_mode(LaunchMode mode) noexcept;
    LaunchMode launch_mode() const noexcept;

    const std::shared_ptr<detail::StreamState>& state() const noexcept { return state_; }

private:
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
    Result<void> copy_bytes(const std::shared_ptr<detail::BufferState>& destination,
                            const std::shared_ptr<detail::BufferState>& source);
    Result<void> fill(const std::shared_ptr<detail::BufferState>& destination, std::uint8_t value);
    std::shared_ptr<detail::StreamState> state_;
};

}  // namespace isthmus::inline v0
