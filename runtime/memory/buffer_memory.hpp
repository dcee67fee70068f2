// BufferMemory: memory that was put together for one buffer, as the allocator of its one block.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <memory>
#include <string_view>

namespace isthmus::inline v0::detail {

class NewBuffer;

// Its end gives everything back.
class BufferMemory {
public:
    virtual ~BufferMemory() = default;
    BufferMemory(const BufferMemory&) = delete;
    BufferMemory& operator=(const BufferMemory&) = delete;

    // Gives everything back, which nobody uses any more. What fails is tried again and logged by what holds it.
    virtual void end() = 0;
    virtual MemoryBlock block() const = 0;  // all of the addresses

    MemoryKind kind = MemoryKind::unknown;
    std::string_view reason;
    bool in_several = false;  // it lies on other devices than its buffer's, too
    bool ended = false;

protected:
    BufferMemory() = default;
};

// Makes it a new buffer's memory, of no size yet. What ends buffers ends the memory, too. Given up with its buffer (a
// kernel may still write to it), it is kept until the process ends.
void lay_over(NewBuffer& buffer, std::shared_ptr<BufferMemory> memory);

}  // namespace isthmus::inline v0::detail
