// SPDX-License-Identifier: Apache-2.0
#include "profile_file.hpp"

#include "profile_text.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace {

using namespace isthmus;
using isthmus::detail::find_profiles;
using isthmus::detail::profile_candidates;
using isthmus::detail::ProfilePlaces;

std::string files_of(const ProfilePlaces& places) {
    std::string text;
    for (const auto& each : profile_candidates(places)) text += each.file + (each.asked ? "! " : " ");
    return text;
}

// keeps P3: the option, then the variable, then the user's folder, then the system's
TEST(ProfileFile, TheNearestPlaceDecides) {
    const std::string etc = "/etc/isthmus/profile.json ";
    EXPECT_EQ(files_of({"/a", "/b", "/c", "/d"}), "/a! ");
    EXPECT_EQ(files_of({"", "/b", "/c", "/d"}), "/b! ");
    EXPECT_EQ(files_of({"", "", "/c", "/d"}), "/c/isthmus/profile.json " + etc);
    EXPECT_EQ(files_of({"", "", "", "/d"}), "/d/.config/isthmus/profile.json " + etc);
    EXPECT_EQ(files_of({"", "", "relative", "/d"}), "/d/.config/isthmus/profile.json " + etc);
    EXPECT_EQ(files_of({"", "", "", ""}), etc);
    EXPECT_EQ(files_of({"none", "/b", "/c", "/d"}), "");
    EXPECT_EQ(files_of({"", "none", "/c", "/d"}), "");
    EXPECT_EQ(files_of({"/a", "none", "/c", "/d"}), "/a! ");
}

class Folder {
public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "isthmus-profile-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
        std::filesystem::create_directory(path_ / "isthmus");
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string path() const { return path_.string(); }
    std::string file() const { return (path_ / "isthmus" / "profile.json").string(); }
    void write(const std::string& text) const { std::ofstream(file()) << text; }

private:
    std::filesystem::path path_;
};

// keeps P3, P4
TEST(ProfileFile, AMissingFileIsAnErrorOnlyWhereItWasAskedFor) {
    const Folder folder;
    EXPECT_TRUE(find_profiles({"", "", folder.path(), ""})) << "nobody named it";
    for (const ProfilePlaces& places : {ProfilePlaces{folder.file(), "", "", ""}, {"", folder.file(), "", ""}}) {
        const auto found = find_profiles(places);
        ASSERT_FALSE(found);
        EXPECT_EQ(found.error().id(), "T001");
        EXPECT_NE(found.error().text().find("No such file"), std::string::npos) << found.error().text();
    }
    EXPECT_EQ(find_profiles({folder.path(), "", "", ""}).error().id(), "T001") << "a folder";
    EXPECT_TRUE(find_profiles({"", "none", folder.path(), ""})->file.empty());
}

// keeps P3, P4
TEST(ProfileFile, AFileThatIsThereIsReadWholeOrIsAnError) {
    const Folder folder;
    folder.write(profile_text::file(profile_text::device(profile_text::use())));
    const auto found = find_profiles({"", "", folder.path(), ""});
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_EQ(found->file, folder.file());
    ASSERT_EQ(found->devices.size(), 1u);
    EXPECT_EQ(found->devices[0].choices.size(), 1u);
    folder.write("{");
    EXPECT_EQ(find_profiles({"", "", folder.path(), ""}).error().id(), "T002") << "no lower place hides the damage";
    folder.write(R"({"schema": "isthmus-profile-9"})");
    EXPECT_EQ(find_profiles({"", "", folder.path(), ""}).error().id(), "T003");
}

}  // namespace
