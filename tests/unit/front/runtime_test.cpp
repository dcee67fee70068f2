// SPDX-License-Identifier: Apache-2.0
// What a moved-from Runtime answers.
#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

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

}  // namespace
