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
static_assert(sizeof(StateBlock) == 128);
static_assert(sizeof(BufferStorage) == 32 && sizeof(OpenViews) == 16 && sizeof(BufferState) == 80);

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
    DeviceState& device = *owner;
    KeptBlocks& kept = *device.buffer_states;
    bool fresh = false;
    auto* const block = ::new (kept.take(sizeof(StateBlock), &fresh)) StateBlock;
    block->first_word = 0;
    block->second_word = 0;
    ::new (static_cast<void*>(block->state)) BufferState(std::move(owner));
    std::shared_ptr<BufferState> made = own(*block);
    // A thread that no sealed scope binds: a sealed one still finds a book for each of its own buffers.
    if (fresh && device.buffer_books->keeps_for_each()) [[unlikely]]
        device.buffer_books->keep_for_each_of(kept, sizeof(BufferBook));
    return made;
}

}  // namespace

std::shared_ptr<BufferState> own(StateBlock& block) {
    block.ended.store(0, std::memory_order_relaxed);
    return std::shared_ptr<BufferState>(&block.buffer(), EndWithLastView(), InStateBlock<BufferState>(block));
}

void part_with(StateBlock& block, std::uint8_t which) noexcept {
    constexpr std::uint8_t both = StateBlock::without_state | StateBlock::without_owner;
    // Where the other one has ended, nobody else changes the word any more.
    std::uint8_t now = block.ended.load(std::memory_order_acquire) | which;
    if ((now & both) != both) now = block.ended.fetch_or(which, std::memory_order_acq_rel) | which;
    if ((now & both) != both) return;
    if ((now & StateBlock::rests) != 0) return lay_down(block);
    block.from().give_back(&block);
}

void StateBlock::end_state() noexcept {
    KeptBlocks* const kept = buffer().device->buffer_states.get();
    std::destroy_at(&buffer());
    ::new (static_cast<void*>(state)) KeptBlocks*(kept);
}

bool begin_again(StateBlock& block, const StreamState* order) {
    BufferState& state = block.buffer();
    if (!state.blocks().wake(*state.device, order)) return false;
    NewBuffer::begin(state);
    return true;
}

// Memory of the driver begins at its first byte, whatever its last owner's alignment made of it.
bool begin_with(StateBlock& block, Piece& piece, std::size_t bytes, std::string_view reason) {
    return NewBuffer::begin_with(block.buffer(), piece, bytes, reason);
}

bool NewBuffer::begin_with(BufferState& state, Piece& piece, std::size_t bytes, std::string_view reason) {
    MemoryBlock memory = piece.block;
    memory.bytes = bytes;
    memory.kind = state.memory->kind;  // ordinary memory has two names
    if (piece.host_part() == nullptr) {
        const platform::Allocation allocation = piece.allocation();
        memory.device = allocation.device;
        if (memory.host != nullptr) memory.host = allocation.host;
    }
    if (state.device->books->ledger.wake(piece, memory) == 0) return false;
    state.views.out_of_line.set_piece(&piece);
    auto& facts = static_cast<StorageFacts&>(state.memory);
    facts.bytes = bytes;
    facts.host = rules::host_finds(memory.kind) ? memory.host : nullptr;
    facts.device_address = memory.device != 0 ? memory.device : reinterpret_cast<std::uintptr_t>(memory.host);
    if (!reason.empty()) facts.reason = state.device->reasons.number(reason);
    begin(state);
    return true;
}

void NewBuffer::of_request(const rules::SharedRequest& request) noexcept {
    StateBlock& block = StateBlock::of(*state_);
    constexpr std::uint64_t all = (std::uint64_t{1} << rules::SharedRequest::first_word_bits) - 1;
    block.first_word = request.words[0] & all;
    block.second_word = request.words[1];
}

NewBuffer::NewBuffer(std::shared_ptr<DeviceState> owner)
    : state_(new_state(std::move(owner))), facts(static_cast<StorageFacts&>(state_->memory)) {}

void NewBuffer::explain(std::string_view reason) {
    facts.reason = device()->reasons.number(reason);
}

void NewBuffer::be_of_kind(MemoryKind kind) noexcept {
    facts.kind = kind;
    facts.host_kind = rules::host_finds(kind) ? kind : MemoryKind::unknown;
    // This buffer has one memory. Staging needs a second side, which only a staged plan makes.
    const LaunchPath path = device()->paths[static_cast<std::size_t>(kind)].path;
    facts.path = path == LaunchPath::stage ? LaunchPath::refuse : path;
}

void NewBuffer::begin(BufferState& state) {
    using Prefetched = OpenViews::Prefetched;
    const StorageFacts& facts = *state.memory.operator->();
    const bool once = state.device->paths[static_cast<std::size_t>(facts.kind)].once;
    state.views.begin(facts.adopted, facts.path != LaunchPath::prefetch ? Prefetched::nothing
                                     : once                             ? Prefetched::once
                                                                        : Prefetched::host_touched);
    if (!facts.staged() && facts.path != LaunchPath::attach) return;
    state.make_extras().sides.begin(facts.staged() && facts.bytes > 0, state.relay() != nullptr);
}

std::shared_ptr<BufferState> NewBuffer::make() {
    begin();
    if (device()->observer()) [[unlikely]]
        tell_made(*state_, asked_, asked_kind_);
    return std::move(state_);
}

SecondSide& NewBuffer::second_side() {
    std::unique_ptr<SecondSide, SecondSide::End>& second = extras().second;
    if (!second) second.reset(begin_block<SecondSide>(device()->second_sides.get()));
    return *second;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
