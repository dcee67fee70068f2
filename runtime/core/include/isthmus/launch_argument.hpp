// SPDX-License-Identifier: Apache-2.0
// Converts what a caller passes into what a kernel takes: the runtime's part of a launch's compile-time checks.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/buffer_part.hpp>
#include <isthmus/kernel.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

template <class B>
requires(std::is_base_of_v<BufferBase, B>) struct ArgumentElement<B> {
    using type = typename B::element_type;
};
template <class B>
requires(std::is_base_of_v<BufferBase, B>) inline constexpr bool const_is_read_only<B> = true;

template <class T>
struct ArgumentElement<BufferPart<T>> {
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
    std::uint64_t raw_count = 0;                           // its elements; also those of a part
    std::size_t first_byte = 0;                            // of a part
    bool is_view = false;
    bool fits = true;      // of a value: the parameter can hold this number
    bool is_span = false;  // host memory by its type (A17)
    bool is_part = false;  // of `buffer`
};

template <class B>
inline constexpr bool is_buffer = std::is_base_of_v<BufferBase, B>;
template <class B>
inline constexpr bool is_part = false;
template <class T>
inline constexpr bool is_part<BufferPart<T>> = true;
template <class A>
inline constexpr bool is_span = false;
template <class T, std::size_t extent>
inline constexpr bool is_span<std::span<T, extent>> = true;
template <class B>
inline constexpr bool is_foreign = false;  // ForeignView, in descriptors.hpp

// The parameter's value. The runtime fills in a buffer's address, because it knows the launch device.
template <class P, class A>
P argument_value(const A& argument) {
    if constexpr (is_buffer<A> || is_part<A>) {
        return P{nullptr, argument.size()};
    } else if constexpr (is_span<A> || is_foreign<A>) {
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
        return {.buffer = &argument.state(), .is_view = true};
    } else if constexpr (is_part<std::remove_const_t<A>>) {
        return {.buffer = &argument.state(),
                .raw_count = argument.size(),
                .first_byte = argument.first_byte(),
                .is_view = true,
                .is_part = true};
    } else if constexpr (is_span<std::remove_const_t<A>>) {
        return {.raw = argument.data(), .raw_count = argument.size(), .is_view = true, .is_span = true};
    } else if constexpr (is_foreign<std::remove_const_t<A>>) {
        return {.raw = argument.data(), .raw_count = argument.size(), .is_view = true, .is_span = argument.on_host()};
    } else if constexpr (Parameter<P>::is_view) {
        return {.raw = argument.data, .raw_count = argument.count, .is_view = true};
    } else {
        return {.fits = value_fits<P>(argument)};
    }
}

// The arguments of a launch over buffers and values only, as small as possible: beside one driver call, every argument
// counts. The runtime fills in the views of the pack, from the buffers in the kernel's order.
template <class... P>
inline constexpr std::size_t view_count = (std::size_t{0} + ... + std::size_t{Parameter<P>::is_view});
template <class P, class A>
inline constexpr bool is_buffer_or_value = is_buffer<std::remove_cvref_t<A>> || !Parameter<P>::is_view;

template <class... P>
struct BufferLaunch {
    alignas(Pack<P...>) unsigned char pack[sizeof(Pack<P...>)];  // not initialised: the runtime writes most of it
    std::array<const std::shared_ptr<BufferState>*, view_count<P...> + 1> buffers;
    bool fits = true;

    template <class... A>
    explicit BufferLaunch(A&... arguments) noexcept {
        if constexpr (sizeof...(P) == 0) pack[0] = 0;
        take(std::index_sequence_for<P...>{}, arguments...);
    }

private:
    template <std::size_t... N, class... A>
    void take(std::index_sequence<N...>, A&... arguments) noexcept {
        [[maybe_unused]] std::size_t views = 0;
        (take_one<N, P>(arguments, views), ...);
    }
    template <std::size_t N, class Parameter, class A>
    void take_one(A& argument, std::size_t& views) noexcept {
        if constexpr (is_buffer<std::remove_const_t<A>>) {
            buffers[views++] = &argument.state();
        } else {
            fits = fits && value_fits<Parameter>(argument);
            const auto value = static_cast<Parameter>(argument);
            std::memcpy(pack + offset_in_pack<N, P...>(), &value, sizeof value);
        }
    }
};

// The common part of everything that takes a kernel's arguments: calls take(pack, arguments, argument count) with what
// the caller passed. CheckArguments has checked it.
template <class... P, class Take, class... A>
auto with_packed(Take take, A&... arguments) {
    Pack<P...> pack = make_pack<P...>(argument_value<P, std::remove_const_t<A>>(arguments)...);
    const std::array<LaunchArgument, sizeof...(P)> described{describe_argument<P>(arguments)...};
    return take(static_cast<void*>(&pack), described.data(), described.size());
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
