// SPDX-License-Identifier: Apache-2.0
// StandIn: the function that runs in place of an entry of a ready-made module where no GPU does: on the CPU device, and
// on simulated machines, which otherwise run the entry from PTX.
#pragma once

#include <isthmus/detail/pack.hpp>
#include <isthmus/kernel.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/result.hpp>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

namespace detail {
struct ModuleFunctions;
}

// The launch for which a stand-in is called: once for the whole grid.
class StandInCall {
public:
    Extent grid;   // blocks
    Extent block;  // threads per block
    std::uint64_t shared_bytes = 0;
    // Threads of the whole launch along x.
    std::uint64_t threads() const noexcept { return grid.x * block.x; }
    // The module's variable of this name, or nullptr. Variables begin as zeros: what the image would put there is not
    // read.
    template <class T>
    T* global(std::string_view name) const noexcept {
        return static_cast<T*>(find_global(name));
    }

    // Made by the library.
    StandInCall(const Extent& blocks, const Extent& threads, std::uint64_t shared,
                const detail::ModuleFunctions* of) noexcept
        : grid(blocks), block(threads), shared_bytes(shared), of_(of) {}

private:
    ISTHMUS_API void* find_global(std::string_view name) const noexcept;
    const detail::ModuleFunctions* of_;
};

// A value of ModuleOptions::stand_ins, made by stand_in(). The function is called by threads of the library or of the
// simulator, one launch at a time for each stream, and must not throw.
struct StandIn {
    std::string entry;
    std::vector<std::uint32_t> parameters;  // the bytes of each parameter of the entry; memory counts as 8
    std::function<void(const StandInCall& call, void* const* parameters)> run;
};

namespace detail {

// What the function takes for a parameter: memory as a pointer, values as they are.
template <class P, class = void>
struct StandInArgument {
    using type = P;
};
template <class P>
struct StandInArgument<P, std::enable_if_t<Parameter<P>::is_view>> {
    using type = typename Parameter<P>::Element*;
};
template <class P>
typename StandInArgument<P>::type stand_in_argument(const void* parameter) noexcept {
    typename StandInArgument<P>::type value;
    std::memcpy(static_cast<void*>(&value), parameter, sizeof value);
    return value;
}

template <class Signature>
struct MakeStandIn;
template <class... P>
struct MakeStandIn<void(P...)> {
    static_assert((check_parameter<P>() && ...));
    template <class F>
    static StandIn of(std::string entry, F function) {
        static_assert(std::is_invocable_v<F&, const StandInCall&, typename StandInArgument<P>::type...>,
                      "isthmus: a stand-in takes a const StandInCall&, then a pointer for each View or Out of the "
                      "declared signature, and its values");
        return {std::move(entry),
                {(Parameter<P>::is_view ? std::uint32_t{8} : static_cast<std::uint32_t>(sizeof(P)))...},
                [function = std::move(function)](const StandInCall& call, void* const* parameters) mutable {
                    invoke(function, call, parameters, std::index_sequence_for<P...>{});
                }};
    }

private:
    template <class F, std::size_t... N>
    static void invoke(F& function, const StandInCall& call, [[maybe_unused]] void* const* parameters,
                       std::index_sequence<N...>) {
        function(call, stand_in_argument<P>(parameters[N])...);
    }
};

ISTHMUS_API StandIn stand_in_of(std::string entry, const KernelInfo& kernel, std::uint32_t pack_bytes);

}  // namespace detail

// stand_in<void(Out<float>, View<const float>, float, int)>("scale",
//     [](const StandInCall& call, float* out, const float* in, float factor, int count) { … })
template <class Signature, class F>
StandIn stand_in(std::string entry, F function) {
    return detail::MakeStandIn<Signature>::of(std::move(entry), std::move(function));
}
// For an entry that ISTHMUS_KERNEL wrote: the CPU twin of the same kernel. The kernel must have static storage.
template <class Space, class... P>
StandIn stand_in(const std::string& entry, const Kernel<void(Space, P...)>& kernel) {
    return detail::stand_in_of(entry, kernel.info(), sizeof(detail::Pack<P...>));
}

}  // namespace v0
}  // namespace isthmus
