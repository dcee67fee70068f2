// SPDX-License-Identifier: Apache-2.0
// OpenCaptures: counts captures and defers work.
#include "open_captures.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

bool OpenCaptures::here() const {
    if (!any()) return false;
    const std::lock_guard lock(mutex_);
    return std::find(threads_.begin(), threads_.end(), std::this_thread::get_id()) != threads_.end();
}

void OpenCaptures::begun() {
    const std::lock_guard lock(mutex_);
    threads_.push_back(std::this_thread::get_id());
    open_.store(static_cast<int>(threads_.size()), std::memory_order_release);
}

void OpenCaptures::ended(std::thread::id by) {
    std::vector<std::function<void()>> due;
    {
        const std::lock_guard lock(mutex_);
        const auto begun = std::find(threads_.begin(), threads_.end(), by);
        if (begun != threads_.end()) threads_.erase(begun);
        open_.store(static_cast<int>(threads_.size()), std::memory_order_release);
        if (threads_.empty()) due.swap(put_off_);
    }
    for (const std::function<void()>& work : due) work();  // without the lock: it may put further work off
}

void OpenCaptures::when_none_is_open(std::function<void()> work) {
    {
        const std::lock_guard lock(mutex_);
        if (!threads_.empty()) {
            put_off_.push_back(std::move(work));
            return;
        }
    }
    work();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
