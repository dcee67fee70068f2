// SPDX-License-Identifier: Apache-2.0
// Kernels written once: ISTHMUS_KERNEL defines a typed function over an index space, compiled for the GPU by nvcc -x cu
// and for the CPU by the C++ compiler. How to write and build them: docs/kernels.md.
#pragma once

#include <isthmus/detail/check_arguments.hpp>
#include <isthmus/detail/host_device.hpp>
#include <isthmus/detail/pack.hpp>
#include <isthmus/detail/run_kernel.hpp>
#include <isthmus/index_space.hpp>
#include <isthmus/view.hpp>

#include <tuple>
#if defined(ISTHMUS_DETAIL_PLAYS_GPU)
#include <isthmus/detail/play_gpu.hpp>
#endif

namespace isthmus {
inline namespace v0 {

// The facts in a signature void(Space, P...), at compile time.
template <class Signature>
struct KernelTraits;
template <class Space, class... P>
struct KernelTraits<void(Space, P...)> : detail::SpaceTraits<Space> {  // ExtentType, rank, extent()
    using IndexSpace = Space;
    using Arguments = std::tuple<P...>;
    using Pack = detail::Pack<P...>;
    static constexpr std::size_t argument_count = sizeof...(P);
    // Hidden: a library's own, even if another one has a type of the same name with another layout.
    [[gnu::visibility("hidden")]] static constexpr std::array<ParameterInfo, sizeof...(P)> parameters =
        detail::describe_parameters<P...>(std::index_sequence_for<P...>{});
    static_assert((detail::check_parameter<P>() && ...));
    // Drivers before CUDA 12.1 and GPUs before Volta pass at most 4 KiB, of which the extent takes a part.
    static_assert(sizeof(Pack) + sizeof(Extent) <= 4096,
                  "isthmus: a kernel's values fit in 4 KiB; use a View for more");

    static constexpr Pack pack(const P&... values) noexcept { return detail::make_pack<P...>(values...); }
    static constexpr Pack pack(const Arguments& values) noexcept {
        return std::apply([](const P&... value) { return detail::make_pack<P...>(value...); }, values);
    }
};

// A kernel that Stream::launch() runs. Made by ISTHMUS_KERNEL, with static storage; any thread may use it.
template <class Signature>
class Kernel {
public:
    using Traits = KernelTraits<Signature>;
    constexpr explicit Kernel(const KernelInfo& info) noexcept : info_(info) {}
    Kernel(const Kernel&) = delete;  // drivers identify a kernel by its address and its first use
    Kernel& operator=(const Kernel&) = delete;
    constexpr const KernelInfo& info() const noexcept { return info_; }

private:
    KernelInfo info_;
};

namespace detail {
template <class>
constexpr bool is_plain() noexcept {
    return true;
}
template <template <class...> class>
constexpr bool is_plain() noexcept {
    return false;
}

template <auto Body, std::uint32_t block_threads, const auto& kernel, class Space, class... P>
constexpr KernelInfo describe_kernel(void (*)(Space, P...), const char* name, const char* symbol,
                                     const char* parameters, const KernelImage* image) noexcept {
    using Traits = KernelTraits<void(Space, P...)>;
    check_space<Space, block_threads>();
    return {
        name, symbol, parameters, Traits::parameters.data(), static_cast<std::uint32_t>(sizeof...(P)),
            static_cast<std::uint32_t>(sizeof(typename Traits::Pack)), Traits::rank, block_threads, image,
            &run_twin<Body, block_threads, kernel, Space, P...>,
#if defined(ISTHMUS_DETAIL_PLAYS_GPU)
            &play_gpu
#else
            nullptr
#endif
    };
}
}  // namespace detail

}  // namespace v0
}  // namespace isthmus

// The image with this file's GPU code; the build defines its name (isthmus_add_kernels, docs/kernels.md). Without it,
// the kernels of the file run on CPU devices only.
#if defined(ISTHMUS_KERNEL_IMAGE) && !defined(__CUDACC__)
extern "C" [[gnu::visibility("hidden")]] const ::isthmus::KernelImage ISTHMUS_KERNEL_IMAGE;
#define ISTHMUS_DETAIL_IMAGE &ISTHMUS_KERNEL_IMAGE
#else
#define ISTHMUS_DETAIL_IMAGE nullptr
#endif

#if defined(__CUDACC__)
#define ISTHMUS_DETAIL_KERNEL(kernel, block_threads, max_threads, ...)                                    \
    static __device__ __forceinline__ void isthmus_body_##kernel(__VA_ARGS__);                            \
    extern "C" __global__ void __launch_bounds__(max_threads)                                             \
        isthmus_##kernel(const __grid_constant__ ::isthmus::Extent extent,                                \
                         const __grid_constant__ ::isthmus::KernelTraits<void(__VA_ARGS__)>::Pack pack) { \
        using Space = ::isthmus::KernelTraits<void(__VA_ARGS__)>::IndexSpace;                             \
        ::isthmus::detail::run_thread<isthmus_body_##kernel, block_threads, Space>(extent, pack);         \
    }                                                                                                     \
    static __device__ __forceinline__ void isthmus_body_##kernel(__VA_ARGS__)
#define ISTHMUS_DECLARE_KERNEL(kernel, ...) static_assert(true)
#else
// The struct shows whether `template <...>` stands before the macro.
#define ISTHMUS_DETAIL_KERNEL(kernel, block_threads, max_threads, ...)                                            \
    struct isthmus_tag_##kernel;                                                                                  \
    static_assert(::isthmus::detail::is_plain<isthmus_tag_##kernel>(),                                            \
                  "isthmus: a kernel is no template: define one kernel for each type, under names of their own"); \
    static void isthmus_body_##kernel(__VA_ARGS__);                                                               \
    [[gnu::visibility("hidden")]] extern const ::isthmus::Kernel<decltype(isthmus_body_##kernel)> kernel;         \
    constinit const ::isthmus::Kernel<decltype(isthmus_body_##kernel)> kernel{                                    \
        ::isthmus::detail::describe_kernel<isthmus_body_##kernel, block_threads, kernel>(                         \
            isthmus_body_##kernel, #kernel, "isthmus_" #kernel, #__VA_ARGS__, ISTHMUS_DETAIL_IMAGE)};             \
    static inline void isthmus_body_##kernel(__VA_ARGS__)
// Declares a kernel that another file defines: ISTHMUS_DECLARE_KERNEL(scale, Index i, View<float> out, …);
// Hidden: otherwise, if two shared libraries define a kernel of the same name, both would launch the first one's.
#define ISTHMUS_DECLARE_KERNEL(kernel, ...) \
    [[gnu::visibility("hidden")]] extern const ::isthmus::Kernel<void(__VA_ARGS__)> kernel
#endif

// Defines the kernel object `kernel` and opens its body:
//   ISTHMUS_KERNEL(scale, Index i, View<float> out, View<const float> in, float factor) { out[i] = in[i] * factor; }
// At namespace scope. A name can be used once per file, because the entry in the GPU image is "isthmus_<kernel>".
#define ISTHMUS_KERNEL(kernel, ...) ISTHMUS_DETAIL_KERNEL(kernel, 0, 256, __VA_ARGS__)

// The same for blocks of `threads` threads: ISTHMUS_BLOCK_KERNEL(sum, 256, Block block, Out<int> sums, …) { … }
#define ISTHMUS_BLOCK_KERNEL(kernel, threads, ...) ISTHMUS_DETAIL_KERNEL(kernel, threads, threads, __VA_ARGS__)

// An array shared by the threads of a block, for the body of a block kernel. Its initial content is undefined.
#if defined(__CUDACC__)
#define ISTHMUS_SHARED(type, array, count) __shared__ type array[count]
#else
#define ISTHMUS_SHARED(type, array, count) type array[count]
#endif

// The same with rows: the cell in column x of row y is tile[y][x].
#if defined(__CUDACC__)
#define ISTHMUS_SHARED_TILE(type, tile, width, height) __shared__ alignas(16) type tile[height][width]
#else
#define ISTHMUS_SHARED_TILE(type, tile, width, height) alignas(64) type tile[height][width]
#endif
