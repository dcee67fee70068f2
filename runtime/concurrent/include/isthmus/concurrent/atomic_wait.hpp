// SPDX-License-Identifier: Apache-2.0
// wait_while: the CPU waits for a word that the GPU or another thread changes.
#pragma once

#include <isthmus/atomic_ref.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <type_traits>

namespace isthmus {
inline namespace v0 {

namespace detail {
ISTHMUS_API Result<void> wait_until_changed(bool (*changed)(const void* state), const void* state, Wait wait);
}

// Waits until the word holds a value other than `old`; answers that value, loaded with acquire. Polls with growing
// pauses (WaitPolicy::adaptive): no store of a GPU wakes a sleeping thread, so no notification is needed. Makes no
// driver call; the side that changes the word must not need a driver call from this thread. Callable from any thread.
// Errors: timed_out (after 60 s where `wait` has no timeout), not_ready (Wait::never()).
template <class T, AtomicSet operations, AtomicScope scope>
Result<std::remove_const_t<T>> wait_while(const AtomicRef<T, operations, scope>& word,
                                          std::type_identity_t<std::remove_const_t<T>> old, Wait wait = {}) {
    struct Watched {
        const AtomicRef<T, operations, scope>& word;
        std::remove_const_t<T> old;
        mutable std::remove_const_t<T> seen;  // a second load might find `old` again
    };
    const Watched watched{word, old, old};
    const auto changed = [](const void* erased) {
        const auto& asked = *static_cast<const Watched*>(erased);
        asked.seen = asked.word.load_acquire();
        return asked.seen != asked.old;
    };
    if (Result<void> waited = detail::wait_until_changed(changed, &watched, wait); !waited) {
        return std::move(waited).error();
    }
    return watched.seen;
}

}  // namespace v0
}  // namespace isthmus
