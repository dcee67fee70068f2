// SPDX-License-Identifier: Apache-2.0
// SealBook: one sealed scope. Whether what a call would do is refused, and how often each call came to it.
#pragma once

#include <isthmus/sealed_act.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Thread-safe, and without locks and heap, except places(). A place is found by the address of its call's name: names
// have static storage.
class SealBook {
public:
    static constexpr std::size_t most_places = 64;  // further ones count in the last place, under the name "others"

    SealBook() noexcept = default;
    SealBook(const SealBook&) = delete;
    SealBook& operator=(const SealBook&) = delete;

    // Forgets all places. Expects no other user.
    void begin(bool refuses) noexcept;
    bool refuses() const noexcept { return refuses_.load(std::memory_order_relaxed); }
    // Counts that `call` would do this. true: it must not.
    bool stops(SealedAct act, std::string_view call) noexcept {
        note(act, call);
        return refuses();
    }
    void note(SealedAct act, std::string_view call) noexcept;
    std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
    std::vector<SealedPlace> places() const;  // in the order of their first time

private:
    struct Place {
        std::atomic<const char*> call{nullptr};  // set once, behind what follows but `times`
        std::atomic<std::size_t> length{0};
        std::atomic<SealedAct> act{SealedAct::use_heap};
        std::atomic<std::uint64_t> times{0};
    };
    std::atomic<bool> refuses_{true};
    std::atomic<std::uint64_t> count_{0};
    std::atomic<std::size_t> taken_{0};
    std::array<Place, most_places> places_;
};

// The innermost sealed scope of this thread; nullptr: none. Initial-exec: one load, and no call.
extern constinit thread_local SealBook* sealed_here [[gnu::tls_model("initial-exec")]];

// For steps that cannot be refused any more: the thread's scope counts them.
inline void note_heap(std::string_view call) noexcept {
    if (sealed_here != nullptr) sealed_here->note(SealedAct::use_heap, call);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
