// SPDX-License-Identifier: Apache-2.0
// AtomicSpan: a concurrent view whose words CPU and GPU may update at the same time. It opens only where these
// operations are atomic between both.
#pragma once

#include <isthmus/atomic_ref.hpp>
#include <isthmus/concurrent_view.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {

namespace detail {
// The atomic operations wanted on words of one type.
struct AtomicWish {
    AtomicSet operations = AtomicSet::load_store;
    std::uint32_t width_bytes = 4;
    bool is_signed = false;
};
template <class T, AtomicSet operations>
inline constexpr AtomicWish wish_of{of_words(operations, std::is_floating_point_v<T>), sizeof(T), std::is_signed_v<T>};
// Whether these updates are atomic between the host and the buffer's device. Expects a non-empty buffer. No driver
// call.
ISTHMUS_API Result<void> check_host_atomics(BufferState& buffer, const AtomicWish& wish);
}  // namespace detail

// A scope, as ConcurrentView; made by Buffer::atomics_on_host(). Several threads may use its words.
template <class T, AtomicSet operations>
class [[nodiscard]] AtomicSpan {
public:
    explicit AtomicSpan(ConcurrentView<T> view) : view_(std::move(view)) {}

    // Unchecked: index < size(). The reference is valid while this object lives.
    AtomicRef<T, operations> operator[](std::size_t index) const noexcept {
        return AtomicRef<T, operations>(view_.data()[index]);
    }
    std::size_t size() const noexcept { return view_.size(); }  // elements
    const ConcurrentView<T>& view() const noexcept { return view_; }

private:
    ConcurrentView<T> view_;
};

}  // namespace v0
}  // namespace isthmus
