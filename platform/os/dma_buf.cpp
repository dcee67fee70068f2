// SPDX-License-Identifier: Apache-2.0
// Mapping a dma-buf, and DMA_BUF_IOCTL_SYNC.
#include <platform/dma_buf.hpp>
#include <platform/os.hpp>

#include "os_errors.hpp"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <limits>
#include <string>
#include <system_error>

namespace isthmus::platform::os {
namespace {

static_assert(static_cast<int>(CpuUse::read) == DMA_BUF_SYNC_READ);
static_assert(static_cast<int>(CpuUse::write) == DMA_BUF_SYNC_WRITE);
static_assert(static_cast<int>(CpuUse::read_write) == DMA_BUF_SYNC_RW);

// 0, or the errno of a call that is not to be tried again.
int sync_call(const ProcessCalls& calls, int fd, std::uint64_t flags) noexcept {
    dma_buf_sync sync{};
    sync.flags = flags;
    for (;;) {
        if (calls.ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) == 0) return 0;
        if (errno != EINTR && errno != EAGAIN) return errno;
    }
}

Error failed(const char* call, int error) {
    const std::string reason = std::generic_category().message(error);
    const Code code = error == ENOMEM                      ? Code::out_of_memory
                      : error == EMFILE || error == ENFILE ? Code::system_limit
                      : error == EACCES || error == EPERM  ? Code::not_permitted
                                                           : Code::system_error;
    return make_error_as<errors::dma_buf_system_failure>(code, call, reason).from_call(call, error);
}

// ENOTSUPP of the kernel's own numbers, which a GPU driver's dma-bufs answer to mmap() (observed: driver 580).
constexpr int exporter_without_mmap = 524;

// Dma-bufs have a file system of their own since Linux 5.3 (DMA_BUF_MAGIC of <linux/magic.h>), which no other file is
// on. Before, they were anonymous inodes.
constexpr unsigned long dma_buf_files = 0x444d4142, anonymous_inodes = 0x09041934;

// A direction is missing, so that the kernel does nothing: it answers EINVAL for a dma-buf, and ENOTTY for every other
// file (dma_buf_ioctl in drivers/dma-buf/dma-buf.c; exporters without cache operations included).
bool is_dma_buf(const ProcessCalls& calls, int fd) noexcept {
    struct statfs system {};
    if (calls.fstatfs(fd, &system) != 0) return false;
    const auto magic = static_cast<unsigned long>(system.f_type);
    if (magic != dma_buf_files && magic != anonymous_inodes) return false;
    return sync_call(calls, fd, DMA_BUF_SYNC_START) == EINVAL;
}

// 0: the kernel does not say (before 5.3).
std::uint64_t size_of(const ProcessCalls& calls, int fd) noexcept {
    struct stat facts {};
    return calls.fstat(fd, &facts) == 0 && facts.st_size > 0 ? static_cast<std::uint64_t>(facts.st_size) : 0;
}

}  // namespace

Result<std::shared_ptr<DmaBuf>> DmaBuf::map(int descriptor, std::uint64_t offset, std::size_t bytes,
                                            const ProcessCalls& calls) {
    FileDescriptor own(calls.fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
    if (!own) {
        if (errno == EBADF) return make_error<errors::dma_buf_not_open>();
        return failed("fcntl(F_DUPFD_CLOEXEC)", errno);
    }
    if (!is_dma_buf(calls, own.get())) return make_error<errors::descriptor_of_no_dma_buf>();
    const std::uint64_t page = page_size_bytes();
    const std::uint64_t lead = offset % page;
    const std::uint64_t size = size_of(calls, own.get());
    const bool beyond_all = bytes > std::numeric_limits<std::int64_t>::max() - lead ||
                            offset > std::numeric_limits<std::int64_t>::max() - bytes;
    if (beyond_all || (size != 0 && offset + bytes > size)) {
        return make_error<errors::range_leaves_dma_buf>(offset, bytes, size);
    }
    std::shared_ptr<DmaBuf> made(new DmaBuf(std::move(own), calls));
    made->offset_ = offset;
    made->size_ = size != 0 ? size : offset + bytes;
    const auto mapped_bytes = static_cast<std::size_t>(lead + bytes);
    const auto map_with = [&](int protection) {
        return calls.mmap(nullptr, mapped_bytes, protection, MAP_SHARED, made->fd_.get(),
                          static_cast<long>(offset - lead));
    };
    void* data = map_with(PROT_READ | PROT_WRITE);
    made->writable_ = data != MAP_FAILED;
    if (data == MAP_FAILED && errno == EACCES) data = map_with(PROT_READ);
    if (data == MAP_FAILED) {
        switch (errno) {
            case EINVAL: return make_error<errors::range_leaves_dma_buf>(offset, bytes, size);
            case ENODEV:
            case EOPNOTSUPP:
            case exporter_without_mmap: return make_error<errors::dma_buf_without_mmap>();
            default: return failed("mmap", errno);
        }
    }
    made->mapping_ = data;
    made->mapped_bytes_ = mapped_bytes;
    made->data_ = static_cast<std::byte*>(data) + lead;
    return made;
}

DmaBuf::~DmaBuf() {
    if (mapping_ != nullptr) (void)calls_->munmap(mapping_, mapped_bytes_);
}

int DmaBuf::synchronize(std::uint64_t flags) const noexcept {
    return sync_call(*calls_, fd_.get(), flags);
}

int DmaBuf::begin(CpuUse use) const noexcept {
    return synchronize(DMA_BUF_SYNC_START | static_cast<std::uint64_t>(use));
}

int DmaBuf::end(CpuUse use) const noexcept {
    return synchronize(DMA_BUF_SYNC_END | static_cast<std::uint64_t>(use));
}

}  // namespace isthmus::platform::os
