// SPDX-License-Identifier: Apache-2.0
// OpenViews: opening and closing what the lock's word does not count: views of parts, concurrent views, native scopes.
#include "open_views.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {

void OpenViews::open(const OpenUse& view) {
    host_touched_ = true;
    PartBook* const book = parts();
    if (book != nullptr && prefetched_ == Prefetched::host_touched) book->at_host.add(view.span);
    if (counted(view.use, view.span)) return word_.opened(rules::writes(view.use));
    if (view.span.whole()) {
        ++out_of_line.make_book().concurrents;
    } else {
        book->opened(view);
    }
    word_.opened_another();
}

[[gnu::noinline]] bool OpenViews::close_another(const OpenUse& view) noexcept {
    word_.lock();
    if (view.span.whole()) {
        --out_of_line.book()->concurrents;
    } else {
        parts()->closed(view);
    }
    if (!others()) return word_.unlock_without_others();
    word_.unlock();
    return false;
}

void OpenViews::mark(const void* scope, const OpenUse& use, KeptBlocks* kept) {
    Few<NativeMark, 2>& marks = out_of_line.make_extras().make_parts(kept).natives;
    if (marks.full()) note_heap("operator new");
    marks.push_back({scope, use});
    word_.opened_another();
}

void OpenViews::unmark(const void* scope) noexcept {
    word_.lock();
    if (marked()) {
        out_of_line.extras()->parts->natives.erase_if([&](const NativeMark& one) { return one.scope == scope; });
    }
    if (others()) return word_.unlock();
    (void)word_.unlock_without_others();
}

bool OpenViews::others() const noexcept {
    const BufferBook* const book = out_of_line.book();
    if (book == nullptr) return false;
    const PartBook* const by_part = parts();
    return book->concurrents > 0 || marked() || (by_part != nullptr && by_part->any_open());
}

// Without the lock, what was open may be closed by now.
OpenUse OpenViews::others_against(ArgumentUse use, const rules::ByteSpan& span) const noexcept {
    const BufferBook* const book = out_of_line.book();
    if (book != nullptr && book->concurrents > 0 && use != ArgumentUse::concurrent) {
        return {ArgumentUse::concurrent, {}};
    }
    const PartBook* const by_part = parts();
    return by_part == nullptr ? OpenUse{} : by_part->open_against(use, span);
}

OpenUse OpenViews::marked_against(ArgumentUse use, const rules::ByteSpan& span, const void* own) const noexcept {
    if (!marked()) return {};
    for (const NativeMark& one : out_of_line.extras()->parts->natives) {
        if (one.scope == own || rules::together(one.use.use, use)) continue;
        if (rules::overlap(one.use.span, span)) return one.use;
    }
    return {};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
