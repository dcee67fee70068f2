// SPDX-License-Identifier: Apache-2.0
// HeldBlocks: the blocks of memory that a buffer has to give back, and their allocators.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/result.hpp>

#include <cstdint>

namespace isthmus {
inline namespace v0 {
class Stream;
}  // namespace v0
}  // namespace isthmus

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;

// What the maker of a buffer fills in; two blocks if the buffer is staged.
struct BufferBlocks {
    Allocator allocator;
    MemoryBlock block;
    Allocator host_allocator;
    MemoryBlock host_block;
    MemoryBlock adopted_block;   // adopted memory of a staged buffer; otherwise adopted memory is in `block`
    std::uint64_t users_id = 0;  // in the ledger, for a user's allocator that gave no identity
};

// Each block is given back once. Not thread-safe: used only while a buffer is made, released or ended.
class HeldBlocks {
public:
    HeldBlocks() = default;
    HeldBlocks(const HeldBlocks&) = delete;
    HeldBlocks& operator=(const HeldBlocks&) = delete;

    const BufferBlocks* operator->() const noexcept { return &blocks_; }
    // Whether a block has not been given back yet.
    bool any() const noexcept { return blocks_.block || blocks_.host_block || blocks_.adopted_block; }

    // Gives everything back; the device's block in the order of `behind` (nullptr: nothing uses it any more). On an
    // error nothing has changed.
    Result<void> give_back(DeviceState& device, Stream* behind);
    // Called if give_back() failed and the caller does not try again: a user's allocator keeps its block, and adopted
    // memory is released when the driver unregisters it.
    void leave(DeviceState& device, bool adopted);

private:
    friend class NewBuffer;

    BufferBlocks blocks_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
