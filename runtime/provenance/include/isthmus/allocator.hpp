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

namespace isthmus::inline v0 {

class Stream;

struct AllocationRequest {
    std::size_t bytes = 0;
    std::size_t alignment = 256;  // a power of two
    // Stream-ordered allocators (pools): the memory may be used on this stream at once, and elsewhere once that has
    // been ordered. nullptr: usable everywhere when the call returns. Others ignore it.
    Stream* stream = nullptr;
};

// One piece of memory as its allocator handed it out. A value that names the memory: giving it back needs the whole
// of it, because an address alone may name somebody else's memory by then. A default-made MemoryBlock names nothing.
struct MemoryBlock {
    std::uint64_t id = 0;      // identity, never reused in a process; 0: memory that no runtime knows yet
    void* host = nullptr;      // where the CPU finds it; nullptr: the CPU may not look
    std::uint64_t device = 0;  // where the device finds it
    std::size_t bytes = 0;     // as asked for
    MemoryKind kind = MemoryKind::unknown;
    explicit operator bool() const noexcept { return host != nullptr || device != 0; }
};

// What allocates: the memory kinds of a device, pools, the adaptors, and users' own (K17).
//   allocate()  is never called for 0 bytes. An Error is handed on as it is.
//   release()   gives back what this allocator handed out. `after`: stream-ordered allocators free behind the work of
//               that stream; nullptr: the caller has waited for every use. Blocks of the kinds pool and managed_pool
//               come with a stream while work still uses them; blocks of other kinds never do. An Error says that the
//               block was not taken and may be released again: Buffer::release() hands it on and keeps the block.
// Both may be called from several threads at once.
template <class A>
concept MemoryAllocator = requires(A& allocator, const AllocationRequest& request, const MemoryBlock& block,
                                   Stream* after) {
    { allocator.allocate(request) } -> std::same_as<Result<MemoryBlock>>;
    { allocator.release(block, after) } -> std::same_as<Result<void>>;
};

// A handle to an allocator of any type; copies name the same one. Holds what it was made from. Thread-safe.
// An empty handle answers Code::invalid_handle.
class ISTHMUS_API Allocator {
public:
    Allocator() = default;
    template <class A>
    requires(MemoryAllocator<A> && !std::same_as<std::remove_cvref_t<A>, Allocator>)
        Allocator(A allocator)  // NOLINT(google-explicit-constructor): any allocator is an Allocator
        : source_(std::make_shared<Model<A>>(std::move(allocator))) {}

    // 0 bytes: an empty MemoryBlock, and nobody is asked. Errors: the allocator's own; invalid_argument (alignment).
    Result<MemoryBlock> allocate(const AllocationRequest& request) const;
    // Nothing for an empty MemoryBlock (K8).
    Result<void> release(const MemoryBlock& block, Stream* after = nullptr) const;
    // Of the blocks, where the allocator has a member kind() that says so; else MemoryKind::unknown. What an empty
    // buffer keeps (K3).
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

}  // namespace isthmus::inline v0
