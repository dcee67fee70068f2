// SPDX-License-Identifier: Apache-2.0
// Profiles as files, where they lie, and the points and ratios of --verify.
#include "common/console.hpp"
#include "common/exit_codes.hpp"
#include "tune/profile_json.hpp"
#include "tune/profile_place.hpp"
#include "tune/progress_bar.hpp"
#include "tune/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace isthmus::tools::tune {
namespace {

Measurements a_device(std::uint8_t number) {
    Measurements device;
    device.device_name = "a \"GPU\"\n";
    device.cpu_name = "a CPU";
    device.machine_record = "{\"schema\": 1}\n";
    device.profile.device.bytes[15] = number;
    device.profile.driver_version = 13000;
    device.profile.kernel_release = "6.8.0";
    device.profile.simulated = true;
    device.profile.translation = Translation::host_page_tables;
    device.profile.memory = MemoryModel::coherent_node;
    device.profile.measured_on = "2026-11-24";
    device.profile.choices = {{Role::reads_and_writes, Role::reads, true, Prefer::latency, 12, 4096,
                               MemoryKind::registered, Locality::near_device},
                              {}};
    device.ways = {{MemoryKind::pinned, Locality::anywhere}, {MemoryKind::host, Locality::unbound}};
    for (const ProfileChoice& choice : device.profile.choices) device.ways.push_back({choice.kind, choice.locality});
    device.turns = {{device.ways[1], Role::writes, 128, 16, {1.25e-5, 1e-5, 2e-5, 9}}};
    device.hosts = {{device.ways[0], Role::reads, 64, {1e-7, 1e-7, 3e-7, 5}}};
    device.figures = {{"copies", "to the device", "pinned", 1 << 20, {50.5, 49, 51, 7}, "GB/s"}};
    device.conditions = {"30 W", 1e9, 1.5e9, 2e9, true, {"hot"}};
    device.seconds_taken = 59.5;
    return device;
}

TEST(ProfileJson, ReadsWhatItWrote) {  // keeps P3
    const std::vector<Measurements> written{a_device(1), a_device(2)};
    const std::vector<Measurements> read = read_profile(write_profile(written));
    ASSERT_EQ(read.size(), 2u);
    const Measurements& one = read[1];
    EXPECT_TRUE(one.profile.device == written[1].profile.device);
    EXPECT_EQ(one.device_name, written[1].device_name);
    EXPECT_EQ(one.cpu_name, "a CPU");
    EXPECT_NE(one.machine_record.find("\"schema\": 1"), std::string::npos);
    EXPECT_EQ(one.profile.driver_version, 13000);
    EXPECT_EQ(one.profile.kernel_release, "6.8.0");
    EXPECT_TRUE(one.profile.simulated);
    EXPECT_EQ(one.profile.translation, Translation::host_page_tables);
    EXPECT_EQ(one.profile.memory, MemoryModel::coherent_node);
    EXPECT_EQ(one.profile.measured_on, "2026-11-24");
    ASSERT_EQ(one.profile.choices.size(), 2u);
    const ProfileChoice& choice = one.profile.choices[0];
    EXPECT_EQ(choice.device, Role::reads_and_writes);
    EXPECT_EQ(choice.host, Role::reads);
    EXPECT_TRUE(choice.host_often);
    EXPECT_EQ(choice.prefer, Prefer::latency);
    EXPECT_EQ(choice.passes, 12);
    EXPECT_EQ(choice.from_bytes, 4096u);
    EXPECT_EQ(choice.kind, MemoryKind::registered);
    EXPECT_EQ(choice.locality, Locality::near_device);
    ASSERT_EQ(one.turns.size(), 1u);
    EXPECT_TRUE(one.turns[0].way == one.ways[1]);
    EXPECT_EQ(one.turns[0].device, Role::writes);
    EXPECT_EQ(one.turns[0].passes, 16);
    EXPECT_EQ(one.turns[0].seconds.high, 2e-5);
    EXPECT_EQ(one.turns[0].seconds.count, 9);
    ASSERT_EQ(one.hosts.size(), 1u);
    EXPECT_EQ(one.hosts[0].host, Role::reads);
    ASSERT_EQ(one.figures.size(), 1u);
    EXPECT_EQ(one.figures[0].unit, "GB/s");
    EXPECT_EQ(one.figures[0].value.median, 50.5);
    EXPECT_EQ(one.conditions.power_mode, "30 W");
    EXPECT_TRUE(one.conditions.throttled);
    EXPECT_EQ(one.conditions.notes, std::vector<std::string>{"hot"});
    EXPECT_EQ(one.seconds_taken, 59.5);
    EXPECT_EQ(write_profile(read), write_profile(written));
}

TEST(ProfileJson, LeavesTheCpuOut) {
    Measurements cpu = a_device(0);
    EXPECT_TRUE(read_profile(write_profile({cpu})).empty()) << "a profile is found by a UUID";
    EXPECT_EQ(read_measurements(write_measurements(cpu)).device_name, cpu.device_name);
}

TEST(ProfileJson, NamesWhatIsWrongWithAFile) {  // keeps P4
    const std::string whole = write_profile({a_device(1)});
    const auto replaced = [&](const std::string& from, const std::string& to) {
        std::string text = whole;
        text.replace(text.find(from), from.size(), to);
        return text;
    };
    const std::map<std::string, std::string> damaged = {
        {"", ""},
        {"cut", whole.substr(0, whole.size() / 2)},
        {"isthmus-profile-9", replaced("isthmus-profile-1", "isthmus-profile-9")},
        {"GPU-12", replaced("GPU-00000000-0000-0000-0000-000000000001", "GPU-12")},
        {"paper", replaced("\"registered\"", "\"paper\"")},
        {"not listed", replaced("\"way\":1", "\"way\":7")},
        {"four numbers", replaced("9]", "9,9]")},
    };
    for (const auto& [says, text] : damaged) {
        try {
            (void)read_profile(text);
            ADD_FAILURE() << says;
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.exit_code(), exit_bad_usage);
            if (says == "cut") continue;
            EXPECT_NE(std::string(failure.what()).find(says), std::string::npos) << failure.what();
        }
    }
}

TEST(ProfilePlace, ReplacesTheSameDeviceAndKeepsOthers) {
    Measurements again = a_device(2);
    again.profile.measured_on = "2027-01-01";
    const std::vector<Measurements> all = merged({a_device(1), a_device(2)}, again);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].profile.measured_on, "2026-11-24");
    EXPECT_EQ(all[1].profile.measured_on, "2027-01-01");
    EXPECT_EQ(merged(all, a_device(3)).size(), 3u);
}

class Place : public testing::Test {
protected:
    void SetUp() override {
        for (const char* name : {"HOME", "XDG_CONFIG_HOME", "ISTHMUS_PROFILE"}) {
            const char* const value = std::getenv(name);
            if (value != nullptr) before_[name] = value;
            ::unsetenv(name);
        }
    }
    void TearDown() override {
        for (const char* name : {"HOME", "XDG_CONFIG_HOME", "ISTHMUS_PROFILE"}) {
            before_.count(name) != 0 ? ::setenv(name, before_[name].c_str(), 1) : ::unsetenv(name);
        }
    }
    std::map<std::string, std::string> before_;
};

TEST_F(Place, IsInTheUsersConfiguration) {
    EXPECT_EQ(own_profile_path(), "");
    ::setenv("HOME", "/home/someone", 1);
    EXPECT_EQ(own_profile_path(), "/home/someone/.config/isthmus/profile.json");
    ::setenv("XDG_CONFIG_HOME", "relative", 1);
    EXPECT_EQ(own_profile_path(), "/home/someone/.config/isthmus/profile.json") << "a relative path counts as none";
    ::setenv("XDG_CONFIG_HOME", "/config", 1);
    EXPECT_EQ(own_profile_path(), "/config/isthmus/profile.json");
}

TEST_F(Place, IsFoundByTheVariableFirst) {
    const std::string folder = testing::TempDir() + "isthmus-profile-place";
    ::setenv("XDG_CONFIG_HOME", folder.c_str(), 1);
    const std::string own = own_profile_path();
    make_folders_of(own);
    std::ofstream(own) << "{}";
    EXPECT_EQ(found_profile_path(), own);
    EXPECT_EQ(text_of_file(own), "{}");
    ::setenv("ISTHMUS_PROFILE", "/elsewhere.json", 1);
    EXPECT_EQ(found_profile_path(), "/elsewhere.json");
    ::setenv("ISTHMUS_PROFILE", "none", 1);
    EXPECT_EQ(found_profile_path(), "");
    EXPECT_THROW((void)text_of_file(folder + "/missing"), Failure);
    EXPECT_THROW(make_folders_of(own + "/below/a/file"), Failure);
}

// --- verify ---------------------------------------------------------------------------------------------------------

TEST(Verify, TakesPointsBetweenTheMeasuredOnes) {  // keeps P7
    constexpr std::size_t largest = std::size_t{256} << 20;
    std::vector<std::size_t> measured;
    for (std::size_t bytes = 64; bytes <= largest; bytes *= 2) measured.push_back(bytes);
    const std::vector<VerifyPoint> points = verify_points(240, 1, largest, measured);
    ASSERT_EQ(points.size(), 240u);
    std::map<Role, int> roles;
    std::map<int, int> decades;  // of sizes, by powers of 16
    for (const VerifyPoint& point : points) {
        ++roles[point.device];
        EXPECT_GE(point.bytes, 64u);
        EXPECT_LE(point.bytes, largest);
        EXPECT_EQ(point.bytes % 16, 0u);
        EXPECT_EQ(std::find(measured.begin(), measured.end(), point.bytes), measured.end());
        EXPECT_GE(point.passes, 1);
        EXPECT_LE(point.passes, 256);
        EXPECT_LE(static_cast<double>(point.bytes) * point.passes, 4.3e9);
        int decade = 0;
        for (std::size_t bytes = point.bytes; bytes >= 1024; bytes /= 16) ++decade;
        ++decades[decade];
    }
    EXPECT_EQ(roles[Role::reads], 80);
    EXPECT_EQ(roles[Role::writes], 80);
    EXPECT_GE(decades.size(), 5u);
    const std::vector<VerifyPoint> again = verify_points(240, 1, largest, measured);
    const std::vector<VerifyPoint> others = verify_points(240, 2, largest, measured);
    EXPECT_EQ(again[100].bytes, points[100].bytes);
    EXPECT_NE(others[100].bytes, points[100].bytes);
}

TEST(Verify, LeavesMeasuredSizesOut) {  // keeps P7
    // So few sizes that points would often be among them.
    const std::vector<std::size_t> measured{64, 96, 128};
    for (const VerifyPoint& point : verify_points(60, 3, 128, measured)) {
        EXPECT_TRUE(point.bytes == 80 || point.bytes == 112) << point.bytes;
    }
}

TEST(Verify, CountsDifferencesBeyondTheSpread) {  // keeps P7
    const Sample best{1.0, 0.9, 1.1, 9};
    EXPECT_EQ(ratio_of({1.2, 1.05, 1.3, 9}, best), 1) << "the intervals touch";
    EXPECT_DOUBLE_EQ(ratio_of({1.2, 1.15, 1.3, 9}, best), 1.2);
    EXPECT_EQ(ratio_of({0.9, 0.8, 0.95, 9}, best), 1) << "nothing is better than the best";
}

TEST(Verify, JudgesBothSides) {
    std::vector<VerifyRow> rows(200);
    EXPECT_TRUE(is_kept(verdict_of(rows, true)));
    rows[3].with_profile.ratio = rows[4].with_profile.ratio = 1.1;
    rows[5].without_profile.ratio = 3;
    EXPECT_DOUBLE_EQ(verdict_of(rows, true).good_share, 0.99);
    EXPECT_DOUBLE_EQ(verdict_of(rows, true).worst, 1.1);
    EXPECT_TRUE(is_kept(verdict_of(rows, true)));
    EXPECT_FALSE(is_kept(verdict_of(rows, false)));
    rows[6].with_profile.ratio = 1.1;
    EXPECT_FALSE(is_kept(verdict_of(rows, true))) << "three of 200 are too many";
    EXPECT_FALSE(is_kept(verdict_of({}, true)));
}

TEST(Verify, TellsWhereTheChoiceWasNotGood) {
    std::vector<VerifyRow> rows(2);
    rows[0].point = {Role::reads_and_writes, 4000, 7};
    rows[0].best = {MemoryKind::host, Locality::unbound};
    rows[0].with_profile = {"pinned", {2, 2, 2, 9}, 2};
    const std::string text = verify_text(rows, true);
    EXPECT_NE(text.find("times mean nothing"), std::string::npos);
    EXPECT_NE(text.find("50.0 %"), std::string::npos) << text;
    EXPECT_NE(text.find("reads_and_writes"), std::string::npos) << text;
    const std::vector<VerifyRow> read = read_rows(write_rows(rows));
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read[0].point.passes, 7);
    EXPECT_EQ(read[0].with_profile.ratio, 2);
    EXPECT_TRUE(read[0].best == rows[0].best);
    EXPECT_NE(verify_json(rows, false).find("\"worst_ratio\": 2.0"), std::string::npos);
}

TEST(ProgressBar, FitsTheTerminal) {
    EXPECT_EQ(bar_line(0.5, "sizes: 64 bytes", 80), "[############            ] 50 %, sizes: 64 bytes");
    EXPECT_EQ(bar_line(2, "x", 80).find("100 %"), 27u);
    for (const std::size_t columns : {std::size_t{0}, std::size_t{1}, std::size_t{10}, std::size_t{40}}) {
        const std::size_t size = bar_line(0.3, "a long text about what is done", columns).size();
        EXPECT_LE(size, columns == 0 ? 0 : columns - 1);
    }
}

}  // namespace
}  // namespace isthmus::tools::tune
