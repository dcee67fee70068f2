// SPDX-License-Identifier: Apache-2.0
// PartBook: entering and finding ranges.
#include "part_book.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

void LastUse::raise(std::uint64_t position, ArgumentUse use) noexcept {
    last = std::max(last, position);
    if (rules::writes(use)) last_write = std::max(last_write, position);
    if (use != ArgumentUse::concurrent) last_plain = std::max(last_plain, position);
}

void LastUse::join(const LastUse& other) noexcept {
    last = std::max(last, other.last);
    last_write = std::max(last_write, other.last_write);
    last_plain = std::max(last_plain, other.last_plain);
}

void PartBook::closed(const OpenUse& scope) noexcept {
    const auto found = std::find_if(open_.begin(), open_.end(),
                                    [&](const OpenUse& one) { return one.use == scope.use && one.span == scope.span; });
    if (found != open_.end()) open_.erase(found);
}

bool PartBook::any_open(const rules::ByteSpan& span) const noexcept {
    return std::any_of(open_.begin(), open_.end(), [&](const OpenUse& one) { return overlap(one.span, span); });
}

OpenUse PartBook::open_against(ArgumentUse use, const rules::ByteSpan& span) const noexcept {
    for (const OpenUse& one : open_) {
        if (!rules::together(one.use, use) && rules::overlap(one.span, span)) return one;
    }
    return {};
}

LastUse& PartBook::enter(const void* stream, const rules::ByteSpan& span) {
    // The newest entries are at the end, and what was used last is usually used next.
    for (std::size_t at = used_.size(); at-- > 0;) {
        if (used_[at].stream == stream && used_[at].span == span) return used_[at].use;
    }
    if (used_.full()) note_heap("operator new");
    used_.push_back({stream, span, {}});
    return used_.back().use;
}

void PartBook::take_together() {
    const Few<Used, 4> all = std::exchange(used_, {});
    for (const Used& one : all) enter(one.stream, {}).join(one.use);
}

void PartBook::forget(const void* stream) noexcept {
    used_.erase_if([&](const Used& one) { return one.stream == stream; });
}

LastUse PartBook::last_use(const void* stream, const rules::ByteSpan& span) const noexcept {
    LastUse found;
    for (const Used& one : used_) {
        if (one.stream == stream && rules::overlap(one.span, span)) found.join(one.use);
    }
    return found;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
