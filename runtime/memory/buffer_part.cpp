// SPDX-License-Identifier: Apache-2.0
// BufferPart: bounds checks, and opening parts for the host.
#include <isthmus/buffer_part.hpp>

#include "buffer_state.hpp"
#include "device_state.hpp"
#include "memory_errors.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {
Result<void> make_part(const std::shared_ptr<BufferState>& buffer, std::size_t first, std::size_t count,
                       std::size_t element_bytes) {
    if (!buffer) return make_error<errors::part_of_empty_buffer>();
    const std::size_t elements = buffer->memory->bytes / element_bytes;
    if (first > elements || count > elements - first) {
        return make_error<errors::part_outside_of_buffer>(count, first, elements);
    }
    return buffer->make_parted();
}

MemoryKind PartBase::kind() const noexcept {
    return buffer_->memory->kind;
}

bool PartBase::independent() const noexcept {
    return !buffer_->memory->aliased && !rules::by_turns(buffer_->memory->path);
}

namespace {

Result<void> may_open(const BufferState& buffer, std::size_t first_byte, std::size_t bytes, const char* what) {
    if (buffer.views.released()) return buffer.refuse_released(what);
    if (bytes == 0 || buffer.holds(first_byte, bytes)) return {};
    return make_error<errors::part_beyond_smaller_buffer>(what, BufferState::part_beyond, BufferState::part_again);
}

// nullptr, for an empty view, if the host cannot access the memory.
std::byte* first_of(const BufferState& buffer, std::size_t first_byte) {
    return buffer.memory->host == nullptr ? nullptr : static_cast<std::byte*>(buffer.memory->host) + first_byte;
}

}  // namespace

Result<PartBase::OpenedView> PartBase::open_view(ArgumentUse use, Wait wait) const {
    Result<void> can = may_open(*buffer_, first_byte_, bytes_, "opening a host view");
    if (!can) return std::move(can).error();
    Result<ViewScope> scope = open_scope(*buffer_, use, wait, span_of(*buffer_, first_byte_, bytes_));
    if (!scope) return std::move(scope).error();
    return OpenedView{std::move(scope).value(), first_of(*buffer_, first_byte_)};
}

Result<ConcurrentScope> PartBase::open_concurrent(Wait wait) const {
    Result<void> can = may_open(*buffer_, first_byte_, bytes_, "opening a concurrent view");
    if (!can) return std::move(can).error();
    const rules::ByteSpan span = span_of(*buffer_, first_byte_, bytes_);
    Result<ViewScope> scope = open_scope(*buffer_, ArgumentUse::concurrent, wait, span);
    if (!scope) return std::move(scope).error();
    return ConcurrentScope(std::move(scope).value(), first_of(*buffer_, first_byte_), bytes_);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
