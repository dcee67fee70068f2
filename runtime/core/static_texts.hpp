// SPDX-License-Identifier: Apache-2.0
// StaticTexts: texts with static storage by number, so that what refers to one keeps two bytes in place of sixteen.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Thread-safe. Only a text that was not seen before takes a lock, and memory from the heap where there are many.
class StaticTexts {
public:
    // The same for equal texts; 0: the empty one.
    std::uint16_t number(std::string_view text);
    // Of a number that this answered.
    std::string_view text(std::uint16_t number) const noexcept;

private:
    static constexpr std::size_t per_chunk = 63;
    struct Chunk {
        std::array<std::string_view, per_chunk> texts;
        std::unique_ptr<Chunk> next;
    };
    std::uint16_t find(std::string_view text, std::uint16_t count) const noexcept;  // 0: not among the first `count`

    Chunk first_;
    std::atomic<std::uint16_t> count_{0};
    std::mutex adding_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
