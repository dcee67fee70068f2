// SPDX-License-Identifier: Apache-2.0
// HostView: a scope in which the CPU may use a buffer. Opening it waits for conflicting device work, and for nothing
// else. While it is open, conflicting device work is refused.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/kernel_info.hpp>

#include <cstddef>
#include <span>
#include <utility>

namespace isthmus {
inline namespace v0 {

namespace detail {
struct BufferState;
// What an open scope claims: read, read_write or concurrent (a write-only scope claims read_write).
struct HostClaim {
    ArgumentUse use = ArgumentUse::read;
    std::size_t begin = 0;  // bytes; the default is the whole buffer
    std::size_t end = static_cast<std::size_t>(-1);
};
// Opens the whole buffer if there is nothing to wait for, to copy or to refuse, and returns its memory. nullptr:
// nothing was done; open_view() waits or gives the error. A ViewScope must close it.
ISTHMUS_API void* open_at_once(BufferState& buffer, bool writes) noexcept;
// `begin` and `end` as in HostClaim. The buffer may be destroyed here.
ISTHMUS_API void close_view(BufferState& buffer, ArgumentUse use, std::size_t begin, std::size_t end) noexcept;

// The scope without its element type; closes on destruction. An open scope keeps the memory alive.
class ViewScope {
public:
    ViewScope(BufferState& opened, const HostClaim& claim) noexcept : buffer_(&opened), claim_(claim) {}
    ViewScope(ViewScope&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)), claim_(other.claim_) {}
    ViewScope& operator=(ViewScope&& other) noexcept {
        if (this != &other) {
            close();
            buffer_ = std::exchange(other.buffer_, nullptr);
            claim_ = other.claim_;
        }
        return *this;
    }
    ~ViewScope() { close(); }
    BufferState* buffer() const noexcept { return buffer_; }  // nullptr: moved from
    // The caller closes it.
    HostClaim leave() noexcept { return buffer_ = nullptr, claim_; }

private:
    void close() noexcept {
        if (buffer_ != nullptr) close_view(*buffer_, claim_.use, claim_.begin, claim_.end);
    }
    BufferState* buffer_;
    HostClaim claim_;
};
}  // namespace detail

// T is const for a read view. Movable; empty after a move. Used by one thread at a time, like a std::span. The memory
// stays valid while the view lives, even if the buffer is destroyed first.
template <class T>
class [[nodiscard]] HostView {
public:
    HostView(detail::ViewScope scope, T* data, std::size_t count) : scope_(std::move(scope)), span_(data, count) {}
    HostView(HostView&& other) noexcept : scope_(std::move(other.scope_)), span_(std::exchange(other.span_, {})) {}
    HostView& operator=(HostView&& other) noexcept {
        scope_ = std::move(other.scope_);
        span_ = std::exchange(other.span_, {});
        return *this;
    }

    T* data() const noexcept { return span_.data(); }
    std::size_t size() const noexcept { return span_.size(); }  // elements
    std::size_t size_bytes() const noexcept { return span_.size_bytes(); }
    T& operator[](std::size_t index) const noexcept { return span_[index]; }
    T* begin() const noexcept { return span_.data(); }
    T* end() const noexcept { return span_.data() + span_.size(); }
    std::span<T> span() const noexcept { return span_; }
    const detail::ViewScope& scope() const noexcept { return scope_; }

private:
    detail::ViewScope scope_;
    std::span<T> span_;
};

}  // namespace v0
}  // namespace isthmus
