// SPDX-License-Identifier: Apache-2.0
// ConcurrentView: a scope in which the CPU may use a buffer while the device does. Both sides keep to aligned loads and
// stores, atomics or mailboxes. While it is open, every other use of the buffer is refused.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/host_view.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace isthmus {
inline namespace v0 {

namespace detail {
// A concurrent view without its element type; the base of atomics and mailboxes. Empty after a move.
class ConcurrentScope {
public:
    ConcurrentScope(ViewScope scope, void* data, std::size_t bytes)
        : scope_(std::move(scope)), data_(data), bytes_(bytes) {}
    ConcurrentScope(ConcurrentScope&& other) noexcept
        : scope_(std::move(other.scope_)),
          data_(std::exchange(other.data_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    ConcurrentScope& operator=(ConcurrentScope&& other) noexcept {
        scope_ = std::move(other.scope_);
        data_ = std::exchange(other.data_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
        return *this;
    }
    ~ConcurrentScope() = default;

    void* data() const noexcept { return data_; }
    std::size_t size_bytes() const noexcept { return bytes_; }
    const ViewScope& scope() const noexcept { return scope_; }

private:
    ViewScope scope_;
    void* data_;
    std::size_t bytes_;
};
// As Buffer::concurrent_on_host(). Expects a non-empty buffer.
ISTHMUS_API Result<ConcurrentScope> open_concurrent(const std::shared_ptr<BufferState>& buffer, Wait wait);
}  // namespace detail

// Movable; empty after a move. Several may be open at once. Several threads may use the data, by atomics or by loads
// and stores of aligned words of 1, 2, 4, 8 or 16 bytes, which the other side never sees half done; there are no
// references to elements. Read-modify-writes need not be atomic between CPU and GPU (see AtomicSpan). The memory
// stays valid while the view lives, even if the buffer is destroyed first.
template <class T>
class [[nodiscard]] ConcurrentView {
public:
    explicit ConcurrentView(detail::ConcurrentScope scope) : scope_(std::move(scope)) {}

    T* data() const noexcept { return static_cast<T*>(scope_.data()); }
    std::size_t size() const noexcept { return scope_.size_bytes() / sizeof(T); }  // elements
    std::size_t size_bytes() const noexcept { return scope_.size_bytes(); }
    const detail::ConcurrentScope& scope() const noexcept { return scope_; }

private:
    detail::ConcurrentScope scope_;
};

}  // namespace v0
}  // namespace isthmus
