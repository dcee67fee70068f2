// SPDX-License-Identifier: Apache-2.0
// One block with its own release, as an Allocator.
#include "buffer_memory.hpp"

#include "buffer_state.hpp"
#include "device_state.hpp"
#include "memory_errors.hpp"
#include "process.hpp"

#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

class OneBlock {
public:
    explicit OneBlock(std::shared_ptr<BufferMemory> memory) : guard_(std::make_shared<Guard>(std::move(memory))) {}
    MemoryKind kind() const noexcept { return guard_->memory->kind; }
    Result<MemoryBlock> allocate(const AllocationRequest&) { return make_error<errors::allocating_from_one_block>(); }
    Result<void> release(const MemoryBlock&, Stream*) {
        guard_->memory->end();
        return {};
    }

private:
    struct Guard {
        explicit Guard(std::shared_ptr<BufferMemory> guarded) : memory(std::move(guarded)) {}
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;
        ~Guard() {
            if (!memory->ended) process::keep_until_exit(memory);
        }
        std::shared_ptr<BufferMemory> memory;
    };
    std::shared_ptr<Guard> guard_;
};

}  // namespace

void lay_over(NewBuffer& buffer, std::shared_ptr<BufferMemory> memory) {
    buffer.be_of_kind(memory->kind);
    const MemoryBlock block = memory->block();
    buffer.explain(memory->reason);
    buffer.facts.in_several = memory->in_several;
    buffer.facts.host = block.host;
    buffer.facts.device_address = block.device;
    if (block.host == nullptr) buffer.facts.host_kind = MemoryKind::unknown;
    buffer.take(block);
    buffer.extras().allocator = OneBlock(std::move(memory));
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
