// SPDX-License-Identifier: Apache-2.0
// Alignment of allocations: the coarsest that is accepted, and what has to be obtained for one.
#include "alignment_rules.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace {

using isthmus::MachineFacts;
using isthmus::PageSize;
namespace rules = isthmus::rules;

constexpr std::size_t kilobyte = 1024, megabyte = 1024 * kilobyte;

MachineFacts machine(std::size_t page, std::size_t huge) {
    MachineFacts facts;
    facts.page_size_bytes = page;
    facts.huge_page_bytes = huge;
    return facts;
}

// keeps K18
TEST(Alignment, APageIsTheCoarsestAndAHugePageWhereHugePagesAreAskedFor) {
    for (const std::size_t page : {4 * kilobyte, 16 * kilobyte, 64 * kilobyte}) {
        EXPECT_EQ(rules::max_alignment(machine(page, 2 * megabyte), PageSize::ordinary), page);
        EXPECT_EQ(rules::max_alignment(machine(page, 2 * megabyte), PageSize::huge), 2 * megabyte);
        EXPECT_EQ(rules::max_alignment(machine(page, 512 * megabyte), PageSize::huge), 512 * megabyte);
        EXPECT_EQ(rules::max_alignment(machine(page, 0), PageSize::huge), page) << "the system has no huge pages";
    }
    EXPECT_EQ(rules::max_alignment(machine(0, 0), PageSize::ordinary), 256u) << "what the driver keeps anyway";
}

// keeps K18
TEST(Alignment, AnAlignedRangeLiesInWhatIsObtainedWhereverThatBegins) {
    for (const std::size_t guaranteed : {std::size_t{256}, std::size_t{512}, 4 * kilobyte}) {
        for (std::size_t alignment = 1; alignment <= 2 * megabyte; alignment *= 2) {
            for (const std::size_t bytes : {std::size_t{1}, std::size_t{256}, std::size_t{4097}, 2 * megabyte}) {
                const std::size_t obtained = rules::bytes_to_obtain(bytes, alignment, guaranteed);
                for (std::uint64_t at = 0; at < 3 * alignment + guaranteed; at += guaranteed) {
                    const std::uint64_t begin = 0x7f0000000000 + at;
                    const std::size_t lead = rules::lead_bytes(begin, alignment);
                    ASSERT_EQ((begin + lead) % alignment, 0u);
                    ASSERT_LT(lead, alignment);
                    ASSERT_LE(lead + rules::padded(bytes, alignment), obtained) << alignment << " at " << at;
                }
            }
        }
    }
}

// keeps K18
TEST(Alignment, OnlyACoarseAlignmentCostsBytes) {
    EXPECT_EQ(rules::bytes_to_obtain(100, 256, 256), 100u);
    EXPECT_EQ(rules::bytes_to_obtain(100, 1, 256), 100u);
    EXPECT_EQ(rules::padded(100, 512), 512u) << "the last page holds nothing else";
    EXPECT_EQ(rules::bytes_to_obtain(4096, 4096, 4096), 4096u);
    EXPECT_EQ(rules::bytes_to_obtain(4096, 4096, 256), 4096u + 4096 - 256);
}

}  // namespace
