// SPDX-License-Identifier: Apache-2.0
// UUIDs of devices: text and back.
#include <isthmus/uuid.hpp>

#include <gtest/gtest.h>

namespace isthmus {
namespace {

constexpr const char* whole = "GPU-01234567-89ab-cdef-0123-456789abcdef";
constexpr const char* part = "MIG-fedcba98-7654-3210-fedc-ba9876543210";

TEST(Uuids, ComeBackAsTheTextThatTheyWereReadFrom) {
    for (const char* text : {whole, part}) {
        const Result<Uuid> read = Uuid::parse(text);
        ASSERT_TRUE(read) << read.error().text();
        EXPECT_EQ(read->text(), text);
    }
    EXPECT_EQ(Uuid::parse(whole)->bytes[1], 0x23);
    EXPECT_EQ(Uuid::parse(whole)->bytes[15], 0xef);
    EXPECT_FALSE(Uuid::parse(whole)->mig);
    EXPECT_TRUE(Uuid::parse(part)->mig);
}

TEST(Uuids, MayBeWrittenWithoutTheirPrefixAndInCapitals) {
    EXPECT_EQ(Uuid::parse("01234567-89AB-CDEF-0123-456789ABCDEF").value(), Uuid::parse(whole).value());
    EXPECT_NE(Uuid::parse(part).value(), Uuid::parse(whole).value());
}

TEST(Uuids, OfNothingAreNone) {
    EXPECT_FALSE(Uuid{});
    EXPECT_TRUE(Uuid::parse(whole).value());
    EXPECT_EQ(Uuid{}.text(), "GPU-00000000-0000-0000-0000-000000000000");
}

TEST(Uuids, AreRefusedWhereAnythingIsMissingOrTooMuch) {
    for (const char* text : {"", "GPU-", "MIG-", "0", "GPU-0123456789abcdef0123456789abcdef",
                             "GPU-01234567-89ab-cdef-0123-456789abcde", "GPU-01234567-89ab-cdef-0123-456789abcdef0",
                             "GPU-01234567-89ab-cdef-0123-456789abcdeg", "gpu-01234567-89ab-cdef-0123-456789abcdef",
                             "GPU-01234567089ab-cdef-0123-456789abcdef", "GPU-0123456--89ab-cdef-0123-456789abcdef"}) {
        const Result<Uuid> read = Uuid::parse(text);
        ASSERT_FALSE(read) << text;
        EXPECT_EQ(read.code(), Code::invalid_argument);
        EXPECT_NE(read.error().remedy().find("nvidia-smi"), std::string_view::npos);
    }
}

}  // namespace
}  // namespace isthmus
