// SPDX-License-Identifier: Apache-2.0
// Shared memory of fixed size, and descriptors of anything else.
#include "sealed_memory.hpp"

#include "ipc_errors.hpp"
#include "process_state.hpp"
#include "refused_with.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace {

using namespace isthmus;
using detail::SealedMemory;
using platform::os::ProcessCalls;

FileDescriptor duplicate(int fd) {
    return FileDescriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

FileDescriptor memfd(std::int64_t bytes, int seals, unsigned flags = 0) {
    FileDescriptor fd(::memfd_create("isthmus-test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
    if (fd && ::ftruncate(fd.get(), bytes) != 0) fd.close();
    if (fd && seals != 0) {
        EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    }
    return fd;
}

constexpr int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// keeps I5
TEST(SealedMemory, IsZeroAndKeepsItsSize) {
    const NothingLeft nothing_left;
    SealedMemory memory = SealedMemory::create(10000, "isthmus-test").value();
    EXPECT_EQ(memory.bytes(), 10000u);
    EXPECT_TRUE(std::all_of(memory.data(), memory.data() + 10000, [](std::byte byte) { return byte == std::byte{0}; }));
    EXPECT_NE(::fcntl(memory.fd(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::ftruncate(memory.fd(), 0), 0);
    EXPECT_NE(::ftruncate(memory.fd(), 20000), 0);
    EXPECT_NE(::fcntl(memory.fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
    memory.data()[9999] = std::byte{7};
    SealedMemory seen = SealedMemory::accept(duplicate(memory.fd()), 10000).value();
    EXPECT_EQ(seen.data()[9999], std::byte{7});
    SealedMemory moved = std::move(seen);
    EXPECT_EQ(seen.data(), nullptr);  // NOLINT(bugprone-use-after-move): moved from, it is empty
    EXPECT_EQ(moved.data()[9999], std::byte{7});
    moved = std::move(memory);
    moved = SealedMemory();
}

TEST(SealedMemory, SizesThatNothingHasAreRefused) {
    EXPECT_EQ(SealedMemory::create(0, "isthmus-test").code(), Code::invalid_argument);
    EXPECT_EQ(SealedMemory::create(~std::size_t{0}, "isthmus-test").code(), Code::invalid_argument);
}

// keeps I5
TEST(SealedMemory, WhatIsNotSealedMemoryOfThatSizeIsRefused) {
    const NothingLeft nothing_left;
    const auto refused = [](FileDescriptor fd, std::size_t bytes, const char* what) {
        const int number = fd.get();
        ASSERT_GE(number, 0) << what;
        const Result<SealedMemory> memory = SealedMemory::accept(std::move(fd), bytes);
        ASSERT_FALSE(memory.ok()) << what;
        EXPECT_EQ(memory.code(), Code::peer_broke_rules) << what;
        EXPECT_EQ(::fcntl(number, F_GETFD), -1) << what << ": it was not closed";
        EXPECT_FALSE(memory.error().remedy().empty());
    };
    for (int seals = 0; seals < 8; ++seals) {
        if (seals == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) continue;
        refused(memfd(4096, seals), 4096, "a memfd with too few seals");
    }
    refused(memfd(4096, all_seals), 4095, "a memfd that is larger than was said");
    refused(memfd(4096, all_seals), 4097, "a memfd that is smaller than was said");
    refused(memfd(4096, all_seals), 0, "no size");
    refused(memfd(4096, all_seals), ~std::size_t{0}, "a size that nothing has");
    refused(memfd(0, all_seals), 4096, "an empty memfd");
    int ends[2] = {-1, -1};
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    refused(FileDescriptor(ends[0]), 4096, "a pipe");
    refused(FileDescriptor(ends[1]), 4096, "the other end of it");
    refused(FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)), 4096, "a socket");
    refused(FileDescriptor(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), 4096, "a directory");
    refused(FileDescriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC)), 4096, "a device");
    for (const char* folder : {"/tmp", "/dev/shm"}) {
        std::string path = std::string(folder) + "/sealed-memory-test-XXXXXX";
        FileDescriptor file(::mkostemp(path.data(), O_CLOEXEC));
        if (!file) continue;  // no such folder
        ::unlink(path.c_str());
        ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
        refused(std::move(file), 4096, "a regular file");
    }
    const FileDescriptor whole = memfd(4096, all_seals);
    const std::string path = "/proc/self/fd/" + std::to_string(whole.get());
    refused(FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), 4096, "a memfd that is open for reading only");
    EXPECT_EQ(SealedMemory::accept(FileDescriptor(), 4096).code(), Code::peer_broke_rules);
    // Pages of the huge page pool end in SIGBUS where the pool is empty.
    FileDescriptor huge = memfd(2 << 20, all_seals, MFD_HUGETLB);
    if (huge) refused(std::move(huge), 2 << 20, "a memfd of huge pages");
    // The correct one is accepted.
    EXPECT_TRUE(SealedMemory::accept(memfd(4096, all_seals), 4096).ok());
}

// keeps I5
TEST(SealedMemory, WhatOnlyItsMakerWritesIsSealedAgainstOthers) {
    const NothingLeft nothing_left;
    const ProcessCalls& calls = ProcessCalls::real();
    const auto accepted = [&](int more) {
        return SealedMemory::accept(memfd(4096, all_seals | more), 4096, calls, detail::SealedFor::maker).code();
    };
    EXPECT_EQ(accepted(0), Code::peer_broke_rules);
    EXPECT_EQ(accepted(F_SEAL_WRITE), Code::ok);
    const Result<SealedMemory> own = SealedMemory::create(4096, "isthmus-test", calls, detail::SealedFor::maker);
    if (!own) {
        EXPECT_EQ(own.code(), Code::unsupported) << own.error().text();  // before Linux 5.1
        return;
    }
    EXPECT_EQ(SealedMemory::accept(duplicate(own->fd()), 4096, calls, detail::SealedFor::maker).code(), Code::ok);
}

// keeps I5
TEST(SealedMemory, AKernelThatCannotSealAgainstWritingIsNamed) {
    const NothingLeft nothing_left;
    ProcessCalls old = ProcessCalls::real();
    old.fcntl = [](int fd, int command, int argument) {
        if (command == F_ADD_SEALS && (argument & F_SEAL_FUTURE_WRITE) != 0) return errno = EINVAL, -1;
        return ::fcntl(fd, command, argument);
    };
    const Result<SealedMemory> refused = SealedMemory::create(4096, "isthmus-test", old, detail::SealedFor::maker);
    ASSERT_EQ(refused.code(), Code::unsupported);
    EXPECT_EQ(refused.error().call(), "fcntl(F_ADD_SEALS)");
    EXPECT_NE(refused.error().message().find("Linux 5.1"), std::string::npos);
    EXPECT_TRUE(SealedMemory::create(4096, "isthmus-test", old, detail::SealedFor::both).ok());
}

// keeps I5
TEST(SealedMemory, WhatTheSystemRefusesHasTheCodeOfItsReason) {
    const NothingLeft nothing_left;
    ProcessCalls calls = ProcessCalls::real();
    const auto refused = [&calls](int (*memfd_create)(const char*, unsigned)) {
        calls.memfd_create = memfd_create;
        return SealedMemory::create(4096, "isthmus-test", calls);
    };
    using errors::shared_memory_system_failure;
    using isthmus::testing::refused_with;
    EXPECT_TRUE(refused_with<shared_memory_system_failure>(
        refused([](const char*, unsigned) { return errno = EPERM, -1; }), Code::not_permitted));
    EXPECT_TRUE(refused_with<shared_memory_system_failure>(
        refused([](const char*, unsigned) { return errno = ENOSYS, -1; }), Code::unsupported));
    EXPECT_TRUE(refused_with<shared_memory_system_failure>(
        refused([](const char*, unsigned) { return errno = EIO, -1; }), Code::system_error));
    EXPECT_TRUE(refused_with<errors::shared_memory_system_limit>(
        refused([](const char*, unsigned) { return errno = EMFILE, -1; })));
}

}  // namespace
