// SPDX-License-Identifier: Apache-2.0
// Programs end in any order: no crash, no hang, nothing said. keeps R4, R8
#include "own_process.hpp"
#include "scenes.hpp"

#include <span>

namespace {

using namespace endings;

class Endings : public testing::TestWithParam<Scene> {};

// keeps R4, R8
TEST_P(Endings, AreQuiet) {
    expect_ended_quietly(in_a_process_of_its_own([] {
                             GetParam().play();
                             std::exit(ended);
                         }),
                         ended);
}

INSTANTIATE_TEST_SUITE_P(OfPrograms, Endings, testing::ValuesIn(scenes, scenes + scene_count),
                         [](const auto& scene) { return std::string(scene.param.name); });

// Checks that the test above would detect a program that ends badly.
TEST(OwnProcess, SaysWhatBecameOfIt) {
    const Ended crashed = in_a_process_of_its_own([] { ::raise(SIGKILL); });
    EXPECT_TRUE(crashed.in_time && WIFSIGNALED(crashed.status));
    const Ended loud = in_a_process_of_its_own([] { std::fputs("too late", stderr); });
    EXPECT_EQ(loud.errors, "too late");
    EXPECT_EQ(loud.out, "");
}

}  // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
