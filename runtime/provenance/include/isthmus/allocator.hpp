// SPDX-License-Identifier: Apache-2.0
// Allocators: one concept for every source of memory, and Allocator, a handle to any of them.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {

class Stream;

struct AllocationRequest {
    std::size_t bytes = 0;
    // A power of two, at most a page of this machine (HostPlacement with PageSize::huge: a huge page). More than 256:
    // the block also ends at such a boundary, so that its last page holds no other allocation. Where CPU and device
    // have different addresses, the CPU's is aligned.
    std::size_t alignment = 256;
    // Stream-ordered allocators (pools): the memory is usable on this stream at once, and on other streams once they
    // are ordered behind it. nullptr: usable everywhere when the call returns. Other allocators ignore it.
    Stream* stream = nullptr;
};

// Memory as its allocator returned it. A value that identifies the memory. Releasing it needs the whole
// value, because an address alone may belong to other memory by then. A default-constructed MemoryBlock is empty.
struct MemoryBlock {
    std::uint64_t id = 0;      // identity, never reused in a process; 0: memory that no runtime has recorded yet
    void* host = nullptr;      // address for the CPU; nullptr: not accessible from the CPU
    std::uint64_t device = 0;  // address for the device
    std::size_t bytes = 0;     // as requested
    MemoryKind kind = MemoryKind::unknown;
    explicit operator bool() const noexcept { return host != nullptr || device != 0; }
};

// Concept of an allocator: the memory kinds of a device, pools, adaptors, and user-defined allocators (K17).
//   allocate()  is never called for 0 bytes. The caller gets an Error unchanged.
//   release()   takes a block of this allocator, which id and addresses name; bytes and kind are not compared. `after`:
//               stream-ordered allocators free the block behind the work of that stream; nullptr: the caller has waited
//               for every use. Blocks of the kinds pool and managed_pool come with a stream while work still uses them;
//               blocks of other kinds never do. An Error says that the block was not taken and may be released again:
//               Buffer::release() returns it and keeps the block.
// Both may be called from several threads at once.
template <class A>
concept MemoryAllocator = requires(A& allocator, const AllocationRequest& request, const MemoryBlock& block,
                                   Stream* after) {
    { allocator.allocate(request) } -> std::same_as<Result<MemoryBlock>>;
    { allocator.release(block, after) } -> std::same_as<Result<void>>;
};

// A handle to an allocator of any type. Copies refer to the same allocator, which the handle owns. Thread-safe. An
// empty handle answers Code::invalid_handle.
class ISTHMUS_API Allocator {
public:
    Allocator() = default;
    template <class A>
    requires(MemoryAllocator<A> && !std::same_as<std::remove_cvref_t<A>, Allocator>)
        Allocator(A allocator)  // NOLINT(google-explicit-constructor): any allocator is an Allocator
        : source_(std::make_shared<Model<A>>(std::move(allocator))) {}

    // 0 bytes: an empty MemoryBlock, without a call to the allocator. Errors: the allocator's own; invalid_argument
    // (alignment).
    Result<MemoryBlock> allocate(const AllocationRequest& request) const;
    // An empty MemoryBlock is a no-op (K8).
    Result<void> release(const MemoryBlock& block, Stream* after = nullptr) const;
    // Kind of the blocks, where the allocator has a member kind(); otherwise MemoryKind::unknown. An empty buffer
    // reports this kind (K3).
    MemoryKind kind() const noexcept { return source_ ? source_->kind() : MemoryKind::unknown; }
    explicit operator bool() const noexcept { return source_ != nullptr; }
    friend bool operator==(const Allocator&, const Allocator&) = default;  // the same allocator, not an equal one

private:
    struct Source {
        virtual ~Source() = default;
        virtual Result<MemoryBlock> allocate(const AllocationRequest& request) = 0;
        virtual Result<void> release(const MemoryBlock& block, Stream* after) = 0;
        virtual MemoryKind kind() const noexcept = 0;
    };
    template <class A>
    struct Model final : Source {
        explicit Model(A made) : allocator(std::move(made)) {}
        Result<MemoryBlock> allocate(const AllocationRequest& request) override { return allocator.allocate(request); }
        Result<void> release(const MemoryBlock& block, Stream* after) override {
            return allocator.release(block, after);
        }
        MemoryKind kind() const noexcept override {
            if constexpr (requires(const A& source) {
                              { source.kind() } -> std::same_as<MemoryKind>;
                          }) {
                return allocator.kind();
            } else {
                return MemoryKind::unknown;
            }
        }
        A allocator;
    };
    std::shared_ptr<Source> source_;
};

}  // namespace v0
}  // namespace isthmus
