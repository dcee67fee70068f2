// SPDX-License-Identifier: Apache-2.0
// What a moved-from Runtime answers.
#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace {

// keeps R1
TEST(Runtimes, ARuntimeThatWasMovedFromAnswersOrSaysWhatIsWrong) {
    isthmus::Runtime runtime = isthmus::Runtime::open().value();
    const isthmus::Runtime kept = std::move(runtime);
    EXPECT_GE(kept.device_count(), 1u);
    // NOLINTBEGIN(bugprone-use-after-move)
    EXPECT_EQ(runtime.device_count(), 0u);
    EXPECT_EQ(runtime.device(0).code(), isthmus::Code::invalid_handle);
    EXPECT_EQ(runtime.device(isthmus::Uuid()).code(), isthmus::Code::invalid_handle);
    EXPECT_EQ(runtime.synchronize().code(), isthmus::Code::invalid_handle);
    EXPECT_EQ(runtime.statistics().staged_launches, 0u);
    for (const char* const call : {"cpu", "default_device", "current_device", "machine", "cuda_absence"}) {
        const auto made = [&] {
            const std::string_view which = call;
            if (which == "cpu") (void)runtime.cpu();
            if (which == "default_device") (void)runtime.default_device();
            if (which == "current_device") (void)runtime.current_device();
            if (which == "machine") (void)runtime.machine();
            if (which == "cuda_absence") (void)runtime.cuda_absence();
        };
        EXPECT_DEATH(made(), std::string("Runtime::") + call + " was called on a Runtime that was moved from");
    }
    // NOLINTEND(bugprone-use-after-move)
}

// Sets the variable for its own lifetime.
class Environment {
public:
    explicit Environment(const char* mode) { ::setenv("ISTHMUS_LAUNCH_MODE", mode, 1); }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;
    ~Environment() { ::unsetenv("ISTHMUS_LAUNCH_MODE"); }
};

isthmus::LaunchMode mode_of(isthmus::Runtime& runtime) {
    EXPECT_EQ(runtime.cpu().create_stream().value().launch_mode(), runtime.cpu().stream().launch_mode());
    return runtime.cpu().stream().launch_mode();
}

// keeps L13
TEST(Runtimes, TheEnvironmentNamesTheLaunchModeThatTheOptionsDoNot) {
    using isthmus::LaunchMode;
    ::unsetenv("ISTHMUS_LAUNCH_MODE");
    isthmus::Runtime before = isthmus::Runtime::open().value();
    EXPECT_EQ(mode_of(before), LaunchMode::relaxed);
    for (const LaunchMode mode :
         {LaunchMode::relaxed, LaunchMode::checked, LaunchMode::strict, LaunchMode::staged, LaunchMode::verify}) {
        const Environment set(std::string(name(mode)).c_str());
        isthmus::Runtime named = isthmus::Runtime::open().value();
        EXPECT_EQ(mode_of(named), mode);
        isthmus::Runtime chosen = isthmus::Runtime::open({.launch_mode = LaunchMode::checked}).value();
        EXPECT_EQ(mode_of(chosen), LaunchMode::checked) << "the options decide before the environment";
    }
    EXPECT_EQ(mode_of(before), LaunchMode::relaxed) << "read once, when it was opened";
    {
        const Environment empty("");
        isthmus::Runtime runtime = isthmus::Runtime::open().value();
        EXPECT_EQ(mode_of(runtime), LaunchMode::relaxed);
    }
    const Environment wrong("chekced");
    const isthmus::Result<isthmus::Runtime> refused = isthmus::Runtime::open();
    ASSERT_FALSE(refused.ok()) << "a misspelled mode would check nothing, and nobody would notice";
    EXPECT_EQ(refused.code(), isthmus::Code::invalid_argument);
    EXPECT_EQ(refused.error().id(), "R004");
    EXPECT_NE(refused.error().message().find("'chekced'"), std::string_view::npos);
    EXPECT_TRUE(isthmus::Runtime::open({.launch_mode = LaunchMode::relaxed}).ok()) << "which names one";
}

class Variables {
public:
    void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
    ~Variables() {
        for (const char* name :
             {"ISTHMUS_PROFILE", "XDG_CONFIG_HOME", "ISTHMUS_CACHE_BYTES", "ISTHMUS_DEVICE_SEGMENTS"})
            ::unsetenv(name);
    }
};

std::uint64_t kept_at_most(const isthmus::RuntimeOptions& options = {}) {
    return isthmus::Runtime::open(options).value().cpu().cache_usage().limit_bytes;
}

// keeps M5
TEST(Runtimes, TheEnvironmentSaysHowMuchIsKeptWhereTheOptionsDoNot) {
    Variables variables;
    isthmus::RuntimeOptions options;
    options.cache_bytes = 5;
    const std::uint64_t without = kept_at_most();
    EXPECT_GT(without, 0u);
    EXPECT_LE(without, std::uint64_t{256} << 20);
    variables.set("ISTHMUS_CACHE_BYTES", "4096");
    EXPECT_EQ(kept_at_most(), 4096u);
    EXPECT_EQ(kept_at_most(options), 5u) << "the options decide before the environment";
    variables.set("ISTHMUS_CACHE_BYTES", "0");
    EXPECT_EQ(kept_at_most(), 0u);
    variables.set("ISTHMUS_CACHE_BYTES", "4k");
    const isthmus::Result<isthmus::Runtime> refused = isthmus::Runtime::open();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.code(), isthmus::Code::invalid_argument);
    EXPECT_EQ(refused.error().id(), "R006");
    EXPECT_NE(refused.error().message().find("'4k'"), std::string_view::npos);
    EXPECT_EQ(kept_at_most(options), 5u) << "the environment is not looked at";
}

// keeps M5
TEST(Runtimes, TheEnvironmentAsksForSegmentsAndAMisspeltRequestIsRefused) {
    Variables variables;
    for (const char* const fine : {"", "0", "1"}) {
        variables.set("ISTHMUS_DEVICE_SEGMENTS", fine);
        EXPECT_TRUE(isthmus::Runtime::open().ok()) << fine;
    }
    variables.set("ISTHMUS_DEVICE_SEGMENTS", "yes");
    const isthmus::Result<isthmus::Runtime> refused = isthmus::Runtime::open();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().id(), "R008");
    EXPECT_NE(refused.error().message().find("'yes'"), std::string_view::npos);
}

std::string refusal_with(const std::string& profile) {
    isthmus::RuntimeOptions options;
    options.profile = profile;
    const auto opened = isthmus::Runtime::open(options);
    return opened ? std::string() : std::string(opened.error().id());
}

// keeps P3, P4: the option, the environment and the user's folder name the file, in this order
TEST(Runtimes, OpenReadsTheProfileOfTheNearestPlace) {
    const std::string folder = ::testing::TempDir() + "isthmus-front-" + std::to_string(::getpid());
    std::filesystem::create_directories(folder + "/config/isthmus");
    const auto write = [](const std::string& file, const std::string& text) { std::ofstream(file) << text; };
    const std::string good = folder + "/good.json", of_folder = folder + "/config/isthmus/profile.json";
    write(good, R"({"schema": "isthmus-profile-1", "devices": []})");
    write(of_folder, "damaged");
    Variables variables;
    variables.set("XDG_CONFIG_HOME", folder + "/config");
    ::unsetenv("ISTHMUS_PROFILE");
    EXPECT_EQ(refusal_with(""), "T002") << "the folder's file is damaged";
    EXPECT_EQ(refusal_with("none"), "");
    EXPECT_EQ(refusal_with(good), "");
    variables.set("ISTHMUS_PROFILE", good);
    EXPECT_EQ(refusal_with(""), "");
    EXPECT_EQ(refusal_with(of_folder), "T002") << "the option decides before the environment";
    variables.set("ISTHMUS_PROFILE", "none");
    EXPECT_EQ(refusal_with(""), "");
    variables.set("ISTHMUS_PROFILE", folder + "/missing.json");
    EXPECT_EQ(refusal_with(""), "T001");
    write(of_folder, R"({"schema": "isthmus-profile-2"})");
    ::unsetenv("ISTHMUS_PROFILE");
    EXPECT_EQ(refusal_with(""), "T003");
    std::filesystem::remove_all(folder);
}

}  // namespace
