// SPDX-License-Identifier: Apache-2.0
// OpenViews: opening and closing views that the lock's word does not count.
#include "open_views.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {

void OpenViews::open(const OpenUse& view) {
    host_touched_ = true;
    if (parts_ != nullptr && moves_pages_) parts_->at_host.add(view.span);
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
    const bool more = concurrents_ > 0 || (parts_ != nullptr && parts_->any_open());
    if (!more) return word_.unlock_without_others();
    word_.unlock();
    return false;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
