// ConcurrentView: the permission to use a buffer from the CPU while the device does, as a scope. Both sides keep to
// aligned loads and stores, atomics or mailboxes; while it lives, everything else that would use the buffer is refused.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/host_view.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace isthmus::inline v0 {

namespace detail {
// A concurrent view without its type: what atomics and mailboxes stand on. A moved-from one is empty.
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
// As Buffer::concurrent_on_host(). Expects a buffer.
ISTHMUS_API Result<ConcurrentScope> open_concurrent(const std::shared_ptr<BufferState>& buffer, Wait wait);
}  // namespace detail

// Movable. Its data may be used by several threads, each by atomics or by loads and stores of aligned words of 1, 2, 4,
// 8 or 16 bytes, which both sides see in one piece; it gives no references. Says nothing about read-modify-writes:
// whether those are atomic between CPU and GPU is a question of its own. Several may be open at once. The memory stays
// valid as long as the view lives, even if the buffer goes first. A moved-from view is empty.
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

}  // namespace isthmus::inline v0
