// SPDX-License-Identifier: Apache-2.0
// Calls work of other code with typed pointers, and sorts what it answers: the part of enqueue_native() that knows
// types.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/detail/native_request.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

template <class B>
LaunchArgument argument_of(const B& buffer) noexcept {
    LaunchArgument argument{.buffer = &buffer.state(), .raw_count = buffer.size(), .is_view = true};
    if constexpr (std::is_base_of_v<PartBase, B>) {
        argument.first_byte = buffer.first_byte();
        argument.is_part = true;
    }
    return argument;
}

template <class... T>
struct NativeArguments {
    static constexpr std::size_t count = sizeof...(T);
    std::array<LaunchArgument, count> arguments;
    std::array<ParameterInfo, count> parameters;
    std::array<NativeView, count> views{};

    template <class... U>
    explicit NativeArguments(const U&... uses) noexcept
        : arguments{uses.argument...}, parameters{ParameterInfo{0, sizeof(NativeView), sizeof(T), uses.use}...} {
        for (std::size_t at = 0; at < count; ++at) {
            parameters[at].offset_bytes = static_cast<std::uint32_t>(at * sizeof(NativeView));
        }
    }
    NativeRequest request(const char* name) noexcept {
        return {name, arguments.data(), parameters.data(), views.data(), static_cast<std::uint32_t>(count)};
    }
};

// Whether an enumeration is the driver's or the runtime library's own: cuda.h names them cudaError_enum and cudaError.
template <class R>
constexpr bool is_driver_code() noexcept {
    return std::is_same_v<R, int> || std::string_view(__PRETTY_FUNCTION__).find("cudaError") != std::string_view::npos;
}

template <class F, class... T>
void run_native(F& work, void* cu_stream, const NativeView* views, NativeOutcome& out) {
    static_assert(std::is_invocable_v<F&, void*, T*...>,
                  "isthmus: work of other code is called as work(void* cu_stream, pointers…): one pointer per use, to "
                  "const elements for reads()");
    using R = std::remove_cvref_t<std::invoke_result_t<F&, void*, T*...>>;
    static_assert(std::is_void_v<R> || std::is_same_v<R, int> || std::is_enum_v<R> || std::is_same_v<R, Result<void>>,
                  "isthmus: work of other code returns nothing, 0, a CUresult or cudaError_t, another library's "
                  "enumeration with 0 for success, or Result<void>; a bool would leave open which value is success");
    const auto call = [&]<std::size_t... at>(std::index_sequence<at...>)->decltype(auto) {
        return std::invoke(work, cu_stream, static_cast<T*>(views[at].data)...);
    };
    constexpr auto each = std::index_sequence_for<T...>();
    out.called = true;
    if constexpr (std::is_void_v<R>) {
        call(each);
    } else if constexpr (std::is_same_v<R, Result<void>>) {
        Result<void> answer = call(each);
        if (!answer) out.error = std::move(answer).error();
    } else {
        out.of_driver = is_driver_code<R>();
        out.code = static_cast<int>(call(each));
    }
}

// As run_native(); an exception is kept, because the library between here and the caller may be built without any.
template <class F, class... T>
void run_native_caught(F& work, void* cu_stream, const NativeView* views, NativeOutcome& out) {
#if defined(__cpp_exceptions)
    try {
        run_native<F, T...>(work, cu_stream, views, out);
    } catch (...) {
        out.thrown = std::current_exception();
    }
#else
    run_native<F, T...>(work, cu_stream, views, out);
#endif
}

template <class F, class... T>
class KeptWorkOf final : public KeptWork {
public:
    template <class G>
    KeptWorkOf(G&& work, const NativeView* views) : work_(std::forward<G>(work)) {
        for (std::size_t at = 0; at < sizeof...(T); ++at) views_[at] = views[at];
    }
    void run(NativeOutcome& out) override { run_native_caught<F, T...>(work_, nullptr, views_.data(), out); }

private:
    F work_;
    std::array<NativeView, sizeof...(T)> views_;
};

// One call of enqueue_native(). F may be const: a function object that is called as a constant.
template <class F, class... T>
class NativeCall {
public:
    template <class... U>
    NativeCall(const char* name, F& work, const U&... uses) noexcept
        : arguments_(uses...), request_(arguments_.request(name)) {
        request_.work = const_cast<void*>(static_cast<const void*>(std::addressof(work)));
        request_.outcome = &outcome_;
        request_.call = [](void* erased, void* cu_stream, const NativeView* views, NativeOutcome& out) {
            run_native_caught<F, T...>(*static_cast<F*>(erased), cu_stream, views, out);
        };
        using Kept = std::decay_t<F>;
        if constexpr (std::is_constructible_v<Kept, F&>) {
            request_.keep = [](void* erased, const NativeView* views) -> std::shared_ptr<KeptWork> {
                return std::make_shared<KeptWorkOf<Kept, T...>>(*static_cast<F*>(erased), views);
            };
        }
    }
    NativeCall(const NativeCall&) = delete;
    NativeCall& operator=(const NativeCall&) = delete;

    template <class Give>
    Result<std::uint64_t> give(Give erased) {
        Result<std::uint64_t> position = erased(request_);
#if defined(__cpp_exceptions)
        if (outcome_.thrown != nullptr) std::rethrow_exception(outcome_.thrown);
#endif
        return position;
    }

private:
    NativeArguments<T...> arguments_;
    NativeOutcome outcome_;
    NativeRequest request_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
