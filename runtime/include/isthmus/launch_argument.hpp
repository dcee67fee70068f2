// How what a caller passes becomes what a kernel takes: the runtime's end of a launch's compile-time checks.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace isthmus::inline v0::detail {

template <class T>
struct ArgumentElement<Buffer<T>> {
    using type = T;
};

template <class T, std::size_t extent>
struct ArgumentElement<std::span<T, extent>> {
    using type = T;
};

// One argument as the runtime sees it, in the kernel's order.
struct LaunchArgument {
    const std::shared_ptr<BufferState>* buffer = nullptr;  // nullptr: a value or a raw view
    const void* raw = nullptr;                             // of a raw view or a span
    bool is_view = false;
    bool fits = true;             // of a value: the parameter holds this very number
    bool is_span = false;         // host memory by its type (A17)
    std::uint64_t raw_count = 0;  // elements of a raw view or a span
};

template <class B>
inline constexpr bool is_buffer = false;
template <class T>
inline constexpr bool is_buffer<Buffer<T>> = true;
template <class A>
inline constexpr bool is_span = false;
template <class T, std::size_t extent>
inline constexpr bool is_span<std::span<T, extent>> = true;

// The parameter's value. A buffer's address is filled in by the runtime, which knows the launch device.
template <class P, class A>
P argument_value(const A& argument) {
    if constexpr (is_buffer<A>) {
        return P{nullptr, argument.size()};
    } else if constexpr (is_span<A>) {
        return P{argument.data(), argument.size()};
    } else if constexpr (Parameter<P>::is_view) {
        return argument;
    } else {
        return static_cast<P>(argument);
    }
}

template <class P, class A>
LaunchArgument describe_argument(A& argument) {
    if constexpr (is_buffer<std::remove_const_t<A>>) {
        static_assert(!std::is_const_v<A> || std::is_const_v<typename Parameter<P>::Element>,
                      "isthmus: the kernel writes this argument, but the buffer is const");
        return {.buffer = &argument.state(), .is_view = true};
    } else if constexpr (is_span<std::remove_const_t<A>>) {
        return {.raw = argument.data(), .is_view = true, .is_span = true, .raw_count = argument.size()};
    } else if constexpr (Parameter<P>::is_view) {
        return {.raw = argument.data, .is_view = true, .raw_count = argument.count};
    } else {
        return {.fits = value_fits<P>(argument)};
    }
}

}  // namespace isthmus::inline v0::detail
