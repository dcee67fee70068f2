// SPDX-License-Identifier: Apache-2.0
// Module: ready-made GPU code, a cubin, a fatbin or PTX, its kernels and its variables. Made by Device::load_module().
#pragma once

#include <isthmus/detail/module_traits.hpp>
#include <isthmus/device.hpp>
#include <isthmus/stand_in.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

// With what the declared parameters were compared.
enum class ParameterCheck : std::uint8_t {
    none,    // neither the driver nor the image says what the entry takes (a compressed fatbin, a driver before 12.4)
    image,   // the image's own metadata
    driver,  // cuFuncGetParamInfo
};

namespace detail {
class ModuleState;
struct ModuleKernelState;
ISTHMUS_API ParameterCheck parameter_check_of(const ModuleKernelState& state) noexcept;
struct FoundGlobal {
    TypedBuffer<std::byte>* bytes;  // of the module
    std::shared_ptr<ModuleState> module;
};
ISTHMUS_API Result<LaunchReport> launch_module_kernel(const Stream& stream, const LaunchOptions& options,
                                                      const ModuleKernelState& kernel, const LaunchShape& shape,
                                                      void* pack, const LaunchArgument* arguments, std::size_t count);
ISTHMUS_API const KernelInfo& info_of(const ModuleKernelState& kernel) noexcept;
ISTHMUS_API LaunchExplanation explain_module_kernel(const Stream& stream, const ModuleKernelState& kernel,
                                                    const LaunchShape& shape, LaunchExplanation explained);
}  // namespace detail

struct ModuleOptions {
    // For the CPU device, and for simulated machines, where an entry without one runs from the image's PTX. GPUs ignore
    // them.
    std::vector<StandIn> stand_ins{};
    // A folder that keeps what the driver made of PTX, as cubins by content, driver and compute capability; it must
    // exist. Files that are damaged or of another driver are ignored and replaced. Empty: only the driver's own cache
    // is used (CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE, CUDA_CACHE_DISABLE). Ignored for other images.
    std::string cache_folder{};
};

// A kernel of a module, launched by Stream::launch(kernel, {.grid = …, .block = …}, arguments…). Copies name the same
// kernel. Keeps the module loaded. Any thread may use it.
template <class Signature>
class ModuleKernel {
public:
    explicit ModuleKernel(std::shared_ptr<const detail::ModuleKernelState> state) : state_(std::move(state)) {}
    const std::shared_ptr<const detail::ModuleKernelState>& state() const noexcept { return state_; }
    ParameterCheck parameter_check() const noexcept { return detail::parameter_check_of(*state_); }

private:
    std::shared_ptr<const detail::ModuleKernelState> state_;
};

// A variable of a module (__device__ or __constant__). Keeps the module loaded. The runtime does not see which kernels
// use it: copy on their stream, or order the streams.
template <class T>
class ModuleGlobal {
public:
    explicit ModuleGlobal(detail::FoundGlobal found) : found_(std::move(found)) {}
    std::size_t size() const noexcept { return found_.bytes->size_bytes() / sizeof(T); }
    // As Stream::copy_from_host() and copy_to_host(), from element `offset` on; their errors.
    Result<void> write(Stream& stream, std::span<const T> from, std::size_t offset = 0) {
        return stream.copy_from_host(*found_.bytes, std::as_bytes(from), offset * sizeof(T));
    }
    Result<void> read(Stream& stream, std::span<T> to, std::size_t offset = 0) const {
        return stream.copy_to_host(std::as_writable_bytes(to), *found_.bytes, offset * sizeof(T));
    }

private:
    detail::FoundGlobal found_;
};

// Movable; thread-safe but for moving and releasing. The code is unloaded when the module, its kernels and variables,
// and the graphs that launch its kernels are gone: what goes last waits for the launches, at most the runtime's wait
// timeout. Code that a hung kernel still runs stays loaded. Behind an open capture, a service or a host function,
// unloading is put off; in the child of a fork() nothing is done. Graphs of other code (captures that the runtime did
// not begin) do not keep the module.
class ISTHMUS_API Module {
public:
    Module(std::shared_ptr<detail::ModuleState> state, const Device& device)
        : state_(std::move(state)), device_(device) {}

    // Finds an entry and declares what it takes. In void(Out<float>, View<const float>, int) views name the use, and
    // the entry takes one pointer for each, as a __global__ function does; values pass as their bytes. A signature that
    // begins with an index space, void(Index, View<float>), is that of an ISTHMUS_KERNEL, whose entry is
    // "isthmus_NAME". The parameters of the entry are compared with the declared ones: their number, sizes and places.
    // Errors: invalid_argument (no such entry; other parameters), unsupported (no stand-in where one is needed),
    // invalid_handle (released), driver_error, device_lost.
    template <class Signature>
    Result<ModuleKernel<Signature>> kernel(std::string_view entry) const {
        Result<std::shared_ptr<const detail::ModuleKernelState>> found =
            find_kernel(entry, detail::ModuleTraits<Signature>::signature);
        if (!found) return std::move(found).error();
        return ModuleKernel<Signature>(std::move(found).value());
    }
    // Finds a variable, as an array of T.
    // Errors: invalid_argument (no such variable; its size is no multiple of T's), as adopt(), as kernel().
    template <class T>
    Result<ModuleGlobal<T>> global(std::string_view name) const {
        static_assert(std::is_trivially_copyable_v<T>, "isthmus: variables are copied as bytes");
        Result<detail::FoundGlobal> found = find_global(name, sizeof(T));
        if (!found) return std::move(found).error();
        return ModuleGlobal<T>(std::move(found).value());
    }
    // The entries that can be read from the image: all, unless it is compressed.
    std::vector<std::string> entries() const;

    // Waits for the launches and unloads the code now. Launches of its kernels are then invalid_handle. On an error the
    // module can still be used.
    // Errors: in_use (a graph launches its kernels), timed_out, not_ready, capture_error (a capture is open), device
    // errors. A lost device is no error.
    Result<void> release(Wait wait = {});

private:
    Result<std::shared_ptr<const detail::ModuleKernelState>> find_kernel(
        std::string_view entry, const detail::ModuleSignature& signature) const;
    Result<detail::FoundGlobal> find_global(std::string_view name, std::size_t element_bytes) const;
    std::shared_ptr<detail::ModuleState> state_;
    Device device_;
};

template <class Signature, class... A>
Result<LaunchReport> Stream::launch(const LaunchOptions& options, const ModuleKernel<Signature>& kernel,
                                    const typename detail::ModuleTraits<Signature>::Shape& shape, A&&... arguments) {
    using Traits = detail::ModuleTraits<Signature>;
    using Check = typename Traits::template Check<A...>;
    if constexpr (Check::value) {
        return Traits::with_pack(
            [&](void* pack, const detail::LaunchArgument* described, std::size_t count) {
                return detail::launch_module_kernel(*this, options, *kernel.state(), Traits::shape(shape), pack,
                                                    described, count);
            },
            arguments...);
    } else {
        return detail::refuse_launch<Result<LaunchReport>, Check::found.mistake, Check::found.argument>();
    }
}
template <class Signature, class... A>
Result<LaunchReport> Stream::launch(const ModuleKernel<Signature>& kernel,
                                    const typename detail::ModuleTraits<Signature>::Shape& shape, A&&... arguments) {
    return launch(LaunchOptions{}, kernel, shape, std::forward<A>(arguments)...);
}
template <class Signature, class... A>
LaunchExplanation Stream::explain(const LaunchOptions& options, const ModuleKernel<Signature>& kernel,
                                  const typename detail::ModuleTraits<Signature>::Shape& shape,
                                  A&&... arguments) const {
    using Traits = detail::ModuleTraits<Signature>;
    using Check = typename Traits::template Check<A...>;
    if constexpr (Check::value) {
        return Traits::with_pack(
            [&](void*, const detail::LaunchArgument* described, std::size_t count) {
                const LaunchShape whole = Traits::shape(shape);
                return detail::explain_module_kernel(
                    *this, *kernel.state(), whole,
                    explain_described(options, detail::info_of(*kernel.state()), whole.grid, described, count));
            },
            arguments...);
    } else {
        return detail::refuse_launch<LaunchExplanation, Check::found.mistake, Check::found.argument>();
    }
}

}  // namespace v0
}  // namespace isthmus
