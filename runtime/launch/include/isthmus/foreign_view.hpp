// SPDX-License-Identifier: Apache-2.0
// ForeignView: elements that a descriptor of another library names, as a launch's argument.
#pragma once

#include <isthmus/launch_argument.hpp>
#include <isthmus/view.hpp>

#include <cstdint>

namespace isthmus {
inline namespace v0 {

// Made by foreign_view() (descriptors.hpp). A value without ownership, as View. Passed to a kernel it is a raw view;
// where the descriptor says host memory, it is a host span, which only CPU launches and LaunchMode::staged take (A17).
template <class T>
class ForeignView {
public:
    using element_type = T;
    ForeignView(T* first, std::uint64_t elements, bool host) noexcept
        : data_(first), count_(elements), on_host_(host) {}
    T* data() const noexcept { return data_; }
    std::uint64_t size() const noexcept { return count_; }
    bool on_host() const noexcept { return on_host_; }  // by the descriptor: ordinary host memory
    View<T> view() const noexcept { return {data_, count_}; }

private:
    T* data_;
    std::uint64_t count_;
    bool on_host_;
};

namespace detail {
template <class T>
struct ArgumentElement<ForeignView<T>> {
    using type = T;
};
template <class T>
inline constexpr bool is_foreign<ForeignView<T>> = true;
}  // namespace detail

}  // namespace v0
}  // namespace isthmus
