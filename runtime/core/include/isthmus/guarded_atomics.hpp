// GuardedAtomics: a concurrent view whose words may be updated by CPU and GPU at the same time, because the machine was
// asked whether these operations are atomic for both.
#pragma once

#include <isthmus/atomic_ref.hpp>
#include <isthmus/concurrent_view.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace isthmus::inline v0 {

namespace detail {
// What somebody wants to do to words of one type.
struct AtomicWish {
    AtomicSet operations = AtomicSet::load_store;
    std::uint32_t width_bytes = 4;
    bool is_signed = false;
};
template <class T, AtomicSet operations>
inline constexpr AtomicWish wish_of{of_words(operations, std::is_floating_point_v<T>), sizeof(T), std::is_signed_v<T>};
// Are these updates by the host and the buffer's device atomic? Expects a buffer. No driver call.
ISTHMUS_API Result<void> check_host_atomics(BufferState& buffer, const AtomicWish& wish);
}  // namespace detail

// The scope of a ConcurrentView (Buffer::atomics_on_host). Its words may be used by several threads.
template <class T, AtomicSet operations>
class [[nodiscard]] GuardedAtomics {
public:
    explicit GuardedAtomics(ConcurrentView<T> view) : view_(std::move(view)) {}

    // Not checked: index < size(). Valid as long as this lives.
    AtomicRef<T, operations> operator[](std::size_t index) const noexcept {
        return AtomicRef<T, operations>(view_.data()[index]);
    }
    std::size_t size() const noexcept { return view_.size(); }  // elements
    const ConcurrentView<T>& view() const noexcept { return view_; }

private:
    ConcurrentView<T> view_;
};

}  // namespace isthmus::inline v0
