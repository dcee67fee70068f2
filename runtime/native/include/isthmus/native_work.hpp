// SPDX-License-Identifier: Apache-2.0
// Work of other code on buffers: kernels and libraries (NPP, cuBLAS, TensorRT, …) that take a CUstream and pointers.
// The buffers are claimed, uploaded and fenced as for a kernel with the same uses (docs/native-work.md).
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/detail/native_call.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/stream.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {

// What other code does with a buffer or a part; T is const where it only reads. Names the buffer, and does not hold it:
// for use in the call that it is made in. writes(): every element is written, and what was there need not be kept;
// otherwise updates().
template <class T>
struct NativeUse {
    using element_type = T;
    detail::LaunchArgument argument;
    ArgumentUse use;
};
template <class T>
NativeUse<const T> reads(const TypedBuffer<T>& buffer) noexcept {
    return {detail::argument_of(buffer), ArgumentUse::read};
}
template <class T>
NativeUse<const T> reads(const BufferPart<T>& part) noexcept {
    return {detail::argument_of(part), ArgumentUse::read};
}
template <class T>
NativeUse<T> writes(TypedBuffer<T>& buffer) noexcept {
    return {detail::argument_of(buffer), ArgumentUse::write};
}
template <class T>
requires(!std::is_const_v<T>) NativeUse<T> writes(const BufferPart<T>& part)
noexcept {
    return {detail::argument_of(part), ArgumentUse::write};
}
template <class T>
NativeUse<T> updates(TypedBuffer<T>& buffer) noexcept {
    return {detail::argument_of(buffer), ArgumentUse::read_write};
}
template <class T>
requires(!std::is_const_v<T>) NativeUse<T> updates(const BufferPart<T>& part)
noexcept {
    return {detail::argument_of(part), ArgumentUse::read_write};
}

// Calls work(void* cu_stream, pointers…) once, on this thread, and returns the position of what it gave the stream. It
// gives its work to that stream, or orders it there, and returns: nothing, 0, a CUresult or cudaError_t (int counts as
// such), another library's enumeration, or Result<void>. The device's primary context is current, in the caller's
// capture mode; the caller's context is restored. `name` has static storage: later messages use it.
// `work` must not call this library (not_permitted), and must not wait for the stream or for a thread that uses it: the
// stream is locked meanwhile. An exception that leaves it is a failure, and is thrown on from here.
// In a capture the driver's calls of `work` become nodes; if it fails there, the capture makes no graph. On the CPU
// device, cu_stream is nullptr, the pointers are the host's, and all is done when the call returns; in a capture there
// a copy of `work` is called at each launch of the graph instead.
// Errors before `work` is called, with which nothing has changed: as Stream::launch(). Errors of `work`: driver_error
// with its code as driver_code(), device_lost (a code from which the driver does not recover: the device is lost for
// this runtime, too), the code of its Result, capture_error (in a capture). After such an error, what it was to write
// has no defined content, and later uses wait for what it gave the stream before it failed.
// Cost: the driver calls of a launch with these uses, without the launch, and two for the context, or three if another
// one is current.
template <class F, class... U>
Result<std::uint64_t> Stream::enqueue_native(const char* name, F&& work, U... uses) {
    if constexpr (std::is_function_v<std::remove_reference_t<F>>) {
        return enqueue_native(name, std::addressof(work), uses...);
    } else {
        detail::NativeCall<std::remove_reference_t<F>, typename U::element_type...> call(name, work, uses...);
        return call.give([&](auto& request) { return detail::enqueue_native(*this, request); });
    }
}

// An open claim on buffers for other code, where one call is not enough: made by Stream::open_native_scope(name,
// uses…), which claims, uploads and attaches as a kernel with these uses. While it is open, host views, launches,
// copies, fills, graph launches, other scopes and releases that conflict with its uses are Code::in_use on every
// thread; memory that belongs to one side at a time (staged; managed where attribute 89 is 0) is its alone. The current
// context is the caller's, before and after: a copy over two handles of mapped memory needs one (cuMemcpyAsync answers
// 1 without, H200). Give the work to stream() before close(): later uses wait for what the stream has by then. Movable.
// Used by one thread at a time; any thread may close or destroy it. Holds the memory, also of a buffer that goes out of
// scope. Its stream cannot be captured meanwhile. Errors of opening: as Stream::launch(), and capture_error (the stream
// is captured: use enqueue_native()), unsupported (LaunchMode::staged would have to copy a buffer).
template <class... U>
class [[nodiscard]] NativeScope {
public:
    NativeScope(detail::OpenedNative opened, const std::array<detail::NativeView, sizeof...(U)>& views) noexcept
        : opened_(std::move(opened)), views_(views) {}

    // The CUstream; nullptr on the CPU device. Of use while the scope is open, like the pointers.
    void* stream() const noexcept { return opened_.stream(); }
    // The pointer of use number `at`; to const elements for reads().
    template <std::size_t at>
    auto* get() const noexcept {
        using T = typename std::tuple_element_t<at, std::tuple<U...>>::element_type;
        return static_cast<T*>(views_[at].data);
    }
    // Ends the claim: records an event behind the stream's work, which views and other streams wait for. Returns its
    // position; again, if it was closed before. It is closed also after an error: capture_error (other code captures
    // the external stream), device_lost, the driver's; except timed_out (another thread is blocked in the driver) and
    // not_permitted (within work of other code or a host function, where the destructor closes it later).
    // invalid_handle: moved from.
    Result<std::uint64_t> close() { return opened_.close(); }

private:
    detail::OpenedNative opened_;
    std::array<detail::NativeView, sizeof...(U)> views_;
};

template <class... U>
Result<NativeScope<U...>> Stream::open_native_scope(const char* name, U... uses) {
    detail::NativeArguments<typename U::element_type...> arguments(uses...);
    detail::NativeRequest request = arguments.request(name);
    Result<detail::OpenedNative> opened = detail::open_native_scope(*this, request);
    if (!opened) return std::move(opened).error();
    return NativeScope<U...>(std::move(opened).value(), arguments.views);
}

}  // namespace v0
}  // namespace isthmus
