// SPDX-License-Identifier: Apache-2.0
// StateBlock: the memory of a buffer's state.
#pragma once

#include "buffer_state.hpp"
#include "kept_blocks.hpp"
#include "lane_rules.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace isthmus {
inline namespace v0 {
namespace detail {

// A block of the device's KeptBlocks, two cache lines: the state, and the control block of its shared_ptr. Either may
// end last: views or deferred work may keep the state after its last owner, and weak references the control block after
// the state. The state has no reference to itself, because a shared_ptr without weak references ends without an atomic
// operation. Behind the state there is room for the control block of libstdc++: two words of its own, the pointer and
// the allocator.
struct StateBlock {
    static constexpr std::size_t control_bytes = 4 * sizeof(void*);
    alignas(64) std::byte state[sizeof(BufferState)];
    alignas(void*) std::byte control[control_bytes];
    // Of its rules::SharedRequest; 0: none that a lane serves.
    std::uint64_t first_word : rules::SharedRequest::first_word_bits;
    // Which of the two has ended. Who ends the second gives the block back, or lays the buffer down.
    static constexpr std::uint8_t without_state = 1;
    static constexpr std::uint8_t without_owner = 2;
    static constexpr std::uint8_t rests = 4;  // its state does not end with its owner, but is laid down
    std::atomic<std::uint8_t> ended;
    std::uint64_t second_word;

    rules::SharedRequest request() noexcept { return {buffer().memory->bytes, {first_word, second_word}}; }
    BufferState& buffer() noexcept { return *std::launder(reinterpret_cast<BufferState*>(state)); }
    static StateBlock& of(BufferState& buffer) noexcept {  // the state is the first member
        return *reinterpret_cast<StateBlock*>(&buffer);
    }
    // Ends the state. Its memory then says where the block comes from: the device may end with the state.
    void end_state() noexcept;
    KeptBlocks& from() noexcept { return **std::launder(reinterpret_cast<KeptBlocks**>(state)); }
};

// A shared_ptr of the state in its block, which has none yet.
std::shared_ptr<BufferState> own(StateBlock& block);
// A buffer that rests becomes a new one, with the memory that it has. false: its memory has to go to the cache.
// `order`: the stream in whose order that was allocated.
bool begin_again(StateBlock& block, const StreamState* order);
// The same with other memory, a parked piece that the cache has handed out, for so many bytes. `reason`: why the memory
// is of its kind, where that may have changed; static storage. false: nobody can have the piece, which stays parked.
bool begin_with(StateBlock& block, Piece& piece, std::size_t bytes, std::string_view reason);
// The state or the control block of this block has ended.
void part_with(StateBlock& block, std::uint8_t which) noexcept;
// Called when the last reference to a buffer has gone that rests.
void lay_down(StateBlock& block) noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
