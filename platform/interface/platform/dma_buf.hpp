// SPDX-License-Identifier: Apache-2.0
// DmaBuf: a shared mapping of a part of a dma-buf, and the cache operations that the kernel asks for around each use by
// the CPU (Documentation/driver-api/dma-buf.rst, "CPU Access to DMA Buffer Objects").
#pragma once

#include <isthmus/file_descriptor.hpp>
#include <isthmus/result.hpp>

#include <platform/process_calls.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace isthmus::platform::os {

// What the CPU does between begin and end. The values are DMA_BUF_SYNC_READ and _WRITE of <linux/dma-buf.h>.
enum class CpuUse : std::uint8_t { read = 1, write = 2, read_write = 3 };

// Keeps a duplicate of the descriptor and the mapping until it is destroyed. Thread-safe.
class DmaBuf {
public:
    // Maps [offset, offset + bytes) for reading and writing; where the descriptor allows no writing, for reading.
    // bytes > 0. `calls` must outlive the object. No cache operation, no wait. Errors: invalid_argument (not an open
    // descriptor; not a dma-buf; a range that leaves it), unsupported (the exporter has no mmap), system_limit
    // (descriptors), out_of_memory, not_permitted, system_error.
    static Result<std::shared_ptr<DmaBuf>> map(int descriptor, std::uint64_t offset, std::size_t bytes,
                                               const ProcessCalls& calls = ProcessCalls::real());
    DmaBuf(const DmaBuf&) = delete;
    DmaBuf& operator=(const DmaBuf&) = delete;
    ~DmaBuf();

    void* data() const noexcept { return data_; }  // the byte at `offset`
    bool writable() const noexcept { return writable_; }
    int descriptor() const noexcept { return fd_.get(); }        // of the duplicate
    std::uint64_t offset() const noexcept { return offset_; }    // of data() in the dma-buf
    std::uint64_t size_bytes() const noexcept { return size_; }  // of the dma-buf; no less than what is mapped

    // begin() before the CPU's first access, end() with the same use behind its last; pairs may nest. begin() waits for
    // the work of other devices that the dma-buf knows of (its implicit fences). EINTR and EAGAIN are tried again, as
    // the kernel documents. Answers 0 or an errno.
    int begin(CpuUse use) const noexcept;
    int end(CpuUse use) const noexcept;

private:
    DmaBuf(FileDescriptor fd, const ProcessCalls& calls) : fd_(std::move(fd)), calls_(&calls) {}
    int synchronize(std::uint64_t flags) const noexcept;

    FileDescriptor fd_;
    const ProcessCalls* calls_;
    void* mapping_ = nullptr;
    std::size_t mapped_bytes_ = 0;
    std::uint64_t offset_ = 0;
    std::uint64_t size_ = 0;
    void* data_ = nullptr;
    bool writable_ = false;
};

}  // namespace isthmus::platform::os
