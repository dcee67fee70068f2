// How what a caller passes becomes what a kernel takes: the compile-time half of a launch's checks.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/kernel.hpp>

#include <cstdint>
#include <memory>
#include <type_traits>

namespace isthmus::inline v0::detail {

// One argument as the runtime sees it, in the kernel's order.
struct LaunchArgument {
    const std::shared_ptr<BufferState>* buffer = nullptr;  // nullptr: a value or a raw view
    const void* raw = nullptr;                             // of a raw view
    bool is_view = false;
};

template <class B>
inline constexpr bool is_buffer = false;
template <class T>
inline constexpr bool is_buffer<Buffer<T>> = true;

// View<T>, View<const T> and Out<T>: from a buffer of T, or from a view that the caller made of a raw pointer.
template <class V, class T, bool writes>
struct ViewArgument {
    template <class A>
    static V of(A&& argument) {
        using Plain = std::remove_cvref_t<A>;
        if constexpr (is_buffer<Plain>) {
            static_assert(std::is_same_v<typename Plain::element_type, std::remove_const_t<T>>,
                          "the buffer's element type is not the kernel's");
            static_assert(!writes || !std::is_const_v<std::remove_reference_t<A>>,
                          "the kernel writes this argument, but the buffer is const");
            return V{nullptr, argument.size()};  // the runtime fills in the launch device's address
        } else {
            static_assert(std::is_convertible_v<A, V>, "pass a Buffer, or a View made of a device pointer and a size");
            return argument;
        }
    }
    template <class A>
    static LaunchArgument describe(A&& argument) {
        if constexpr (is_buffer<std::remove_cvref_t<A>>) {
            return {&argument.state(), nullptr, true};
        } else {
            return {nullptr, V(argument).data, true};
        }
    }
};

template <class P>
struct ArgumentValue {
    template <class A>
    static P of(A&& argument) {
        static_assert(!is_buffer<std::remove_cvref_t<A>>, "the kernel takes a value here, not a buffer");
        static_assert(requires { P{static_cast<A&&>(argument)}; }, "the value would be narrowed or has another type");
        return P{static_cast<A&&>(argument)};
    }
    template <class A>
    static LaunchArgument describe(A&&) {
        return {};
    }
};
template <class T>
struct ArgumentValue<View<T>> : ViewArgument<View<T>, T, !std::is_const_v<T>> {};
template <class T>
struct ArgumentValue<Out<T>> : ViewArgument<Out<T>, T, true> {};

}  // namespace isthmus::inline v0::detail
