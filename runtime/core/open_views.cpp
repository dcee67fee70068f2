// SPDX-License-Identifier: Apache-2.0
// OpenViews: opening and closing what the lock's word does not count: views of parts, concurrent views, native scopes.
#include "open_views.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {

void OpenViews::open(const OpenUse& view) {
    host_touched_ = true;
    if (parts_ != nullptr && prefetched_ == Prefetched::host_touched) parts_->at_host.add(view.span);
    if (counted(view.use, view.span)) return word_.opened(rules::writes(view.use));
    if (view.span.whole()) {
        ++concurrents_;
    } else {
        parts_->opened(view);
    }
    word_.opened_another();
}

[[gnu::noinline]] bool OpenViews::close_another(const OpenUse& view) noexcept {
    word_.lock();
    if (view.span.whole()) {
        --concurrents_;
    } else {
        parts_->closed(view);
    }
    if (!others()) return word_.unlock_without_others();
    word_.unlock();
    return false;
}

void OpenViews::mark(const void* scope, const OpenUse& use) {
    if (natives_ == nullptr) natives_ = std::make_unique<std::vector<Mark>>();
    natives_->push_back({scope, use});
    word_.opened_another();
}

void OpenViews::unmark(const void* scope) noexcept {
    word_.lock();
    if (natives_ != nullptr) std::erase_if(*natives_, [&](const Mark& one) { return one.scope == scope; });
    if (others()) return word_.unlock();
    (void)word_.unlock_without_others();
}

OpenUse OpenViews::marked_against(ArgumentUse use, const rules::ByteSpan& span, const void* own) const noexcept {
    for (const Mark& one : *natives_) {
        if (one.scope == own || rules::together(one.use.use, use)) continue;
        if (rules::overlap(one.use.span, span)) return one.use;
    }
    return {};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
