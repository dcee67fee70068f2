// SPDX-License-Identifier: Apache-2.0
// Slots, which are written while readers read them, and pools of blocks, which outlive their use.
#include "address_nodes.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace isthmus::provenance::nodes {
namespace {

constexpr std::size_t first_chunk_bytes = 4096;
constexpr std::size_t max_chunk_bytes = 64 * 1024;

void* obtain(Budget& budget, std::size_t bytes) {
    const std::size_t used = budget.used.load(std::memory_order_relaxed);
    if (used > budget.limit || bytes > budget.limit - used) return nullptr;
    void* memory = ::operator new (bytes, std::align_val_t{64}, std::nothrow);
    if (memory != nullptr) budget.used.store(used + bytes, std::memory_order_relaxed);
    return memory;
}

void release(Budget& budget, void* memory, std::size_t bytes) {
    if (memory == nullptr) return;
    ::operator delete (memory, std::align_val_t{64});
    budget.used.store(budget.used.load(std::memory_order_relaxed) - bytes, std::memory_order_relaxed);
}

}  // namespace

void Slot::fill(const Record& record) {
    // Each store is a release. A reader that sees one of these values also sees the change of the version that came
    // before, and detects it when it loads the version for the second time.
    base.store(record.base, std::memory_order_release);
    bytes.store(record.bytes, std::memory_order_release);
    id.store(record.id, std::memory_order_release);
    const std::uint64_t kind_and_flags = std::uint64_t{static_cast<std::uint8_t>(record.kind)} | record.flags << 8;
    owner.store(record.device | kind_and_flags << 32, std::memory_order_release);
}

void Slot::fill_divided(std::uint64_t range_base, std::uint64_t first_base, const PlaceTable& places) {
    base.store(range_base, std::memory_order_release);
    bytes.store(0, std::memory_order_release);
    id.store(first_base, std::memory_order_release);
    owner.store(divided_mark, std::memory_order_release);
    holder.store(&places.shape, std::memory_order_release);
}

BlockPool::~BlockPool() {
    while (chunks_ != nullptr) {
        Chunk* next = chunks_->next;
        release(budget_, chunks_, sizeof(Chunk) + chunks_->blocks * block_bytes_);
        chunks_ = next;
    }
    release(budget_, free_, free_places_ * sizeof(void*));
}

bool BlockPool::make_places(std::size_t blocks) {
    if (blocks <= free_places_) return true;
    const std::size_t places = std::max(blocks, 2 * free_places_);
    auto* grown = static_cast<void**>(obtain(budget_, places * sizeof(void*)));
    if (grown == nullptr) return false;
    if (free_count_ != 0) std::memcpy(grown, free_, free_count_ * sizeof(void*));
    release(budget_, free_, free_places_ * sizeof(void*));
    free_ = grown;
    free_places_ = places;
    return true;
}

// Doubles the number of blocks, within limits: a small map stays small, and a large map rarely asks the system.
bool BlockPool::grow() {
    const std::size_t most = std::max<std::size_t>(1, max_chunk_bytes / block_bytes_);
    const std::size_t least = std::max<std::size_t>(1, first_chunk_bytes / block_bytes_);
    const std::size_t blocks = std::clamp(blocks_, least, most);
    if (!make_places(blocks_ + blocks)) return false;
    void* memory = obtain(budget_, sizeof(Chunk) + blocks * block_bytes_);
    if (memory == nullptr) return false;
    chunks_ = new (memory) Chunk{chunks_, blocks};
    blocks_ += blocks;
    for (std::size_t i = blocks; i-- > 0;) {  // in this order, so that the first block is taken first
        std::byte* block = chunks_->block(i, block_bytes_);
        construct_(block, block_bytes_);
        give(block);
    }
    return true;
}

}  // namespace isthmus::provenance::nodes
