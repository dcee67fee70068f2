// SPDX-License-Identifier: Apache-2.0
// Allocator: the checks that precede the calls of every source of memory.
#include <isthmus/allocator.hpp>

#include "provenance_errors.hpp"

namespace isthmus {
inline namespace v0 {

Result<MemoryBlock> Allocator::allocate(const AllocationRequest& request) const {
    if (!source_) return make_error<errors::allocator_handle_is_empty>("an allocation");
    // A power of two; std::has_single_bit() is a call where the processor may lack the instruction.
    if (request.alignment == 0 || (request.alignment & (request.alignment - 1)) != 0) [[unlikely]] {
        return make_error<errors::allocation_alignment>(request.alignment);
    }
    if (request.bytes == 0) return MemoryBlock{};
    return source_->allocate(request);
}

Result<void> Allocator::release(const MemoryBlock& block, Stream* after) const {
    if (!block) return {};
    if (!source_) return make_error<errors::allocator_handle_is_empty>("a release");
    return source_->release(block, after);
}

}  // namespace v0
}  // namespace isthmus
