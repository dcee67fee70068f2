// SPDX-License-Identifier: Apache-2.0
// Reserved addresses and mirrored memory: refusals of the system are typed, and change nothing.
#include <platform/os.hpp>
#include <platform/reserved_pages.hpp>

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <limits>
#include <string>

namespace isthmus::platform::os {
namespace {

TEST(ReservedPages, SizesThatNoAddressSpaceHasAreRefused) {
    for (const std::size_t bytes : {std::size_t{0}, std::numeric_limits<std::size_t>::max()}) {
        const auto refused = ReservedPages::reserve(bytes);
        ASSERT_EQ(refused.code(), Code::invalid_argument) << bytes;
        EXPECT_EQ(refused.error().message(), std::to_string(bytes) + " bytes of host addresses cannot be reserved");
    }
    const auto refused = ReservedPages::reserve(std::numeric_limits<std::size_t>::max() / 8);
    ASSERT_EQ(refused.code(), Code::out_of_memory);
    EXPECT_EQ(refused.error().call(), "mmap");
    EXPECT_EQ(refused.error().driver_code(), ENOMEM);
    EXPECT_NE(refused.error().message().find("could not be reserved"), std::string_view::npos);
}

TEST(ReservedPages, LockedMemoryIsNotGivenBackAndStays) {
    const std::size_t page = page_size_bytes();
    ReservedPages pages = ReservedPages::reserve(2 * page).value();
    ASSERT_TRUE(pages.commit(0, page).ok());
    *static_cast<char*>(pages.data()) = 7;
    if (::mlock(pages.data(), page) != 0) GTEST_SKIP() << "no memory can be locked here";
    const Result<void> refused = pages.decommit(0, page);
    if (refused.ok())
        GTEST_SKIP() << "this system gives locked memory back (an emulation, or a sanitizer that locks nothing)";
    EXPECT_EQ(refused.code(), Code::system_error);
    EXPECT_EQ(refused.error().call(), "madvise");
    EXPECT_NE(refused.error().remedy().find("munlock"), std::string_view::npos);
    EXPECT_EQ(*static_cast<char*>(pages.data()), 7);
    ASSERT_EQ(::munlock(pages.data(), page), 0);
    EXPECT_TRUE(pages.decommit(0, page).ok());
}

TEST(MirroredPages, WithoutADescriptorNothingIsMirrored) {
    struct rlimit files {};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
    const struct rlimit none { 0, files.rlim_max };
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const auto refused = MirroredPages::create(page_size_bytes());
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
    ASSERT_EQ(refused.code(), Code::system_limit);
    EXPECT_EQ(refused.error().call(), "memfd_create");
    EXPECT_EQ(refused.error().driver_code(), EMFILE);
    EXPECT_TRUE(MirroredPages::create(page_size_bytes()).ok());
}

}  // namespace
}  // namespace isthmus::platform::os
