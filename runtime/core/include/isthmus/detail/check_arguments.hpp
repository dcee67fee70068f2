// SPDX-License-Identifier: Apache-2.0
// The compile-time checks of kernels and launches, with readable messages.
#pragma once

#include <isthmus/detail/pack.hpp>
#include <isthmus/index_space.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace isthmus {
inline namespace v0 {
namespace detail {

// For each index space: its rank, and how a launch states the extent.
template <class Space>
struct SpaceTraits {
    static_assert(!sizeof(Space),
                  "isthmus: the first parameter of a kernel names its index space: Index, Index2, "
                  "Index3 or Block");
    // so that no further errors follow
    using ExtentType = std::uint64_t;
    static constexpr std::uint8_t rank = 1;
    static constexpr Extent extent(ExtentType items) noexcept { return {items, 1, 1}; }
};
template <>
struct SpaceTraits<Index> {
    using ExtentType = Items;
    static constexpr std::uint8_t rank = 1;
    static constexpr Extent extent(ExtentType items) noexcept { return {items.count, 1, 1}; }
};
template <>
struct SpaceTraits<Index2> {
    using ExtentType = Extent2;
    static constexpr std::uint8_t rank = 2;
    static constexpr Extent extent(ExtentType items) noexcept { return {items.width, items.height, 1}; }
};
template <>
struct SpaceTraits<Index3> {
    using ExtentType = Extent3;
    static constexpr std::uint8_t rank = 3;
    static constexpr Extent extent(ExtentType items) noexcept { return {items.width, items.height, items.depth}; }
};
template <>
struct SpaceTraits<Block> {
    using ExtentType = Blocks;
    static constexpr std::uint8_t rank = 0;
    static constexpr Extent extent(ExtentType blocks) noexcept { return {blocks.x, blocks.y, blocks.z}; }
};

// Neither empty nor larger than a launch may be. With a constant rank, the compiler folds all but the numbers.
constexpr bool is_ordinary(std::uint8_t rank, const Extent& extent) noexcept {
    const Extent most = largest_extent(rank);
    return extent.x - 1 < most.x && extent.y - 1 < most.y && extent.z - 1 < most.z;
}

template <class Space, std::uint32_t block_threads>
constexpr void check_space() noexcept {
    constexpr bool is_block = std::is_same_v<Space, Block>;
    static_assert(!is_block || block_threads > 0,
                  "isthmus: a kernel over Block says how many threads a block has: ISTHMUS_BLOCK_KERNEL");
    static_assert(is_block || block_threads == 0, "isthmus: ISTHMUS_BLOCK_KERNEL takes Block as its first parameter");
    static_assert(block_threads <= 1024, "isthmus: no GPU runs more than 1024 threads in a block");
}

// The element type of an argument that is memory; void for a plain value. Const: may not be written. Buffers specialise
// it.
template <class A>
struct ArgumentElement {
    using type = void;
};
template <class A>
requires(Parameter<A>::is_view) struct ArgumentElement<A> {
    using type = typename Parameter<A>::Element;
};
template <class A>
using element_of = typename ArgumentElement<std::remove_cvref_t<A>>::type;

template <class A>
inline constexpr bool is_number = std::is_arithmetic_v<A> && !std::is_same_v<A, bool>;

// Whether the types allow the conversion: where nothing can be lost, and between integers and from an integer to a
// floating-point type, where value_fits() then checks the number itself.
template <class P, class A>
constexpr bool value_converts() noexcept {
    if constexpr (std::is_same_v<P, A>)
        return true;
    else if constexpr (is_number<P> && is_number<A>)
        return std::is_integral_v<A> || (std::is_floating_point_v<P> && sizeof(P) >= sizeof(A));
    else
        return !std::is_arithmetic_v<P> && std::is_convertible_v<A, P>;
}

// Whether P can hold this number. Always true, at no cost, where the types alone decide it.
template <class P, class A>
constexpr bool value_fits(const A& value) noexcept {
    if constexpr (std::is_same_v<P, A> || !is_number<P> || !std::is_integral_v<A>) {
        return true;
    } else if constexpr (std::is_floating_point_v<P>) {
        if constexpr (std::numeric_limits<A>::digits <= std::numeric_limits<P>::digits)
            return true;
        else {
            constexpr A limit = A{1} << std::numeric_limits<P>::digits;
            if constexpr (std::is_signed_v<A>)
                return value <= limit && value >= -limit;
            else
                return value <= limit;
        }
    } else {
        const P converted = static_cast<P>(value);
        return static_cast<A>(converted) == value && (converted < P{}) == (value < A{});
    }
}

// true: a const object of this type is memory that may not be written. Buffers specialise it.
template <class A>
inline constexpr bool const_is_read_only = false;

// What is wrong with the arguments of a launch; launch_refusal.hpp has the sentences.
enum class Mistake : std::uint8_t { none, missing, too_many, not_memory, other_element, read_only, memory, lossy };

// An argument of type A (a reference for a named object) passed to a parameter of type P.
template <class P, class A>
constexpr Mistake mistake_in_argument() noexcept {
    using Given = std::remove_cvref_t<A>;
    using Element = element_of<A>;
    if constexpr (Parameter<P>::is_view) {
        using Wanted = typename Parameter<P>::Element;
        constexpr bool read_only =
            std::is_const_v<Element> || (const_is_read_only<Given> && std::is_const_v<std::remove_reference_t<A>>);
        if (std::is_void_v<Element>) return Mistake::not_memory;
        if (!std::is_same_v<std::remove_const_t<Wanted>, std::remove_const_t<Element>>) return Mistake::other_element;
        return read_only && !std::is_const_v<Wanted> ? Mistake::read_only : Mistake::none;
    } else {
        if (value_converts<P, Given>()) return Mistake::none;
        return std::is_void_v<Element> ? Mistake::lossy : Mistake::memory;
    }
}

// The first mistake in `A...` as arguments for a kernel of this signature. Arguments are numbered from 1.
template <class Signature, class... A>
struct CheckArguments;
template <class Space, class... P, class... A>
struct CheckArguments<void(Space, P...), A...> {
    struct Finding {
        Mistake mistake;
        std::size_t argument;
    };
    static constexpr Finding find() noexcept {
        if constexpr (sizeof...(A) < sizeof...(P)) {
            return {Mistake::missing, sizeof...(A) + 1};
        } else if constexpr (sizeof...(A) > sizeof...(P)) {
            return {Mistake::too_many, sizeof...(P) + 1};
        } else {
            Finding first{Mistake::none, 0};
            std::size_t at = 0;
            ((++at, first.mistake == Mistake::none ? void(first = {mistake_in_argument<P, A>(), at}) : void()), ...);
            return first;
        }
    }
    static constexpr Finding found = find();
    static constexpr bool value = found.mistake == Mistake::none;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
