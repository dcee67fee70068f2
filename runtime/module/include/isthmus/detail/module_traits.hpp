// SPDX-License-Identifier: Apache-2.0
// What the declared signature of a module's kernel says at compile time: its parameters, and the pack of a launch.
#pragma once

#include <isthmus/detail/check_arguments.hpp>
#include <isthmus/kernel.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/module_launch.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BlockParameter {
    std::uint32_t offset_bytes;
    std::uint32_t size_bytes;
};

// A signature with its types erased; everything has static storage.
struct ModuleSignature {
    const ParameterInfo* parameter;  // in the pack, whose beginning is a ModuleLaunch
    std::uint32_t parameter_count;
    std::uint32_t pack_bytes;
    const BlockParameter* block;  // what the entry must take
    std::uint32_t block_count;
    bool own_layout;
    std::uint8_t item_rank;
    std::uint32_t pack_offset;
};

template <class... P>
struct ModulePack {
    ModuleLaunch launch;
    Pack<P...> arguments;
};

template <class... P, std::size_t... N>
constexpr std::array<ParameterInfo, sizeof...(P)> describe_module_parameters(std::index_sequence<N...> all) noexcept {
    using Whole = ModulePack<P...>;
    std::array<ParameterInfo, sizeof...(P)> parameters = describe_parameters<P...>(all);
    for (ParameterInfo& one : parameters) one.offset_bytes += static_cast<std::uint32_t>(offsetof(Whole, arguments));
    return parameters;
}

// As C lays out the parameters of an entry: memory is one address.
template <class... P>
constexpr std::array<BlockParameter, sizeof...(P)> block_of() noexcept {
    std::array<BlockParameter, sizeof...(P)> block{};
    [[maybe_unused]] std::uint32_t end = 0;
    [[maybe_unused]] std::size_t at = 0;
    [[maybe_unused]] const auto add = [&](std::uint32_t bytes, std::uint32_t alignment) {
        end = (end + alignment - 1) / alignment * alignment;
        block[at++] = {end, bytes};
        end += bytes;
    };
    (add(Parameter<P>::is_view ? 8 : static_cast<std::uint32_t>(sizeof(P)),
         Parameter<P>::is_view ? 8 : static_cast<std::uint32_t>(alignof(P))),
     ...);
    return block;
}

template <class T>
inline constexpr bool is_index_space =
    std::is_same_v<T, Index> || std::is_same_v<T, Index2> || std::is_same_v<T, Index3> || std::is_same_v<T, Block>;

// Calls take(pack, described, count) with the arguments of a launch.
template <class... P, class Take, class... A>
auto with_module_pack(Take take, A&... arguments) {
    ModulePack<P...> pack{{}, make_pack<P...>(argument_value<P, std::remove_const_t<A>>(arguments)...)};
    const std::array<LaunchArgument, sizeof...(P)> described{describe_argument<P>(arguments)...};
    return take(static_cast<void*>(&pack), described.data(), described.size());
}

template <class Signature>
struct ModuleTraits;
// An entry with plain parameters: void(Out<float>, View<const float>, int).
template <class... P>
struct ModuleTraits<void(P...)> {
    using Shape = LaunchShape;
    static_assert((check_parameter<P>() && ...));
    static_assert((std::size_t{0} + ... + sizeof(P)) <= 32764,
                  "isthmus: no launch passes more than 32764 bytes of values; use a View for more");
    static constexpr auto parameters = describe_module_parameters<P...>(std::index_sequence_for<P...>{});
    static constexpr auto block = block_of<P...>();
    static constexpr ModuleSignature signature{parameters.data(),
                                               static_cast<std::uint32_t>(sizeof...(P)),
                                               sizeof(ModulePack<P...>),
                                               block.data(),
                                               static_cast<std::uint32_t>(sizeof...(P)),
                                               false,
                                               0,
                                               0};
    template <class... A>
    using Check = CheckArguments<void(Index, P...), A...>;
    static LaunchShape shape(const Shape& shape) noexcept { return shape; }
    template <class Take, class... A>
    static auto with_pack(Take take, A&... arguments) {
        return with_module_pack<P...>(take, arguments...);
    }
};

// An entry that ISTHMUS_KERNEL wrote, by its index space: void(Index, Out<float>, View<const float>, int).
template <class Space, class... P>
requires(is_index_space<Space>) struct ModuleTraits<void(Space, P...)> {
    static_assert(!std::is_same_v<Space, Block>,
                  "isthmus: an image does not tell how many threads a block kernel was written for; launch it from the "
                  "program that defines it");
    using Shape = typename KernelTraits<void(Space, P...)>::ExtentType;
    using Whole = ModulePack<P...>;
    static constexpr auto parameters = describe_module_parameters<P...>(std::index_sequence_for<P...>{});
    static constexpr std::array<BlockParameter, 2> block = block_of<Extent, Pack<P...>>();
    static constexpr ModuleSignature signature{parameters.data(),
                                               static_cast<std::uint32_t>(sizeof...(P)),
                                               sizeof(Whole),
                                               block.data(),
                                               2,
                                               true,
                                               SpaceTraits<Space>::rank,
                                               static_cast<std::uint32_t>(offsetof(Whole, arguments))};
    template <class... A>
    using Check = CheckArguments<void(Space, P...), A...>;
    static LaunchShape shape(const Shape& shape) noexcept {
        LaunchShape items;
        items.grid = SpaceTraits<Space>::extent(shape);
        return items;
    }
    template <class Take, class... A>
    static auto with_pack(Take take, A&... arguments) {
        return with_module_pack<P...>(take, arguments...);
    }
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
