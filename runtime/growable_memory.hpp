// GrowableMemory: reserved addresses of one buffer, and the handles that were put there so far.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/growable_buffer.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include "virtual_memory_rules.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace isthmus::inline v0::detail {

struct DeviceState;

// Not thread-safe: growing is its buffer's owner's. Its end gives everything back, newest first.
class GrowableMemory {
public:
    virtual ~GrowableMemory() = default;
    GrowableMemory(const GrowableMemory&) = delete;
    GrowableMemory& operator=(const GrowableMemory&) = delete;

    // So many bytes, a multiple of the granularity, behind what is there. On an error nothing has changed.
    virtual Result<void> extend(std::size_t bytes) = 0;
    // The newest handle, which nobody uses any more. On an error nothing has changed.
    virtual Result<void> give_back_last() = 0;
    // Everything, which nobody uses any more. Tries all, and answers with the first failure.
    virtual Result<void> end() = 0;
    virtual MemoryBlock block() const = 0;  // all of the addresses

    GrowableFigures figures() const noexcept { return {reserved_bytes, mapped_bytes(), granularity, handles.size()}; }
    std::size_t mapped_bytes() const noexcept;

    std::vector<std::size_t> handles;  // their bytes, oldest first
    std::size_t reserved_bytes = 0;
    std::size_t granularity = 0;
    rules::GrowthSteps steps = rules::GrowthSteps::doubling;
    MemoryKind kind = MemoryKind::unknown;
    bool changes_mappings = false;  // through the driver, which may wait for a running service
    std::string_view reason;
    bool ended = false;

protected:
    GrowableMemory() = default;
};

// Validates, and reserves the addresses. Errors as GrowableBuffer::make.
Result<std::shared_ptr<GrowableMemory>> reserve_growable(const std::shared_ptr<DeviceState>& device,
                                                         std::size_t most_bytes, const GrowableOptions& options);

// As the allocator of its one block: what ends buffers ends this memory, too. Given up with its buffer (a kernel may
// still write to it), it is kept until the process ends.
class GrowableSource {
public:
    explicit GrowableSource(std::shared_ptr<GrowableMemory> memory);
    MemoryKind kind() const noexcept;
    Result<MemoryBlock> allocate(const AllocationRequest& request);
    Result<void> release(const MemoryBlock& block, Stream* after);

private:
    struct Guard;
    std::shared_ptr<Guard> guard_;
};

}  // namespace isthmus::inline v0::detail
