// SPDX-License-Identifier: Apache-2.0
// Few<T, room>: a sequence whose first elements need no memory from the heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

// For the stack of a call. Elements move when there are more than `room`; then they lie on the heap. T is movable
// without exceptions.
template <class T, std::size_t room>
class Few {
    static_assert(std::is_nothrow_move_constructible_v<T>);

public:
    Few() noexcept = default;
    Few(Few&& other) noexcept { take(other); }
    Few& operator=(Few&& other) noexcept {
        if (this != &other) {
            clear();
            release();
            take(other);
        }
        return *this;
    }
    ~Few() {
        clear();
        release();
    }

    T* begin() noexcept { return data_; }
    T* end() noexcept { return data_ + count_; }
    const T* begin() const noexcept { return data_; }
    const T* end() const noexcept { return data_ + count_; }
    const T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }
    T& operator[](std::size_t at) noexcept { return data_[at]; }
    const T& operator[](std::size_t at) const noexcept { return data_[at]; }
    T& back() noexcept { return data_[count_ - 1]; }

    template <class... Values>
    T& emplace_back(Values&&... values) {
        if (count_ == capacity_) grow();
        T* const made = ::new (static_cast<void*>(data_ + count_)) T{std::forward<Values>(values)...};
        ++count_;
        return *made;
    }
    void push_back(T value) { emplace_back(std::move(value)); }
    void erase(T* at) noexcept {
        for (T* next = at + 1; next != end(); ++at, ++next) *at = std::move(*next);
        std::destroy_at(data_ + --count_);
    }
    // Removes those for which `is` answers true.
    template <class Is>
    void erase_if(Is is) {
        T* kept = begin();
        for (T* at = begin(); at != end(); ++at) {
            if (is(std::as_const(*at))) continue;
            if (kept != at) *kept = std::move(*at);
            ++kept;
        }
        std::destroy(kept, end());
        count_ = static_cast<std::uint32_t>(kept - data_);
    }
    // Whether another element would need memory from the heap.
    bool full() const noexcept { return count_ == capacity_; }
    void clear() noexcept {
        std::destroy(begin(), end());
        count_ = 0;
    }

private:
    T* here() noexcept { return reinterpret_cast<T*>(room_); }
    void release() noexcept {
        if (data_ != here()) std::allocator<T>().deallocate(data_, capacity_);
        data_ = here();
        capacity_ = room;
    }
    // Expects this to be empty, with its own room.
    void take(Few& other) noexcept {
        if (other.data_ != other.here()) {
            data_ = std::exchange(other.data_, other.here());
            capacity_ = std::exchange(other.capacity_, room);
        } else {
            std::uninitialized_move(other.begin(), other.end(), data_);
            std::destroy(other.begin(), other.end());
        }
        count_ = std::exchange(other.count_, 0);
    }
    [[gnu::noinline]] void grow() {
        T* const more = std::allocator<T>().allocate(std::size_t{2} * capacity_);
        std::uninitialized_move(begin(), end(), more);
        std::destroy(begin(), end());
        const std::uint32_t capacity = 2 * capacity_;
        release();
        data_ = more;
        capacity_ = capacity;
    }

    alignas(T) unsigned char room_[room * sizeof(T)];  // not initialised
    T* data_ = here();
    std::uint32_t count_ = 0;
    std::uint32_t capacity_ = room;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
