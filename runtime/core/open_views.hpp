// OpenViews: what the host has open of a buffer, and the lock under which that and the rest of the buffer change.
#pragma once

#include "part_book.hpp"
#include "view_lock.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace isthmus::inline v0::detail {

// Lockable (std::lock_guard): the buffer's lock. Functions expect it where nothing else is said. Whatever changes
// something that a view would have to wait for, to copy, to note or to refuse calls open_slowly() before it unlocks.
class OpenViews {
public:
    OpenViews() = default;
    // `moves_pages`: launches prefetch what the host touched.
    OpenViews(bool host_touched, bool moves_pages) noexcept : host_touched_(host_touched), moves_pages_(moves_pages) {}
    OpenViews(const OpenViews&) = delete;
    OpenViews& operator=(const OpenViews&) = delete;

    void lock() noexcept { word_.lock(); }
    bool try_lock() noexcept { return word_.try_lock(); }
    void unlock() noexcept { word_.unlock(); }

    // These expect no lock; without it, what is found may be over.
    bool open_at_once(bool writes) noexcept { return word_.open_at_once(writes); }
    rules::ViewWord seen() const noexcept { return word_.seen(); }
    // Closes a view. true: it was the last that held the buffer, which is to be ended. Expects the lock not to be held.
    bool close(ArgumentUse use, const rules::ByteSpan& span) noexcept {
        return counted(use, span) ? word_.close(rules::writes(use)) : close_another({use, span});
    }
    // Nothing but views holds the buffer any more. true: nothing does, and it is to be ended.
    bool abandon() noexcept { return word_.abandon(); }
    // Was the buffer released, or is about to be, although a part of it is there? begin_release() sets it with the lock
    // held, so that a use that finds it unset there is waited for.
    bool released() const noexcept { return releasing_.load(std::memory_order_acquire); }
    void release_failed() noexcept { releasing_.store(false, std::memory_order_release); }
    // Were parts made, of whatever memory? Others than the owner may use it then.
    bool has_parts() const noexcept { return has_parts_.load(std::memory_order_acquire); }
    void note_part() noexcept { has_parts_.store(true, std::memory_order_release); }
    // Are uses of its parts told apart? Set for good by the first part of memory whose parts can be used by themselves.
    // Before, and of other memory, each use is one of all of it.
    bool parted() const noexcept { return parted_.load(std::memory_order_acquire); }

    // A view that may not go together with this use.
    OpenUse open_against(ArgumentUse use, const rules::ByteSpan& span = {}) const noexcept {
        const rules::ViewWord open = word_.seen();
        if (open.has(rules::ViewWord::writer)) return {ArgumentUse::read_write, {}};
        if (open.readers() > 0 && use != ArgumentUse::read) return {ArgumentUse::read, {}};
        if (concurrents_ > 0 && use != ArgumentUse::concurrent) return {ArgumentUse::concurrent, {}};
        return parts_ == nullptr ? OpenUse{} : parts_->open_against(use, span);
    }
    // No further view of all of the buffer can be counted.
    bool full() const noexcept { return word_.seen().readers() >= rules::ViewWord::most_readers; }
    // Expects open_against() to answer nothing, and not full().
    void open(const OpenUse& view);

    void open_slowly() noexcept { word_.open_slowly(); }
    void allow_at_once(bool read_only) noexcept { word_.allow_at_once(read_only); }
    // Would opening a view have nothing to note or to refuse here?
    bool plain() const noexcept { return parts_ == nullptr && host_touched_ && !released(); }
    // false: a view is open. From here on no part is opened or used.
    bool begin_release() noexcept {
        if (open_against(ArgumentUse::write)) return false;
        open_slowly();
        releasing_.store(true, std::memory_order_release);
        return true;
    }

    // Uses of parts are told apart from now on; `uses` is what was used before, each of all of it.
    template <class Uses>
    void make_parted(const Uses& uses) {
        if (parts_ != nullptr) return;
        open_slowly();
        parts_ = std::make_unique<PartBook>();
        for (const auto& use : uses) parts_->touched(use.stream.get(), use);
        if (host_touched_) parts_->at_host.add({});
        parted_.store(true, std::memory_order_release);
    }
    // A stream's operation. Nothing, where parts are not told apart. `done`: see PartBook::touch().
    template <class Done>
    void touch(const void* stream, std::uint64_t position, ArgumentUse use, const rules::ByteSpan& span, Done done) {
        if (parts_ != nullptr) parts_->touch(stream, position, use, span, done);
    }
    void forget(const void* stream) noexcept {
        if (parts_ != nullptr) parts_->forget(stream);
    }
    LastUse last_use(const void* stream, const LastUse& all, const rules::ByteSpan& span) const noexcept {
        return parts_ == nullptr || span.whole() ? all : parts_->last_use(stream, span);
    }

    // Prefetch: the host had it open since the device's last use, so that its pages may be on the host.
    void note_host_touched() noexcept { host_touched_ = true; }
    // The same of parts; nullptr: they are not told apart.
    const rules::SpanSet* at_host() const noexcept { return parts_ == nullptr ? nullptr : &parts_->at_host; }
    bool pages_at_host(const rules::ByteSpan& span) const noexcept {
        return parts_ == nullptr ? host_touched_ : parts_->at_host.meets(span) && !parts_->any_open(span);
    }
    // A prefetch moves these bytes' pages to the device.
    void moved_to_device(const rules::ByteSpan& span) {
        host_touched_ = false;
        if (parts_ != nullptr) parts_->at_host.remove(span);
    }

private:
    friend class NewBuffer;
    void begin(bool host_touched, bool moves_pages) noexcept {
        host_touched_ = host_touched;
        moves_pages_ = moves_pages;
    }

    // Of all of the buffer: the lock's word counts views of it that are not concurrent.
    static bool counted(ArgumentUse use, const rules::ByteSpan& span) noexcept {
        return span.whole() && use != ArgumentUse::concurrent;
    }
    bool close_another(const OpenUse& view) noexcept;

    ViewLock word_;
    int concurrents_ = 0;              // open views of all of it for concurrent use
    std::unique_ptr<PartBook> parts_;  // set once
    std::atomic<bool> parted_{false};
    std::atomic<bool> has_parts_{false};
    std::atomic<bool> releasing_{false};
    bool host_touched_ = false;  // where parts are told apart, their book knows
    bool moves_pages_ = false;   // constant
};

}  // namespace isthmus::inline v0::detail
