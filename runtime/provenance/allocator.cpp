// Allocator: what is the same for every source of memory.
#include <isthmus/allocator.hpp>

#include "composed.hpp"

#include <bit>
#include <string>

namespace isthmus::inline v0 {
namespace {

Error empty_handle(std::string_view what) {
    return {Code::invalid_handle, composed("{}: the allocator handle is empty", what),
            "take one from Device::allocator(), a pool or an adaptor"};
}

}  // namespace

Result<MemoryBlock> Allocator::allocate(const AllocationRequest& request) const {
    if (!source_) return empty_handle("an allocation");
    if (!std::has_single_bit(request.alignment)) {
        return Error(Code::invalid_argument,
                     composed("an alignment of {} bytes is not a power of two", request.alignment),
                     "ask for 1, 2, 4 … 256 bytes");
    }
    if (request.bytes == 0) return MemoryBlock{};
    return source_->allocate(request);
}

Result<void> Allocator::release(const MemoryBlock& block, Stream* after) const {
    if (!block) return {};
    if (!source_) return empty_handle("a release");
    return source_->release(block, after);
}

}  // namespace isthmus::inline v0
