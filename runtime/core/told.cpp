// SPDX-License-Identifier: Apache-2.0
// The marks of buffers and arguments.
#include "told.hpp"

#include "buffer_state.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "process.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <string_view>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using Request = TextOf<216>;  // longer than any

std::string_view name_of(ArgumentUse use) noexcept {
    constexpr std::array<std::string_view, 5> names{"value", "read", "write", "read_write", "concurrent"};
    return names[static_cast<std::size_t>(use)];
}

void append(Request& text, std::string_view key, const TextField& value) {
    TextField::Digits digits;
    text.append(text.view().empty() ? "" : " ").append(key).append("=").append(value.text(digits));
}

// "host=writes_often device=reads_once passes=3": what differs from SharedUse{} follows the two uses.
Request text_of(const SharedUse& use) {
    Request text;
    append(text, "host", name(use.host));
    append(text, "device", name(use.device));
    if (use.prefer != Prefer::throughput) append(text, "prefer", name(use.prefer));
    if (use.device_passes > 0) append(text, "passes", use.device_passes);
    if (use.kind) append(text, "kind", name(*use.kind));
    if (use.updates != AtomicSet::load_store) append(text, "updates", static_cast<std::uint32_t>(use.updates));
    if (use.alignment_bytes != 0) append(text, "alignment", use.alignment_bytes);
    if (use.placement.page_size == PageSize::huge) append(text, "pages", "huge");
    return text;
}

// As uses of one operation are told: what is the same for all of them.
struct Uses {
    // A captured operation runs nothing: its graph's launches tell its uses again.
    Uses(StreamState& stream, std::string_view mode) noexcept : observer(stream.device->observer()) {
        const process::OnStream here;
        const std::lock_guard lock(stream.mutex);
        how = stream.recording != nullptr ? std::string_view("captured") : mode;
        device = static_cast<std::uint32_t>(stream.device->index);
        number = stream.id;
    }
    void tell(ArgumentUse use, ObservedFacts facts) const noexcept {
        facts.device = device;
        facts.stream = number;
        facts.reason = how;
        observer.mark(Mark::argument, name_of(use), [&] { return facts; });
    }
    const Observer& observer;
    std::string_view how;
    std::uint32_t device;
    std::uint64_t number;
};

ObservedFacts facts_of(const BufferState& buffer, std::size_t first, std::size_t bytes) noexcept {
    ObservedFacts facts = buffer.observed();
    facts.address += first;
    facts.bytes = bytes;
    return facts;
}
ObservedFacts facts_of(std::uint64_t address, std::uint64_t bytes) noexcept {
    ObservedFacts facts;
    facts.address = address;
    facts.bytes = bytes;
    return facts;
}

}  // namespace

void tell_made(const BufferState& buffer, const SharedUse* asked, MemoryKind kind) noexcept {
    // The device memory of other code is as good as the device's own.
    const bool adopted = buffer.memory->adopted && buffer.memory->host != nullptr;
    Request request;
    if (asked != nullptr) request = text_of(*asked);
    if (asked == nullptr && kind != MemoryKind::unknown) append(request, "kind", name(kind));
    const bool shared = asked != nullptr && !buffer.memory->adopted;
    buffer.device->observer().mark(Mark::buffer,
                                   adopted  ? "adopted"
                                   : shared ? "shared"
                                            : "kind",
                                   [&] {
                                       ObservedFacts facts = buffer.observed();
                                       facts.reason = request;
                                       return facts;
                                   });
}

void tell_gone(const BufferState& buffer) noexcept {
    buffer.device->observer().mark(Mark::buffer_end, name(buffer.memory->kind), [&] { return buffer.observed(); });
}

void tell_view(const BufferState& buffer, ArgumentUse asked, const rules::ByteSpan& part) noexcept {
    const std::size_t end = std::min(part.end, buffer.memory->bytes);
    buffer.device->observer().mark(Mark::argument, name_of(asked),
                                   [&] { return facts_of(buffer, part.begin, end - std::min(part.begin, end)); });
}

void tell_arguments(StreamState& stream, LaunchMode mode, const LaunchArgument* arguments,
                    const ParameterInfo* parameters, std::size_t count) noexcept {
    const Uses uses(stream, name(mode));
    for (std::size_t at = 0; at < count; ++at) {
        const LaunchArgument& argument = arguments[at];
        if (!argument.is_view) continue;
        const std::uint64_t bytes = argument.raw_count * parameters[at].element_bytes;
        const BufferState* const buffer = argument.buffer != nullptr ? argument.buffer->get() : nullptr;
        uses.tell(parameters[at].use,
                  buffer == nullptr
                      ? facts_of(reinterpret_cast<std::uintptr_t>(argument.raw), bytes)
                      : facts_of(*buffer, argument.first_byte, argument.is_part ? bytes : buffer->memory->bytes));
    }
}

void tell_use(StreamState& stream, const BufferState& buffer, ArgumentUse use, const rules::ByteRange& range) noexcept {
    const std::size_t end = std::min(range.end(), buffer.memory->bytes);
    const std::size_t first = std::min(range.offset, end);
    Uses(stream, {}).tell(use, facts_of(buffer, first, end - first));
}

void tell_use(StreamState& stream, std::uint64_t address, ArgumentUse use, const rules::ByteRange& range) noexcept {
    Uses(stream, {}).tell(use, facts_of(address + range.offset, range.end() - range.offset));
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
