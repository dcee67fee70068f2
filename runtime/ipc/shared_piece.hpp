// SPDX-License-Identifier: Apache-2.0
// SharedPiece: the memory behind an ExportableBuffer, for any share method, and its descriptor.
#pragma once

#include <isthmus/ipc/shared_memory_descriptor.hpp>
#include <isthmus/result.hpp>

#include <utility>

namespace isthmus {
inline namespace v0 {

struct SharedMemoryAccess {
    static SharedMemoryDescriptor make(const SharedMemoryDescriptor::Bytes& bytes, const SharedMemoryFacts& facts,
                                       FileDescriptor fd) {
        return SharedMemoryDescriptor(bytes, facts, std::move(fd));
    }
    static FileDescriptor take_fd(SharedMemoryDescriptor& descriptor) noexcept { return std::move(descriptor.fd_); }
};

namespace detail {

// Held by its ExportableBuffer, and by the buffer's memory until that is released.
class SharedPiece {
public:
    explicit SharedPiece(const SharedMemoryFacts& told) noexcept : facts_(told) {}
    SharedPiece(const SharedPiece&) = delete;
    SharedPiece& operator=(const SharedPiece&) = delete;
    virtual ~SharedPiece() = default;
    const SharedMemoryFacts& facts() const noexcept { return facts_; }
    // A descriptor for one more importer. Errors: invalid_handle (the memory was released), and those of
    // export_memory().
    virtual Result<SharedMemoryDescriptor> describe() const = 0;
    // Errors: those of export_dma_buf().
    virtual Result<FileDescriptor> dma_buf() const = 0;

private:
    const SharedMemoryFacts facts_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
