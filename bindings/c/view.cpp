// SPDX-License-Identifier: Apache-2.0
// Host views of a buffer or of a range of it.
#include "calls.hpp"
#include "handles.hpp"
#include "scopes.hpp"

#include <cstddef>
#include <new>
#include <utility>

using namespace isthmus;

namespace {

template <class V>
Result<void> opened(isthmus_buffer& buffer, Result<V> view, isthmus_host_view** out, void** data) {
    if (!view) return std::move(view).error();
    auto* const made = new isthmus_host_view(*buffer.runtime, std::move(view).value());
    *data = made->data;
    *out = made;
    return {};
}

// `memory`: a buffer or a part of one.
template <class M>
Result<void> open(isthmus_buffer& buffer, M& memory, std::uint32_t flags, Wait wait, isthmus_host_view** out,
                  void** data) {
    if (flags == ISTHMUS_READ) return opened(buffer, memory.read_on_host(wait), out, data);
    if (flags == ISTHMUS_WRITE) return opened(buffer, memory.write_on_host(wait), out, data);
    return opened(buffer, memory.read_write_on_host(wait), out, data);
}

// Opens the whole buffer if there is nothing to wait for, to copy or to refuse; false: nothing was done. Most views are
// opened here, without what the others need around them.
template <class V>
bool opened_at_once(isthmus_buffer& buffer, bool writes, isthmus_host_view** out, void** data) noexcept {
    const auto& state = buffer.cpp.state();
    if (!state) return false;
    void* const first = detail::open_at_once(*state, writes);
    if (first == nullptr) return false;
    detail::ViewScope scope(*state, {writes ? ArgumentUse::read_write : ArgumentUse::read});
    V view(std::move(scope), static_cast<std::byte*>(first), buffer.cpp.size_bytes());
    auto* const made = new (std::nothrow) isthmus_host_view(*buffer.runtime, std::move(view));
    if (made == nullptr) return false;
    *data = first;
    *out = made;
    return true;
}

}  // namespace

isthmus_code isthmus_buffer_open_on_host(isthmus_buffer* buffer, uint64_t offset, uint64_t bytes, uint32_t flags,
                                         int64_t wait_ns, isthmus_host_view** view, void** data,
                                         isthmus_error** error) {
    if (buffer != nullptr && view != nullptr && data != nullptr && offset == 0 && wait_ns >= ISTHMUS_WAIT_DEFAULT &&
        (bytes == ISTHMUS_REST || bytes == buffer->cpp.size_bytes())) [[likely]] {
        const bool opened = flags == ISTHMUS_READ
                                ? opened_at_once<isthmus_host_view::Reads>(*buffer, false, view, data)
                                : (flags == ISTHMUS_WRITE || flags == ISTHMUS_READ_WRITE) &&
                                      opened_at_once<isthmus_host_view::Writes>(*buffer, true, view, data);
        if (opened) {
            if (error != nullptr) *error = nullptr;
            return ISTHMUS_OK;
        }
    }
    return c::guarded("isthmus_buffer_open_on_host", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"buffer", buffer}, {"view", view}, {"data", data}}));
        ISTHMUS_TRY(c::use_of_flags(call, "flags", flags));
        ISTHMUS_TRY(const Wait wait, call.wait(wait_ns));
        ISTHMUS_TRY(const std::size_t size, c::size_in(call, *buffer, offset, bytes));
        if (size == buffer->cpp.size_bytes()) return open(*buffer, buffer->cpp, flags, wait, view, data);
        ISTHMUS_TRY(auto part, buffer->cpp.part(static_cast<std::size_t>(offset), size));
        return open(*buffer, part, flags, wait, view, data);
    });
}

void isthmus_host_view_free(isthmus_host_view* view) {
    c::Ref<isthmus_host_view>::drop(view);
}
uint64_t isthmus_host_view_bytes(const isthmus_host_view* view) {
    return view == nullptr ? 0 : view->bytes;
}
void* isthmus_host_view_data(const isthmus_host_view* view) {
    return view == nullptr ? nullptr : view->data;
}
