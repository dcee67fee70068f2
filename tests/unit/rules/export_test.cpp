// Export refusals: each kind and origin has its own, and none is granted by its kind alone.
#include "export_rules.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace {

using isthmus::AccessAnswer;
using isthmus::MemoryKind;
using isthmus::Verdict;
using isthmus::rules::exportable;
using isthmus::rules::ExportOrigin;

// keeps K15
TEST(ExportRules, ManagedMemoryViewsAndForeignMemoryAreRefusedEachForItsOwnReason) {
    const AccessAnswer managed = exportable(MemoryKind::managed, ExportOrigin::own);
    const AccessAnswer view = exportable(MemoryKind::device, ExportOrigin::view);
    const AccessAnswer foreign = exportable(MemoryKind::device, ExportOrigin::foreign);
    std::set<std::string_view> reasons;
    const AccessAnswer shared = exportable(MemoryKind::registered, ExportOrigin::shared);
    for (const AccessAnswer& answer : {managed, view, foreign, shared}) {
        EXPECT_EQ(answer.verdict, Verdict::no);
        EXPECT_FALSE(answer.remedy.empty());
        reasons.insert(answer.reason);
    }
    EXPECT_EQ(reasons.size(), 4u);
}

// keeps K15
TEST(ExportRules, NoKindIsGrantedAndOnlyWhatMayHaveAHandleIsLeftOpen) {
    for (int number = 0; number < isthmus::memory_kind_count; ++number) {
        const auto kind = static_cast<MemoryKind>(number);
        SCOPED_TRACE(isthmus::name(kind));
        const bool open = kind == MemoryKind::device || kind == MemoryKind::vmm || kind == MemoryKind::unknown;
        EXPECT_EQ(exportable(kind, ExportOrigin::own).verdict, open ? Verdict::not_verified : Verdict::no);
        EXPECT_EQ(exportable(kind, ExportOrigin::view).verdict, Verdict::no);
        EXPECT_EQ(exportable(kind, ExportOrigin::foreign).verdict, Verdict::no);
        EXPECT_FALSE(exportable(kind, ExportOrigin::own).remedy.empty());
    }
}

}  // namespace
