// SPDX-License-Identifier: Apache-2.0
#include "profile_reader.hpp"

#include "profile_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace isthmus;
using isthmus::detail::read_profiles;
using profile_text::choice;
using profile_text::device;
using profile_text::file;
using profile_text::Members;
using profile_text::object;
using profile_text::with;
using profile_text::without;

std::string refused(const std::string& text) {
    const auto read = read_profiles(text, "/some/profile.json");
    if (read) return {};
    EXPECT_NE(read.error().text().find("/some/profile.json"), std::string::npos) << read.error().text();
    return std::string(read.error().id());
}
std::string list(const Members& a, const Members& b) {
    return "[" + object(a) + "," + object(b) + "]";
}

// keeps P4
TEST(ProfileReader, TakesWhatTheLibraryNeedsAndSkipsTheRest) {
    const Members copied = with(with(with(choice(), "from_bytes", "4096"), "kind", "\"device\""), "passes", "1");
    const auto read = read_profiles(file(device(list(choice(), copied))), "file");
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
    ASSERT_EQ(profile.choices.size(), 2u);
    EXPECT_EQ(profile.choices[1].from_bytes, 4096u);
    EXPECT_EQ(profile.choices[1].kind, MemoryKind::device);
    EXPECT_EQ(profile.choices[0].host, Role::writes);
    EXPECT_EQ(read_profiles(R"({"schema": "isthmus-profile-1", "devices": []})", "file")->size(), 0u);
}

// keeps P4: nothing of a damaged file is used, and the error says where the damage is
TEST(ProfileReader, EveryPrefixOfAFileIsDamaged) {
    const std::string whole = file(device("[" + object(choice()) + "]"));
    ASSERT_TRUE(read_profiles(whole, "file"));
    for (std::size_t length = 0; length < whole.size(); ++length) {
        EXPECT_EQ(refused(whole.substr(0, length)), "T002") << length;
    }
    EXPECT_EQ(refused(whole + "x"), "T002");
}

// keeps P4
TEST(ProfileReader, EachMemberIsNeededOnceAndHasItsOwnType) {
    const std::string one = "[" + object(choice()) + "]";
    for (const auto& [name, value] : device(one)) {
        if (name == "name" || name == "turns") continue;  // the library reads neither
        EXPECT_EQ(refused(file(without(device(one), name))), "T002") << name;
        EXPECT_EQ(refused(file(with(device(one), name, "-1"))), "T002") << name;
        Members twice = device(one);
        twice.emplace_back(name, value);
        EXPECT_EQ(refused(file(twice)), "T002") << name;
    }
    for (const auto& [name, value] : choice()) {
        EXPECT_EQ(refused(file(device("[" + object(without(choice(), name)) + "]"))), "T002") << name;
        EXPECT_EQ(refused(file(device("[" + object(with(choice(), name, "-1")) + "]"))), "T002") << name;
        Members twice = choice();
        twice.emplace_back(name, value);
        EXPECT_EQ(refused(file(device("[" + object(twice) + "]"))), "T002") << name;
    }
    EXPECT_EQ(refused(file(with(device(one), "uuid", "\"not one\""))), "T002");
    EXPECT_EQ(refused(file(device("[" + object(with(choice(), "kind", "\"porcelain\"")) + "]"))), "T002");
    EXPECT_EQ(refused(file(device("[" + object(with(choice(), "kind", "\"unknown\"")) + "]"))), "T002");
    EXPECT_EQ(refused(file(device("[" + object(with(choice(), "passes", "0")) + "]"))), "T002");
    EXPECT_EQ(refused(file(device("[" + object(with(choice(), "passes", "4294967297")) + "]"))), "T002");
    EXPECT_EQ(refused(file(device("[" + object(with(choice(), "from_bytes", "1")) + "]"))), "T002");
    EXPECT_EQ(refused(file(device(list(choice(), choice())))), "T002") << "ascending, so no choice occurs twice";
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
