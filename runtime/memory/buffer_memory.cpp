// A block with an end of its own behind an Allocator.
#include "buffer_memory.hpp"

#include "allocation.hpp"
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "process.hpp"

#include <utility>

namespace isthmus::inline v0::detail {
namespace {

class OneBlock {
public:
    explicit OneBlock(std::shared_ptr<BufferMemory> memory) : guard_(std::make_shared<Guard>(std::move(memory))) {}
    MemoryKind kind() const noexcept { return guard_->memory->kind; }
    Result<MemoryBlock> allocate(const AllocationRequest&) {
        return Error(Code::unsupported, "this allocator has one block, which its buffer holds",
                     "allocate from the device, or grow the buffer");
    }
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

std::shared_ptr<BufferState> buffer_over(const std::shared_ptr<DeviceState>& device,
                                         std::shared_ptr<BufferMemory> memory) {
    std::shared_ptr<BufferState> state = BufferState::make(device);
    be_of_kind(*state, memory->kind);
    state->reason = memory->reason;
    state->in_several = memory->in_several;
    state->block = memory->block();
    state->host = state->block.host;
    state->device_address = state->block.device;
    if (state->host == nullptr) state->host_kind = MemoryKind::unknown;
    state->allocator = OneBlock(std::move(memory));
    return state;
}

}  // namespace isthmus::inline v0::detail
