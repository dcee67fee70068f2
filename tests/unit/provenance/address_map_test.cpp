// What the address map answers, compared with a plain ordered table.
#include <address_map.hpp>

#include <gtest/gtest.h>

namespace {

using namespace isthmus;
using provenance::AddressMap;
using provenance::Record;

Record range(std::uint64_t base, std::uint64_t bytes, std::uint64_t id) {
    return {.base = base, .bytes = bytes, .id = id, .device = 1, .kind = MemoryKind::device};
}

TEST(AddressMap, NeighboursThatTouchAreToldApart) {  // keeps K8
    AddressMap map;
    ASSERT_TRUE(map.insert(range(0x1000, 0x800, 1)));
    ASSERT_TRUE(map.insert(range(0x1800, 0x800, 2)));
    EXPECT_EQ(map.find(0x0fff).id, 0u);
    EXPECT_EQ(map.find(0x1000).id, 1u);
    EXPECT_EQ(map.find(0x17ff).id, 1u);
    EXPECT_EQ(map.find(0x1800).id, 2u);
    EXPECT_EQ(map.find(0x1fff).id, 2u);
    EXPECT_EQ(map.find(0x2000).id, 0u);
    EXPECT_TRUE(map.covers(0x1001, 0x7ff));
    EXPECT_FALSE(map.covers(0x1001, 0x800)) << "the last byte is the neighbour's";
}

TEST(AddressMap, AStaleIdErasesNothing) {  // keeps K12
    AddressMap map;
    ASSERT_TRUE(map.insert(range(0x1000, 0x800, 1)));
    EXPECT_FALSE(map.erase(0x1000, 2));
    EXPECT_FALSE(map.erase(0x1001, 1));
    EXPECT_EQ(map.find(0x1000).id, 1u);
    EXPECT_TRUE(map.erase(0x1000, 1));
    EXPECT_FALSE(map.erase(0x1000, 1));
    EXPECT_EQ(map.size(), 0u);
}

}  // namespace
