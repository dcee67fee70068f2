// SPDX-License-Identifier: Apache-2.0
#include "profile_reader.hpp"

#include "profile_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace isthmus;
using isthmus::detail::read_profiles;
using profile_text::device;
using profile_text::file;
using profile_text::Members;
using profile_text::use;
using profile_text::way;
using profile_text::with;
using profile_text::without;

std::string refused(const std::string& text) {
    const auto read = read_profiles(text, "/some/profile.json");
    if (read) return {};
    EXPECT_NE(read.error().text().find("/some/profile.json"), std::string::npos) << read.error().text();
    return std::string(read.error().id());
}
// keeps P4
TEST(ProfileReader, TakesWhatTheLibraryNeedsAndSkipsTheRest) {
    const auto read = read_profiles(file(device(use("[[1, 0, 0, 4096, 1], [3, 0, 1]]"))), "file");
    ASSERT_TRUE(read) << read.error().text();
    ASSERT_EQ(read->size(), 1u);
    const DeviceProfile& profile = read->front();
    EXPECT_EQ(profile.device.text(), "GPU-01020304-0506-0708-090a-0b0c0d0e0f10");
    EXPECT_EQ(profile.driver_version, 13000);
    EXPECT_EQ(profile.kernel_release, "6.8.0-generic");
    EXPECT_FALSE(profile.simulated);
    EXPECT_EQ(profile.memory, MemoryModel::separate);
    EXPECT_EQ(profile.translation, Translation::none);
    EXPECT_EQ(profile.measured_on, "2026-11-24");
    ASSERT_EQ(profile.choices.size(), 3u);
    EXPECT_EQ(profile.choices[0].kind, MemoryKind::pinned);
    EXPECT_EQ(profile.choices[1].from_bytes, 4096u);
    EXPECT_EQ(profile.choices[1].kind, MemoryKind::device);
    EXPECT_EQ(profile.choices[1].passes, 1);
    EXPECT_EQ(profile.choices[2].passes, 3);
    for (const ProfileChoice& each : profile.choices) {
        EXPECT_EQ(each.device, Role::reads);
        EXPECT_EQ(each.host, Role::writes);
        EXPECT_FALSE(each.host_often);
    }
    EXPECT_EQ(read_profiles(R"({"schema": "isthmus-profile-1", "devices": []})", "file")->size(), 0u);
}

// keeps P4: nothing of a damaged file is used, and the error says where the damage is
TEST(ProfileReader, EveryPrefixOfAFileIsDamaged) {
    const std::string whole = file(device(use()));
    ASSERT_TRUE(read_profiles(whole, "file"));
    for (std::size_t length = 0; length < whole.size(); ++length) {
        EXPECT_EQ(refused(whole.substr(0, length)), "T002") << length;
    }
    EXPECT_EQ(refused(whole + "x"), "T002");
}

// keeps P4
TEST(ProfileReader, EachMemberIsNeededOnceAndHasItsOwnType) {
    for (const auto& [name, value] : device(use())) {
        if (name == "name" || name == "turns") continue;  // the library reads neither
        EXPECT_EQ(refused(file(without(device(use()), name))), "T002") << name;
        EXPECT_EQ(refused(file(with(device(use()), name, "-1"))), "T002") << name;
        Members twice = device(use());
        twice.emplace_back(name, value);
        EXPECT_EQ(refused(file(twice)), "T002") << name;
    }
    for (const auto& [name, value] : use()) {
        EXPECT_EQ(refused(file(device(without(use(), name)))), "T002") << name;
        EXPECT_EQ(refused(file(device(with(use(), name, "-1")))), "T002") << name;
        Members twice = use();
        twice.emplace_back(name, value);
        EXPECT_EQ(refused(file(device(twice))), "T002") << name;
    }
    const auto with_ways = [](const Members& one) {
        return file(with(device(use()), "ways", "[" + profile_text::object(one) + "]"));
    };
    EXPECT_EQ(refused(with_ways(way("managed"))), "");
    for (const char* member : {"kind", "locality"}) {
        EXPECT_EQ(refused(with_ways(without(way("managed"), member))), "T002") << member;
        EXPECT_EQ(refused(with_ways(with(way("managed"), member, "3"))), "T002") << member;
    }
    EXPECT_EQ(refused(with_ways(way("porcelain"))), "T002");
    EXPECT_EQ(refused(with_ways(way("unknown"))), "T002");
    EXPECT_EQ(refused(file(with(device(use()), "uuid", "\"not one\""))), "T002");
}

// keeps P4: a row is its passes, then sizes with the index of a way, ascending from 0 bytes on
TEST(ProfileReader, RowsAreWholeAndAscending) {
    for (const char* rows : {"[]", "[[1, 0, 0]]", "[[1, 0, 1, 1, 0]]", "[[2, 0, 0], [3, 0, 0, 5, 1]]"}) {
        EXPECT_EQ(refused(file(device(use(rows)))), "") << rows;
    }
    for (const char* rows :
         {"[[]]", "[[1]]", "[[1, 0]]", "[[1, 0, 0, 7]]", "[[1, 0, 2]]", "[[0, 0, 0]]", "[[4294967297, 0, 0]]",
          "[[1, 1, 0]]", "[[1, 0, 0, 0, 1]]", "[[2, 0, 0], [1, 0, 0]]", "[[1, 0, 0], [1, 0, 1]]", "[[1, 0, 0.0]]",
          "[[1, 0, -1]]", "[1, 0, 0]", "[[1, 0, \"pinned\"]]"}) {
        EXPECT_EQ(refused(file(device(use(rows)))), "T002") << rows;
    }
}

// keeps P4: the schema is read first, because what follows another one may mean anything
TEST(ProfileReader, NamesAnotherSchema) {
    const auto read = read_profiles(R"({"schema": "isthmus-profile-2", "devices": 3})", "file");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().id(), "T003");
    EXPECT_NE(read.error().text().find("isthmus-profile-2"), std::string::npos) << read.error().text();
    EXPECT_EQ(refused(R"({"devices": [], "schema": "isthmus-profile-1"})"), "T002");
    EXPECT_EQ(refused(R"({"schema": "isthmus-profile-1"})"), "T002");
    EXPECT_EQ(refused(R"({"schema": "isthmus-profile-1", "devices": [], "devices": []})"), "T002");
    EXPECT_EQ(refused(R"({"schema": "isthmus-profile-1", "schema": "isthmus-profile-1", "devices": []})"), "T002");
}

}  // namespace
