// SPDX-License-Identifier: Apache-2.0
// NewBuffer: the memory of a buffer's state, and its beginning.
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "state_block.hpp"
#include "told.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// docs/performance.md has what a small buffer takes. More is another line for each buffer.
static_assert(sizeof(StateBlock) <= 512);

template <class T>
struct InStateBlock {
    using value_type = T;
    explicit InStateBlock(StateBlock& of) noexcept : block(&of) {}
    template <class U>
    InStateBlock(const InStateBlock<U>& other) noexcept : block(other.block) {}
    T* allocate(std::size_t) noexcept {
        static_assert(sizeof(T) <= StateBlock::control_bytes);
        static_assert(alignof(T) <= alignof(void*));
        return reinterpret_cast<T*>(block->control);
    }
    void deallocate(T*, std::size_t) noexcept { part_with(*block, StateBlock::without_owner); }
    friend bool operator==(const InStateBlock&, const InStateBlock&) noexcept = default;
    StateBlock* block;
};

struct EndWithLastView {
    void operator()(BufferState* buffer) const {
        if (buffer->views.abandon()) end_buffer(buffer);
    }
};

std::shared_ptr<BufferState> new_state(std::shared_ptr<DeviceState> owner) {
    KeptBlocks& kept = *owner->buffer_states;
    auto* const block = ::new (kept.take(sizeof(StateBlock))) StateBlock;
    block->from = &kept;
    block->words[0] = block->words[1] = 0;
    block->rests = false;
    ::new (static_cast<void*>(block->state)) BufferState(std::move(owner));
    return own(*block);
}

}  // namespace

std::shared_ptr<BufferState> own(StateBlock& block) {
    block.ended.store(0, std::memory_order_relaxed);
    return std::shared_ptr<BufferState>(&block.buffer(), EndWithLastView(), InStateBlock<BufferState>(block));
}

void part_with(StateBlock& block, std::uint8_t which) noexcept {
    constexpr std::uint8_t both = StateBlock::without_state | StateBlock::without_owner;
    // Where the other one has ended, nobody else changes the word any more.
    if ((block.ended.load(std::memory_order_acquire) | which) != both &&
        (block.ended.fetch_or(which, std::memory_order_acq_rel) | which) != both) {
        return;
    }
    if (block.rests) return lay_down(block);
    block.from->give_back(&block);
}

bool begin_again(StateBlock& block, const StreamState* order) {
    BufferState& state = block.buffer();
    if (!state.held.wake(*state.device, order)) return false;
    NewBuffer::begin(state);
    return true;
}

void NewBuffer::of_request(const rules::SharedRequest& request) noexcept {
    StateBlock& block = StateBlock::of(*state_);
    block.words[0] = request.words[0];
    block.words[1] = request.words[1];
}

NewBuffer::NewBuffer(std::shared_ptr<DeviceState> owner)
    : state_(new_state(std::move(owner))), facts(state_->memory.facts_), blocks(state_->held.blocks_) {}

void NewBuffer::be_of_kind(MemoryKind kind) noexcept {
    facts.kind = kind;
    facts.host_kind = rules::host_finds(kind) ? kind : MemoryKind::unknown;
    // This buffer has one memory. Staging needs a second side, which only a staged plan makes.
    const LaunchPath path = device()->paths[static_cast<std::size_t>(kind)].path;
    facts.path = path == LaunchPath::stage ? LaunchPath::refuse : path;
}

void NewBuffer::begin(BufferState& state) {
    using Prefetched = OpenViews::Prefetched;
    const StorageFacts& facts = state.memory.facts_;
    const bool once = state.device->paths[static_cast<std::size_t>(facts.kind)].once;
    state.views.begin(facts.adopted, facts.path != LaunchPath::prefetch ? Prefetched::nothing
                                     : once                             ? Prefetched::once
                                                                        : Prefetched::host_touched);
    state.sides.begin(facts.staged() && facts.bytes > 0, facts.relay != nullptr);
}

std::shared_ptr<BufferState> NewBuffer::make() {
    begin();
    if (device()->observer()) [[unlikely]]
        tell_made(*state_, asked_, asked_kind_);
    return std::move(state_);
}

SecondSide& NewBuffer::second_side() {
    return blocks.make_second(*device()->second_sides);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
