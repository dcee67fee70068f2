// SPDX-License-Identifier: Apache-2.0
// PartBook: which streams and host scopes use which bytes of a buffer, once parts of it are used. Pure bookkeeping.
#pragma once

#include "few.hpp"
#include "seal_book.hpp"
#include "sharing_rules.hpp"
#include "span_set.hpp"

#include <cstddef>
#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

// The last positions at which a stream uses something.
struct LastUse {
    std::uint64_t last = 0;        // of the last operation that uses it
    std::uint64_t last_write = 0;  // of the last operation that writes it
    std::uint64_t last_plain = 0;  // of the last operation that uses it other than concurrently

    void raise(std::uint64_t position, ArgumentUse use) noexcept;
    void join(const LastUse& other) noexcept;
    // The position behind which a host view of this use may begin: that of the last operation that may not run beside
    // it.
    std::uint64_t before(ArgumentUse host) const noexcept {
        if (host == ArgumentUse::concurrent) return last_plain;
        return host == ArgumentUse::read ? last_write : last;
    }
};

// What the host, or a native scope, has open; `use` is value if nothing is.
struct OpenUse {
    ArgumentUse use = ArgumentUse::value;
    rules::ByteSpan span;
    const char* native = nullptr;  // of a native scope: the name of its work
    explicit operator bool() const noexcept { return use != ArgumentUse::value; }
};

// Guarded by its buffer's mutex. Streams are only names here: code that removes a stream from the buffer's uses must
// call forget(), too. Takes memory from the heap beyond two open scopes, or four streams and ranges, at one time; the
// thread's sealed scope then counts it.
class PartBook {
public:
    // Host scopes of parts; the buffer itself counts those of the whole.
    void opened(const OpenUse& scope) {
        if (open_.full()) note_heap("operator new");
        open_.push_back(scope);
    }
    bool any_open() const noexcept { return !open_.empty(); }   // even of no bytes
    bool any_open(const rules::ByteSpan& span) const noexcept;  // in these bytes
    // Bytes that the host had open since the device's last use of them, so that pages of managed memory may be in host
    // memory.
    rules::SpanSet at_host;
    void closed(const OpenUse& scope) noexcept;
    // An open scope that conflicts with this use of these bytes.
    OpenUse open_against(ArgumentUse use, const rules::ByteSpan& span) const noexcept;

    // Notes an operation. `done(stream, position)`: whether it is known to have ended.
    template <class Done>
    void touch(const void* stream, std::uint64_t position, ArgumentUse use, const rules::ByteSpan& span, Done done) {
        if (used_.size() >= limit_) make_room(done);
        enter(stream, span).raise(position, use);
    }
    // Enters the uses from before there were parts.
    void touched(const void* stream, const LastUse& all) { enter(stream, {}).join(all); }
    void forget(const void* stream) noexcept;
    // The uses of these bytes by the stream's operations.
    LastUse last_use(const void* stream, const rules::ByteSpan& span) const noexcept;
    std::size_t size() const noexcept { return used_.size(); }

    static constexpr std::size_t most = 1024;  // above this, ranges are merged: views then wait for more

private:
    struct Used {
        const void* stream;
        rules::ByteSpan span;
        LastUse use;
    };
    template <class Done>
    void make_room(Done done) {
        used_.erase_if([&](const Used& one) { return done(one.stream, one.use.last); });
        if (used_.size() >= most) take_together();
        limit_ = used_.size() * 2 < first_limit ? first_limit : used_.size() * 2;
        if (limit_ > most) limit_ = most;
    }
    LastUse& enter(const void* stream, const rules::ByteSpan& span);
    void take_together();

    static constexpr std::size_t first_limit = 64;
    Few<OpenUse, 2> open_;
    Few<Used, 4> used_;  // one per stream and range
    std::size_t limit_ = first_limit;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
