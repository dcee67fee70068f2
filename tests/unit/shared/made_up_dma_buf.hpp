// SPDX-License-Identifier: Apache-2.0
// A dma-buf that the test makes up: a memory file, and an ioctl that answers as dma_buf_ioctl() of the kernel does.
#pragma once

#include <platform/dma_buf.hpp>

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace isthmus::testing {

// What the kernel saw, and what it is to answer. One per test.
struct MadeUpKernel {
    std::vector<std::string> syncs;                      // "start read", "end read write", …
    std::function<void(const std::string&)> inside;      // called for each
    std::vector<int> sync_errors;                        // errnos of the next calls with a direction
    int fail_dup = 0, fail_map = 0, fail_map_write = 0;  // errnos
    bool exports = true;                                 // false: no file is a dma-buf
    unsigned long magic = 0x444d4142;                    // of the file system; before Linux 5.3: 0x09041934
    int fail_statfs = 0;                                 // errno
    int mapped = 0;                                      // mappings that are left
    static inline MadeUpKernel* current = nullptr;
    MadeUpKernel() { current = this; }
    ~MadeUpKernel() { current = nullptr; }
    MadeUpKernel(const MadeUpKernel&) = delete;
    MadeUpKernel& operator=(const MadeUpKernel&) = delete;

    static int answer(int error) {
        errno = error;
        return -1;
    }
    static int fcntl(int fd, int command, int argument) {
        if (current->fail_dup != 0) return answer(current->fail_dup);
        return ::fcntl(fd, command, argument);
    }
    static void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd, long offset) {
        const bool writes = (protection & PROT_WRITE) != 0;
        const int error = current->fail_map != 0 ? current->fail_map : writes ? current->fail_map_write : 0;
        if (error != 0) {
            errno = error;
            return MAP_FAILED;
        }
        void* const data = ::mmap(address, bytes, protection, flags, fd, offset);
        current->mapped += data != MAP_FAILED ? 1 : 0;
        return data;
    }
    static int munmap(void* address, std::size_t bytes) {
        --current->mapped;
        return ::munmap(address, bytes);
    }
    static int fstatfs(int, struct statfs* system) {
        if (current->fail_statfs != 0) return answer(current->fail_statfs);
        *system = {};
        system->f_type = static_cast<decltype(system->f_type)>(current->magic);
        return 0;
    }
    static int ioctl(int, unsigned long request, void* argument) {
        if (request != DMA_BUF_IOCTL_SYNC || !current->exports) return answer(ENOTTY);
        const std::uint64_t flags = static_cast<const dma_buf_sync*>(argument)->flags;
        if ((flags & ~std::uint64_t{DMA_BUF_SYNC_VALID_FLAGS_MASK}) != 0) return answer(EINVAL);
        const std::uint64_t direction = flags & DMA_BUF_SYNC_RW;
        if (direction == 0) return answer(EINVAL);
        if (!current->sync_errors.empty()) {
            const int error = current->sync_errors.front();
            current->sync_errors.erase(current->sync_errors.begin());
            if (error != 0) return answer(error);
        }
        std::string text = (flags & DMA_BUF_SYNC_END) != 0 ? "end" : "start";
        if ((direction & DMA_BUF_SYNC_READ) != 0) text += " read";
        if ((direction & DMA_BUF_SYNC_WRITE) != 0) text += " write";
        current->syncs.push_back(text);
        if (current->inside) current->inside(text);
        return 0;
    }
    static const platform::os::ProcessCalls& calls() {
        static const platform::os::ProcessCalls made = [] {
            platform::os::ProcessCalls table = platform::os::ProcessCalls::real();
            table.fcntl = fcntl;
            table.mmap = mmap;
            table.munmap = munmap;
            table.fstatfs = fstatfs;
            table.ioctl = ioctl;
            return table;
        }();
        return made;
    }
};

// The file behind it. The exporter's own view of the content is data().
class MadeUpDmaBuf {
public:
    explicit MadeUpDmaBuf(std::size_t bytes) : fd_(::memfd_create("dma-buf", MFD_CLOEXEC)), bytes_(bytes) {
        if (!fd_ || ::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) std::abort();
        data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
        if (data_ == MAP_FAILED) std::abort();
    }
    MadeUpDmaBuf(const MadeUpDmaBuf&) = delete;
    MadeUpDmaBuf& operator=(const MadeUpDmaBuf&) = delete;
    ~MadeUpDmaBuf() { (void)::munmap(data_, bytes_); }
    int fd() const { return fd_.get(); }
    void close() { fd_.close(); }
    template <class T>
    T* data() const {
        return static_cast<T*>(data_);
    }

private:
    FileDescriptor fd_;
    std::size_t bytes_;
    void* data_ = nullptr;
};

}  // namespace isthmus::testing
