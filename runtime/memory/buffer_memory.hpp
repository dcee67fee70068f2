// SPDX-License-Identifier: Apache-2.0
// BufferMemory: memory assembled for one buffer, exposed as the allocator of its one block.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <memory>
#include <string_view>

namespace isthmus {
inline namespace v0 {
namespace detail {

class NewBuffer;

// Owns the memory; its destructor releases everything.
class BufferMemory {
public:
    virtual ~BufferMemory() = default;
    BufferMemory(const BufferMemory&) = delete;
    BufferMemory& operator=(const BufferMemory&) = delete;

    // Releases everything; the memory is no longer in use. The holder retries and logs what fails.
    virtual void end() = 0;
    virtual MemoryBlock block() const = 0;  // the whole address range

    MemoryKind kind = MemoryKind::unknown;
    std::string_view reason;
    bool in_several = false;  // also lies on other devices than the buffer's
    bool ended = false;

protected:
    BufferMemory() = default;
};

// Makes `memory` the memory of a new buffer of zero bytes. Releasing the buffer ends the memory. If the buffer is given
// up (a kernel may still write to it), the memory is kept until process exit.
void lay_over(NewBuffer& buffer, std::shared_ptr<BufferMemory> memory);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
