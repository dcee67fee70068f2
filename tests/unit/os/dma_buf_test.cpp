// SPDX-License-Identifier: Apache-2.0
// Mapping a dma-buf, its refusals, and DMA_BUF_IOCTL_SYNC, against a kernel that the test makes up.
#include "made_up_dma_buf.hpp"
#include "os_errors.hpp"
#include "refused_with.hpp"

#include <platform/os.hpp>

#include <gtest/gtest.h>

#include <linux/udmabuf.h>
#include <sys/ioctl.h>

namespace {

using isthmus::Code;
using isthmus::FileDescriptor;
using isthmus::Result;
using isthmus::platform::os::CpuUse;
using isthmus::platform::os::DmaBuf;
using isthmus::testing::MadeUpDmaBuf;
using isthmus::testing::MadeUpKernel;
using isthmus::testing::refused_with;
namespace errors = isthmus::errors;

const std::size_t page = isthmus::platform::os::page_size_bytes();

Result<std::shared_ptr<DmaBuf>> map(int fd, std::uint64_t offset, std::size_t bytes) {
    return DmaBuf::map(fd, offset, bytes, MadeUpKernel::calls());
}
TEST(DmaBufs, AnyPartIsMappedFromItsPageOnAndNothingIsLeft) {  // keeps Y5
    MadeUpKernel kernel;
    MadeUpDmaBuf made(3 * page);
    made.data<char>()[page + 5] = 'x';
    {
        const auto mapped = map(made.fd(), page + 5, page).value();
        made.close();  // the mapping has its own descriptor
        EXPECT_TRUE(mapped->writable());
        EXPECT_EQ(*static_cast<char*>(mapped->data()), 'x');
        static_cast<char*>(mapped->data())[page - 1] = 'y';
        EXPECT_EQ(made.data<char>()[2 * page + 4], 'y') << "shared, not a copy";
        EXPECT_EQ(kernel.mapped, 1);
        EXPECT_EQ(mapped->begin(CpuUse::read), 0);
        EXPECT_EQ(mapped->end(CpuUse::read), 0);
        EXPECT_EQ(mapped->begin(CpuUse::write), 0);
        EXPECT_EQ(mapped->end(CpuUse::write), 0);
        EXPECT_EQ(mapped->begin(CpuUse::read_write), 0);
        EXPECT_EQ(mapped->end(CpuUse::read_write), 0);
    }
    EXPECT_EQ(kernel.syncs, (std::vector<std::string>{"start read", "end read", "start write", "end write",
                                                      "start read write", "end read write"}));
    EXPECT_EQ(kernel.mapped, 0);
}

TEST(DmaBufs, AnInterruptedCallIsMadeAgainAndAnyOtherErrorIsTold) {  // keeps Y5
    MadeUpKernel kernel;
    const MadeUpDmaBuf made(page);
    const auto mapped = map(made.fd(), 0, page).value();
    kernel.sync_errors = {EINTR, EAGAIN, EINTR, 0, EIO, ENOTTY};
    EXPECT_EQ(mapped->begin(CpuUse::read), 0);
    EXPECT_EQ(kernel.syncs, std::vector<std::string>{"start read"});
    EXPECT_EQ(mapped->begin(CpuUse::read), EIO);
    EXPECT_EQ(mapped->end(CpuUse::read), ENOTTY);
    EXPECT_EQ(kernel.syncs.size(), 1u);
}

TEST(DmaBufs, OneForReadingOnlyIsMappedForReading) {  // keeps Y5
    MadeUpKernel kernel;
    const MadeUpDmaBuf made(page);
    kernel.fail_map_write = EACCES;
    EXPECT_FALSE(map(made.fd(), 0, page).value()->writable());
    kernel.fail_map = EACCES;
    EXPECT_TRUE(refused_with<errors::dma_buf_system_failure>(map(made.fd(), 0, page), Code::not_permitted));
}

TEST(DmaBufs, WhatIsNoneOrCannotBeMappedIsRefusedAndLeavesNothing) {  // keeps Y5
    MadeUpKernel kernel;
    const MadeUpDmaBuf made(2 * page);
    EXPECT_TRUE(refused_with<errors::dma_buf_not_open>(map(12345, 0, page), Code::invalid_argument));
    for (const auto& [offset, bytes] :
         std::initializer_list<std::pair<std::uint64_t, std::size_t>>{{0, 2 * page + 1},
                                                                      {page, page + 1},
                                                                      {2 * page, 1},
                                                                      {~std::uint64_t{0}, 1},
                                                                      {0, ~std::size_t{0}},
                                                                      {~std::uint64_t{0} - page, 2 * page}}) {
        EXPECT_TRUE(refused_with<errors::range_leaves_dma_buf>(map(made.fd(), offset, bytes), Code::invalid_argument));
    }
    kernel.exports = false;
    EXPECT_TRUE(refused_with<errors::descriptor_of_no_dma_buf>(map(made.fd(), 0, page), Code::invalid_argument));
    kernel.exports = true;
    for (const int error : {ENODEV, EOPNOTSUPP}) {
        kernel.fail_map = error;
        EXPECT_TRUE(refused_with<errors::dma_buf_without_mmap>(map(made.fd(), 0, page), Code::unsupported));
    }
    kernel.fail_map = EINVAL;
    EXPECT_TRUE(refused_with<errors::range_leaves_dma_buf>(map(made.fd(), 0, page), Code::invalid_argument));
    kernel.fail_map = ENOMEM;
    EXPECT_TRUE(refused_with<errors::dma_buf_system_failure>(map(made.fd(), 0, page), Code::out_of_memory));
    kernel.fail_map = EIO;
    EXPECT_TRUE(refused_with<errors::dma_buf_system_failure>(map(made.fd(), 0, page), Code::system_error));
    kernel.fail_dup = EMFILE;
    EXPECT_TRUE(refused_with<errors::dma_buf_system_failure>(map(made.fd(), 0, page), Code::system_limit));
    EXPECT_EQ(kernel.mapped, 0);
}

TEST(DmaBufs, ItsFileSystemIsAskedToo) {  // keeps Y5
    MadeUpKernel kernel;
    const MadeUpDmaBuf made(page);
    kernel.magic = 0x09041934;  // an anonymous inode: a dma-buf before Linux 5.3, told by its answer to the ioctl
    EXPECT_TRUE(map(made.fd(), 0, page));
    kernel.exports = false;
    EXPECT_TRUE(refused_with<errors::descriptor_of_no_dma_buf>(map(made.fd(), 0, page)));
    kernel.exports = true;
    kernel.magic = 0x01021994;  // of shared memory, whose driver would answer the ioctl's number alike
    EXPECT_TRUE(refused_with<errors::descriptor_of_no_dma_buf>(map(made.fd(), 0, page)));
    kernel.magic = 0x444d4142;
    kernel.fail_statfs = EIO;
    EXPECT_TRUE(refused_with<errors::descriptor_of_no_dma_buf>(map(made.fd(), 0, page)));
    EXPECT_TRUE(kernel.syncs.empty());
    EXPECT_EQ(kernel.mapped, 0);
}

TEST(DmaBufs, OneOfAGpusDriverHasNoMapping) {  // keeps Y5
    MadeUpKernel kernel;
    const MadeUpDmaBuf made(page);
    kernel.fail_map = 524;  // observed: ENOTSUPP, which the C library does not name
    EXPECT_TRUE(refused_with<errors::dma_buf_without_mmap>(map(made.fd(), 0, page), Code::unsupported));
}

TEST(DmaBufs, TheSystemsOwnCallsRefuseOtherFiles) {  // keeps Y5
    const MadeUpDmaBuf file(page);
    EXPECT_TRUE(
        refused_with<errors::descriptor_of_no_dma_buf>(DmaBuf::map(file.fd(), 0, page), Code::invalid_argument));
}

// A dma-buf of the kernel, over a memory file: /dev/udmabuf (CONFIG_UDMABUF).
TEST(DmaBufs, OneOfTheKernelIsMappedAndSynchronised) {  // keeps Y5
    const FileDescriptor maker(::open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
    if (!maker) GTEST_SKIP() << "this system has no /dev/udmabuf, or this user may not open it";
    const FileDescriptor file(::memfd_create("frame", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(2 * page)), 0);
    ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    udmabuf_create asked{};
    asked.memfd = static_cast<std::uint32_t>(file.get());
    asked.flags = UDMABUF_FLAGS_CLOEXEC;
    asked.size = 2 * page;
    const FileDescriptor made(::ioctl(maker.get(), UDMABUF_CREATE, &asked));
    ASSERT_TRUE(made) << "errno " << errno;
    const auto mapped = DmaBuf::map(made.get(), page, page).value();
    ASSERT_EQ(mapped->begin(CpuUse::read_write), 0);
    static_cast<char*>(mapped->data())[7] = 'z';
    ASSERT_EQ(mapped->end(CpuUse::read_write), 0);
    char seen = 0;
    ASSERT_EQ(::pread(file.get(), &seen, 1, static_cast<off_t>(page + 7)), 1);
    EXPECT_EQ(seen, 'z');
    EXPECT_TRUE(
        refused_with<errors::range_leaves_dma_buf>(DmaBuf::map(made.get(), page, page + 1), Code::invalid_argument));
}

}  // namespace
