// SPDX-License-Identifier: Apache-2.0
// View, Out and AtomicView: a kernel's access to memory. The type states the use: View<const T> reads, Out<T> writes,
// View<T> does both, AtomicView<T> does both while the host may, too. Plain values without ownership: the launching
// code keeps the memory alive.
#pragma once

#include <isthmus/atomic_set.hpp>
#include <isthmus/detail/host_device.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace isthmus {
inline namespace v0 {

namespace detail {
template <class T, class I>
ISTHMUS_KERNEL_FUNCTION constexpr T& element(T* data, [[maybe_unused]] std::uint64_t size, I index) noexcept {
    const auto position = static_cast<std::uint64_t>(index);
#if ISTHMUS_DETAIL_CHECKS_BOUNDS
    if (position >= size) out_of_bounds(data, size, position);
#endif
    return data[position];
}
}  // namespace detail

// Read-write. Indexed by Index or any integer. Bounds are checked in CPU code of debug builds, or as
// ISTHMUS_CHECK_BOUNDS says (host_device.hpp).
template <class T>
struct View {
    T* data = nullptr;
    std::uint64_t count = 0;  // elements

    template <std::convertible_to<std::uint64_t> I>
    ISTHMUS_KERNEL_FUNCTION constexpr T& operator[](I index) const noexcept {
        return detail::element(data, count, index);
    }
    ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t size() const noexcept { return count; }
    ISTHMUS_KERNEL_FUNCTION constexpr operator View<const T>() const noexcept { return {data, count}; }
};

// Read only.
template <class T>
struct View<const T> {
    const T* data = nullptr;
    std::uint64_t count = 0;

    template <std::convertible_to<std::uint64_t> I>
    ISTHMUS_KERNEL_FUNCTION constexpr const T& operator[](I index) const noexcept {
        return detail::element(data, count, index);
    }
    ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t size() const noexcept { return count; }
};

// Write only: the previous contents need not be copied to the device, so that elements which the kernel does not write
// are undefined afterwards. If only a part is written and the rest matters, use View.
template <class T>
struct Out {
    T* data = nullptr;
    std::uint64_t count = 0;

    template <std::convertible_to<std::uint64_t> I>
    ISTHMUS_KERNEL_FUNCTION constexpr T& operator[](I index) const noexcept {
        return detail::element(data, count, index);
    }
    ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t size() const noexcept { return count; }
    ISTHMUS_KERNEL_FUNCTION constexpr operator View<T>() const noexcept { return {data, count}; }
};

template <class T, AtomicSet operations, AtomicScope scope>
class AtomicRef;  // atomic_ref.hpp, for at()

// Memory that the host (Buffer::concurrent_on_host) and other kernels may use at the same time: by aligned loads and
// stores, the atomics that the type names, or mailboxes, never through plain references.
template <class T, AtomicSet operations = AtomicSet::load_store>
struct AtomicView {
    T* data = nullptr;
    std::uint64_t count = 0;  // elements

    template <std::convertible_to<std::uint64_t> I>
    ISTHMUS_KERNEL_FUNCTION constexpr auto at(I index) const noexcept {
        return AtomicRef<T, operations, AtomicScope::system>(detail::element(data, count, index));
    }
    ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t size() const noexcept { return count; }
};

}  // namespace v0
}  // namespace isthmus
