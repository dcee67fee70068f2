// SPDX-License-Identifier: Apache-2.0
// Pack: all arguments of a launch in one plain struct, laid out alike by nvcc and every host compiler. { Extent*, pack*
// } is the argument list of cuLaunchKernel and of the CPU twin.
#pragma once

#include <isthmus/detail/host_device.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/view.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

template <class... P>
struct Pack;
template <>
struct Pack<> {
    unsigned char unused = 0;  // an empty struct would have a size but no content
};
template <class Last>
struct Pack<Last> {
    Last first;
};
template <class First, class... Rest>
requires(sizeof...(Rest) > 0) struct Pack<First, Rest...> {
    First first;
    Pack<Rest...> rest;
};

// Offset of parameter N within Pack<P...>, in bytes.
template <std::size_t N, class First, class... Rest>
constexpr std::size_t offset_in_pack() noexcept {
    using Whole = Pack<First, Rest...>;
    if constexpr (N == 0)
        return 0;
    else
        return offsetof(Whole, rest) + offset_in_pack<N - 1, Rest...>();
}

template <class... None>
requires(sizeof...(None) == 0) constexpr Pack<> pack_one_by_one() noexcept {
    return {};
}
template <class Last>
constexpr Pack<Last> pack_one_by_one(const Last& last) noexcept {
    return {last};
}
template <class First, class... Rest>
requires(sizeof...(Rest) > 0) constexpr Pack<First, Rest...> pack_one_by_one(const First& first,
                                                                             const Rest&... rest) noexcept {
    return {first, pack_one_by_one<Rest...>(rest...)};
}
// The same at run time, where passing 64 values on 64 times would cost a quarter of a launch.
template <class... P, std::size_t... N>
Pack<P...> pack_at_once(std::index_sequence<N...>, const P&... values) noexcept {
    Pack<P...> pack;
    ((void)std::memcpy(reinterpret_cast<unsigned char*>(&pack) + offset_in_pack<N, P...>(), &values, sizeof values),
     ...);
    return pack;
}
template <class... P>
constexpr Pack<P...> make_pack(const P&... values) noexcept {
    if constexpr (sizeof...(P) > 0 && (std::is_trivially_copyable_v<P> && ...) &&
                  (std::is_default_constructible_v<P> && ...)) {
        if (!std::is_constant_evaluated()) return pack_at_once<P...>(std::index_sequence_for<P...>{}, values...);
    }
    return pack_one_by_one<P...>(values...);
}

template <std::size_t N, class P>
ISTHMUS_KERNEL_FUNCTION constexpr const auto& get(const P& pack) noexcept {
    if constexpr (N == 0)
        return pack.first;
    else
        return get<N - 1>(pack.rest);
}

// The use and the element type that a parameter's type states.
template <class P>
struct Parameter {
    static constexpr bool is_view = false;
    static constexpr ArgumentUse use = ArgumentUse::value;
    static constexpr std::uint32_t element_bytes = 0;
    static constexpr AtomicSet atomics = AtomicSet::load_store;
    static constexpr bool own_device = false;
    using Element = void;
};
template <class T, ArgumentUse how>
struct ViewParameter {
    static constexpr bool is_view = true;
    static constexpr ArgumentUse use = how;
    static constexpr std::uint32_t element_bytes = sizeof(T);
    static constexpr AtomicSet atomics = AtomicSet::load_store;
    static constexpr bool own_device = false;
    using Element = T;
    static_assert(std::is_trivially_copyable_v<T>,
                  "isthmus: elements of a View or Out are plain data, because the device copies them as bytes");
};
template <class T>
struct Parameter<View<T>> : ViewParameter<T, ArgumentUse::read_write> {};
template <class T>
struct Parameter<View<const T>> : ViewParameter<const T, ArgumentUse::read> {};
template <class T>
struct Parameter<Out<T>> : ViewParameter<T, ArgumentUse::write> {
    static_assert(!std::is_const_v<T>, "isthmus: Out<const T> could not be written; to read, take View<const T>");
};
template <class T, AtomicSet operations>
struct Parameter<AtomicView<T, operations>> : ViewParameter<T, ArgumentUse::concurrent> {
    static constexpr AtomicSet atomics = of_words(operations, std::is_floating_point_v<T>);
    static_assert(!std::is_const_v<T>, "isthmus: who shares memory by atomics writes it; to read alone, View<const T>");
};

template <class P>
constexpr bool check_parameter() noexcept {
    static_assert(!std::is_reference_v<P>, "isthmus: a kernel takes its parameters by value; memory comes as a View");
    static_assert(!std::is_pointer_v<P>,
                  "isthmus: a raw pointer tells neither size nor use; take View<T>, View<const T> or Out<T>");
    static_assert(std::is_trivially_copyable_v<P> && std::is_standard_layout_v<P>,
                  "isthmus: a kernel parameter is plain data, because it travels to the device as bytes");
    static_assert(!std::is_same_v<P, long double>, "isthmus: GPUs have no long double");
    return true;
}

template <class... P, std::size_t... N>
constexpr std::array<ParameterInfo, sizeof...(P)> describe_parameters(std::index_sequence<N...>) noexcept {
    return {ParameterInfo{static_cast<std::uint32_t>(offset_in_pack<N, P...>()), static_cast<std::uint32_t>(sizeof(P)),
                          Parameter<P>::element_bytes, Parameter<P>::use, Parameter<P>::atomics,
                          std::is_signed_v<typename Parameter<P>::Element>, Parameter<P>::own_device}...};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
