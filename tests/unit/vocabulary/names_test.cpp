// SPDX-License-Identifier: Apache-2.0
// Every enumerator has its own name, and attribute numbers and names agree in both directions.
#include <gtest/gtest.h>

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/litmus.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/sharing_use.hpp>

#include <set>
#include <string>

namespace {

using namespace isthmus;

template <class Enum>
void expect_distinct_names(int count) {
    std::set<std::string_view> seen;
    for (int i = 0; i < count; ++i) {
        const std::string_view text = name(static_cast<Enum>(i));
        EXPECT_FALSE(text.empty()) << i;
        EXPECT_TRUE(seen.insert(text).second) << "twice: " << text;
        if (i > 0) {
            EXPECT_NE(text, "unknown") << i;
        }
    }
    EXPECT_EQ(name(static_cast<Enum>(count)), "unknown") << "an enumerator after the last one that the test knows";
}

TEST(Names, EveryEnumeratorHasItsOwnName) {
    expect_distinct_names<Feature>(feature_count);
    expect_distinct_names<State>(3);
    expect_distinct_names<Origin>(4);
    expect_distinct_names<Translation>(3);
    expect_distinct_names<MemoryModel>(5);
    expect_distinct_names<ManagedModel>(4);
    expect_distinct_names<LinkAtomics>(3);
    expect_distinct_names<Model>(model_count);
    expect_distinct_names<AtomicOperation>(atomic_operation_count);
    expect_distinct_names<MemoryKind>(memory_kind_count);
    expect_distinct_names<LitmusShape>(litmus_shape_count);
    expect_distinct_names<Verdict>(3);
    expect_distinct_names<LaunchMode>(5);
    expect_distinct_names<Locality>(6);
    expect_distinct_names<Placed>(4);
    expect_distinct_names<Use>(use_count);
    expect_distinct_names<LaunchPath>(5);
}

TEST(Names, MemoryKindCodesAreStable) {  // keeps K1
    EXPECT_EQ(static_cast<int>(MemoryKind::unknown), 0);
    EXPECT_EQ(static_cast<int>(MemoryKind::host), 1);
    EXPECT_EQ(static_cast<int>(MemoryKind::pinned), 2);
    EXPECT_EQ(static_cast<int>(MemoryKind::registered), 3);
    EXPECT_EQ(static_cast<int>(MemoryKind::write_combined), 4);
    EXPECT_EQ(static_cast<int>(MemoryKind::device), 5);
    EXPECT_EQ(static_cast<int>(MemoryKind::pool), 6);
    EXPECT_EQ(static_cast<int>(MemoryKind::managed), 7);
    EXPECT_EQ(static_cast<int>(MemoryKind::managed_pool), 8);
    EXPECT_EQ(static_cast<int>(MemoryKind::graph), 9);
    EXPECT_EQ(static_cast<int>(MemoryKind::vmm), 10);
    EXPECT_EQ(static_cast<int>(MemoryKind::host_numa), 11);
    EXPECT_EQ(static_cast<int>(MemoryKind::imported), 12);
}

TEST(AttributeNames, EveryNumberOfCuda13HasANameThatLeadsBack) {
    for (int id = 1; id <= 147; ++id) {
        ASSERT_FALSE(attribute_name(id).empty()) << id;
        EXPECT_EQ(attribute_id(attribute_name(id)), id);
    }
    EXPECT_TRUE(attribute_name(0).empty());
    EXPECT_TRUE(attribute_name(148).empty());
    EXPECT_TRUE(attribute_name(-1).empty());
}

TEST(AttributeNames, DecidingAttributesHaveTheDriversNumbers) {
    EXPECT_EQ(attribute_id("INTEGRATED"), 18);
    EXPECT_EQ(attribute_id("UNIFIED_ADDRESSING"), 41);
    EXPECT_EQ(attribute_id("MANAGED_MEMORY"), 83);
    EXPECT_EQ(attribute_id("HOST_NATIVE_ATOMIC_SUPPORTED"), 86);
    EXPECT_EQ(attribute_id("PAGEABLE_MEMORY_ACCESS"), 88);
    EXPECT_EQ(attribute_id("CONCURRENT_MANAGED_ACCESS"), 89);
    EXPECT_EQ(attribute_id("PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES"), 100);
    EXPECT_EQ(attribute_id("DIRECT_MANAGED_MEM_ACCESS_FROM_HOST"), 101);
    EXPECT_EQ(attribute_id("HOST_NUMA_ID"), 134);
    EXPECT_EQ(attribute_id("ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED"), 147);
}

TEST(AttributeNames, DeprecatedNamesAreUnderstoodAndNotProduced) {
    EXPECT_EQ(attribute_id("VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED"), 102);
    EXPECT_EQ(attribute_name(102), "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED");
}

TEST(AttributeNames, UnknownNumbersTravelByNumberAndNonsenseIsRefused) {
    EXPECT_EQ(attribute_id("ATTRIBUTE_148"), 148);
    EXPECT_EQ(attribute_id("ATTRIBUTE_9999"), 9999);
    for (const char* nonsense : {"", "ATTRIBUTE_", "ATTRIBUTE_0", "ATTRIBUTE_-3", "ATTRIBUTE_007", "ATTRIBUTE_1x",
                                 "ATTRIBUTE_99999999999", "PAGEABLE", "pageable_memory_access"}) {
        EXPECT_EQ(attribute_id(nonsense), -1) << nonsense;
    }
}

TEST(DeviceFacts, AnAttributeThatIsAbsentOrRefusedHasNoValue) {
    DeviceFacts facts;
    facts.attributes = {{18, 1, 0}, {88, 1, 1}, {89, 0, 0}};
    EXPECT_EQ(facts.attribute(18), 1);
    EXPECT_EQ(facts.attribute(88), std::nullopt) << "refused";
    EXPECT_EQ(facts.attribute(89), 0);
    EXPECT_EQ(facts.attribute(100), std::nullopt) << "absent";
    EXPECT_EQ(DeviceFacts{}.attribute(1), std::nullopt);
}

TEST(MachineFacts, AnAbsentDriverParameterIsEmpty) {
    MachineFacts machine;
    machine.nvidia_params = {{"CoherentGPUMemoryMode", "driver"}, {"ImexChannelCount", "2048"}};
    EXPECT_EQ(machine.nvidia_param("CoherentGPUMemoryMode"), "driver");
    EXPECT_EQ(machine.nvidia_param("CreateImexChannel0"), "");
}

}  // namespace
