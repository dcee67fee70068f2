// SPDX-License-Identifier: Apache-2.0
// RecordedEvent: what an observer was told, as it is kept until the file is written.
#pragma once

#include <isthmus/observer.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace isthmus::trace {

enum class Phase : std::uint8_t { begin, end, mark };

// A text that is kept as far as it fits. No constructor, as RecordedEvent has none.
template <std::size_t room>
struct KeptText {
    std::uint8_t length;
    char text[room];

    void keep(std::string_view whole) noexcept {
        static_assert(room < 256);
        length = static_cast<std::uint8_t>(std::min(whole.size(), room));
        // Not in the middle of a character of several bytes.
        while (length > 0 && length < whole.size() && (static_cast<unsigned char>(whole[length]) & 0xC0) == 0x80) {
            --length;
        }
        whole.copy(text, length);  // unlike memcpy(), also an empty text without an address
    }
    std::string_view view() const noexcept { return {text, length}; }
};

// No constructor: a block of events is not touched before they are recorded.
struct RecordedEvent {
    std::uint64_t ns;
    std::uint64_t stream;
    std::uint64_t position;
    std::uint64_t bytes;
    std::uint64_t address;
    std::uint32_t what;  // a Span or a Mark
    std::uint32_t device;
    std::int32_t code;
    Phase phase;
    MemoryKind kind;
    KeptText<4> error;
    KeptText<38> name;
    KeptText<218> reason;

    void keep(Phase is, std::uint32_t which, std::string_view named, const ObservedFacts& facts) noexcept {
        stream = facts.stream;
        position = facts.position;
        bytes = facts.bytes;
        address = facts.address;
        what = which;
        device = facts.device;
        code = static_cast<std::int32_t>(facts.code);
        phase = is;
        kind = facts.kind;
        error.keep(facts.error);
        name.keep(named);
        reason.keep(facts.reason);
    }
    bool is(Span span) const noexcept { return phase != Phase::mark && what == static_cast<std::uint32_t>(span); }
    bool is(Mark mark) const noexcept { return phase == Phase::mark && what == static_cast<std::uint32_t>(mark); }
};
static_assert(sizeof(RecordedEvent) == 320);

}  // namespace isthmus::trace
