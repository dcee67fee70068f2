// SPDX-License-Identifier: Apache-2.0
// What a moved-from Runtime answers.
#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
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

}  // namespace
