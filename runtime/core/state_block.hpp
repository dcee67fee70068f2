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

// A block of the device's KeptBlocks: the state, and the control block of its shared_ptr. Either may end last: views or
// deferred work may keep the state after its last owner, and weak references the control block after the state. The
// state has no reference to itself, because a shared_ptr without weak references ends without an atomic operation.
// Behind the state there is room for the control block of libstdc++: two words of its own, the pointer and the
// allocator.
struct StateBlock {
    static constexpr std::size_t control_bytes = 4 * sizeof(void*);
    alignas(64) std::byte state[sizeof(BufferState)];
    alignas(void*) std::byte control[control_bytes];
    KeptBlocks* from;
    std::uint64_t words[2];  // of its rules::SharedRequest; 0: none that a lane serves
    // Which of the two has ended. Who ends the second gives the block back, or lays the buffer down.
    static constexpr std::uint8_t without_state = 1;
    static constexpr std::uint8_t without_owner = 2;
    std::atomic<std::uint8_t> ended;
    bool rests;  // its state does not end with its owner, but is laid down. Set before without_state

    rules::SharedRequest request() noexcept { return {buffer().memory->bytes, {words[0], words[1]}}; }
    BufferState& buffer() noexcept { return *std::launder(reinterpret_cast<BufferState*>(state)); }
    static StateBlock& of(BufferState& buffer) noexcept {  // the state is the first member
        return *reinterpret_cast<StateBlock*>(&buffer);
    }
};

// A shared_ptr of the state in its block, which has none yet.
std::shared_ptr<BufferState> own(StateBlock& block);
// A buffer that rests becomes a new one, with the memory that it has. false: its memory has to go to the cache.
// `order`: the stream in whose order that was allocated.
bool begin_again(StateBlock& block, const StreamState* order);
// The state or the control block of this block has ended.
void part_with(StateBlock& block, std::uint8_t which) noexcept;
// Called when the last reference to a buffer has gone that rests.
void lay_down(StateBlock& block) noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
