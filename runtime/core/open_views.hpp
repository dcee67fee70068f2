// SPDX-License-Identifier: Apache-2.0
// OpenViews: the open host views and native scopes of a buffer, and the lock that guards them and the rest of the
// buffer.
#pragma once

#include "out_of_line.hpp"
#include "part_book.hpp"
#include "view_lock.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Lockable (std::lock_guard): the buffer's lock. Functions expect it unless stated otherwise. Before the unlock, a
// change that gives a view something to wait for, copy, note or refuse calls open_slowly().
class OpenViews {
public:
    OpenViews() = default;
    // What launches prefetch.
    enum class Prefetched : std::uint8_t {
        nothing,
        host_touched,  // what the host touched
        once,          // everything, before its first use
    };
    OpenViews(bool host_touched, Prefetched prefetched) noexcept { begin(host_touched, prefetched); }
    OpenViews(const OpenViews&) = delete;
    OpenViews& operator=(const OpenViews&) = delete;

    void lock() noexcept { word_.lock(); }
    bool try_lock() noexcept { return word_.try_lock(); }
    void unlock() noexcept { word_.unlock(); }

    // These expect no lock; without it, the answer may be outdated.
    bool open_at_once(bool writes) noexcept { return word_.open_at_once(writes); }
    rules::ViewWord seen() const noexcept { return word_.seen(); }
    // Closes a view. true: it was the last holder of the buffer, which the caller has to end. Expects the lock not to
    // be held.
    bool close(ArgumentUse use, const rules::ByteSpan& span) noexcept {
        return counted(use, span) ? word_.close(rules::writes(use)) : close_another({use, span});
    }
    // The same for a view that is counted in the lock's word: of the whole buffer, and not concurrent.
    static bool counted(ArgumentUse use, const rules::ByteSpan& span) noexcept {
        return span.whole() && use != ArgumentUse::concurrent;
    }
    bool close_counted(bool writes) noexcept { return word_.close(writes); }
    // From now on only views hold the buffer. true: none does, and the caller has to end it.
    bool abandon() noexcept { return word_.abandon(); }
    // Whether the buffer was released, or is about to be, although a part exists. begin_release() sets it under the
    // lock: the release waits for a use that found it unset there.
    bool released() const noexcept { return is(releasing); }
    void release_failed() noexcept {
        about_.fetch_and(static_cast<std::uint8_t>(~releasing), std::memory_order_release);
    }
    // Whether parts were made, of any memory: others than the owner may then use it.
    bool has_parts() const noexcept { return is(with_parts); }
    void note_part() noexcept {
        if (!has_parts()) become(with_parts);
    }
    // Whether uses of parts are distinguished. Set for good by the first part of memory whose parts can be used
    // separately; otherwise each use counts for the whole buffer.
    bool parted() const noexcept { return is(distinguished); }

    // An open view, or a mark of a native scope other than `own`, that conflicts with this use.
    OpenUse open_against(ArgumentUse use, const rules::ByteSpan& span = {}, const void* own = nullptr) const noexcept {
        const rules::ViewWord open = word_.seen();
        const bool others = open.has(rules::ViewWord::others);
        if (others) {
            if (const OpenUse marked = marked_against(use, span, own)) return marked;
        }
        if (open.has(rules::ViewWord::writer)) return {ArgumentUse::read_write, {}};
        if (open.readers() > 0 && use != ArgumentUse::read) return {ArgumentUse::read, {}};
        return others ? others_against(use, span) : OpenUse{};
    }
    // Whether no further view of the whole buffer can be counted.
    bool full() const noexcept { return word_.seen().readers() >= rules::ViewWord::max_readers; }
    // Expects open_against() to return nothing, and full() to be false.
    void open(const OpenUse& view);

    // Marks of native scopes: from mark() to unmark(), other code works on these bytes, and conflicting views and uses
    // by a device are refused. A mark counts as an open view that the word does not count. The scope holds the buffer.
    void mark(const void* scope, const OpenUse& use, KeptBlocks* kept = nullptr);  // `kept`: as for make_parted()
    void unmark(const void* scope) noexcept;  // all marks of the scope; expects the lock not to be held
    bool marked() const noexcept {
        const BufferExtras* const extras = out_of_line.extras();
        return extras != nullptr && extras->has_natives();
    }

    void open_slowly() noexcept { word_.open_slowly(); }
    void allow_at_once(bool read_only) noexcept { word_.allow_at_once(read_only); }
    // Whether opening a view finds nothing to note or to refuse here.
    bool plain() const noexcept { return !parted() && host_touched_ && !released(); }
    // false: a view is open. Otherwise no part can be opened or used from here on.
    bool begin_release() noexcept {
        if (open_against(ArgumentUse::write)) return false;
        open_slowly();
        become(releasing);
        return true;
    }

    // From now on uses of parts are distinguished. `uses`: the earlier uses, each of the whole buffer. `kept`: the
    // blocks that give what that takes; nullptr: the heap does. The caller has made the extras, unless it is a test.
    template <class Uses>
    void make_parted(const Uses& uses, KeptBlocks* kept = nullptr) {
        if (parted()) return;
        open_slowly();
        PartBook& made = out_of_line.make_extras().make_parts(kept);
        for (const auto& use : uses) made.touched(use.stream.get(), use);
        if (host_touched_ && !populated_) made.at_host.add({});
        become(distinguished);
    }
    // Notes a stream's operation; nothing if parts are not distinguished. `done`: see PartBook::touch().
    template <class Done>
    void touch(const void* stream, std::uint64_t position, ArgumentUse use, const rules::ByteSpan& span, Done done) {
        if (PartBook* const book = parts()) book->touch(stream, position, use, span, done);
    }
    void forget(const void* stream) noexcept {
        if (PartBook* const book = parts()) book->forget(stream);
    }
    LastUse last_use(const void* stream, const LastUse& all, const rules::ByteSpan& span) const noexcept {
        const PartBook* const book = span.whole() ? nullptr : parts();
        return book == nullptr ? all : book->last_use(stream, span);
    }

    // For prefetches: the host had it open since the device's last use, so that its pages may be in host memory.
    void note_host_touched() noexcept { host_touched_ = true; }
    // The same by part; nullptr: parts are not distinguished.
    const rules::SpanSet* at_host() const noexcept {
        const PartBook* const book = parts();
        return book == nullptr ? nullptr : &book->at_host;
    }
    bool pages_at_host(const rules::ByteSpan& span) const noexcept {
        if (populated_) return false;
        const PartBook* const book = parts();
        return book == nullptr ? host_touched_ : book->at_host.meets(span) && !book->any_open(span);
    }
    // Called when a prefetch moves these bytes' pages to the device.
    void moved_to_device(const rules::ByteSpan& span) {
        if (prefetched_ == Prefetched::once) {
            populated_ = !parted();
        } else {
            host_touched_ = false;
        }
        if (PartBook* const book = parts()) book->at_host.remove(span);
    }

private:
    friend class NewBuffer;
    void begin(bool host_touched, Prefetched prefetched) noexcept {
        word_.begin();
        host_touched_ = host_touched || prefetched == Prefetched::once;
        prefetched_ = prefetched;
        populated_ = false;
    }

    bool close_another(const OpenUse& view) noexcept;
    // Whether something is open that the word does not count. The word says so, too (ViewWord::others).
    bool others() const noexcept;
    OpenUse others_against(ArgumentUse use, const rules::ByteSpan& span) const noexcept;
    OpenUse marked_against(ArgumentUse use, const rules::ByteSpan& span, const void* own) const noexcept;
    PartBook* parts() const noexcept { return parted() ? out_of_line.extras()->parts.get() : nullptr; }

    // In about_.
    static constexpr std::uint8_t with_parts = 1;     // parts were made
    static constexpr std::uint8_t distinguished = 2;  // uses of parts are
    static constexpr std::uint8_t releasing = 4;      // or released
    bool is(std::uint8_t bit) const noexcept { return (about_.load(std::memory_order_acquire) & bit) != 0; }
    void become(std::uint8_t bit) noexcept { about_.fetch_or(bit, std::memory_order_release); }

    ViewLock word_;
    std::atomic<std::uint8_t> about_{0};
    bool host_touched_ = false;                    // if parts are distinguished, PartBook::at_host counts
    Prefetched prefetched_ = Prefetched::nothing;  // constant
    bool populated_ = false;                       // Prefetched::once, and the prefetch is issued

public:
    // Also what other members of the buffer have out of line. Ends first.
    OutOfLine out_of_line;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
