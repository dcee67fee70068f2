// SPDX-License-Identifier: Apache-2.0
// StaticTexts: finds texts, and adds them.
#include "static_texts.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {

std::uint16_t StaticTexts::find(std::string_view text, std::uint16_t count) const noexcept {
    const Chunk* chunk = &first_;
    for (std::size_t at = 0; at < count; ++at) {
        if (at != 0 && at % per_chunk == 0) chunk = chunk->next.get();
        if (chunk->texts[at % per_chunk] == text) return static_cast<std::uint16_t>(at + 1);
    }
    return 0;
}

std::uint16_t StaticTexts::number(std::string_view text) {
    if (text.empty()) return 0;
    // Acquire, here and in text(): pairs with the release below.
    if (const std::uint16_t found = find(text, count_.load(std::memory_order_acquire)); found != 0) return found;
    const std::lock_guard lock(adding_);
    const std::uint16_t count = count_.load(std::memory_order_relaxed);
    if (const std::uint16_t found = find(text, count); found != 0) return found;
    Chunk* chunk = &first_;
    for (std::size_t before = per_chunk; before <= count; before += per_chunk) {
        if (chunk->next == nullptr) chunk->next = std::make_unique<Chunk>();
        chunk = chunk->next.get();
    }
    chunk->texts[count % per_chunk] = text;
    count_.store(static_cast<std::uint16_t>(count + 1), std::memory_order_release);
    return static_cast<std::uint16_t>(count + 1);
}

std::string_view StaticTexts::text(std::uint16_t number) const noexcept {
    if (number == 0 || number > count_.load(std::memory_order_acquire)) return {};
    const Chunk* chunk = &first_;
    for (std::size_t before = per_chunk; before < number; before += per_chunk) chunk = chunk->next.get();
    return chunk->texts[(number - 1) % per_chunk];
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
