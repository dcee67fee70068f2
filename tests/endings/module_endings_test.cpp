// SPDX-License-Identifier: Apache-2.0
// A module that uses the library is unloaded, and the library with it: this program links neither. keeps R4, R7, R8
#include "own_process.hpp"

#include <dlfcn.h>

#include <string>

namespace {

using namespace endings;

constexpr int ended = 7;

std::string module_file;  // from the command line

struct Module {
    Module() : handle(::dlopen(module_file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (handle == nullptr) std::fprintf(stderr, "%s\n", ::dlerror());
    }
    void play(const char* scene) const {
        const auto play_scene = reinterpret_cast<int (*)(const char*)>(::dlsym(handle, "isthmus_test_play"));
        if (play_scene(scene) != 0) std::fprintf(stderr, "there is no scene %s\n", scene);
    }
    void unload() const {
        if (::dlclose(handle) != 0) std::fprintf(stderr, "%s\n", ::dlerror());
    }
    void* handle;
};

class ModuleEndings : public testing::TestWithParam<const char*> {};

// keeps R4, R8
TEST_P(ModuleEndings, ItIsUnloadedAndTheProgramGoesOn) {
    expect_ended_quietly(in_a_process_of_its_own([] {
                             const Module module;
                             module.play(GetParam());
                             module.unload();
                             // The unloaded module's fork() handlers are unregistered, too.
                             if (::fork() == 0) ::_exit(0);
                             int status = 0;
                             (void)::wait(&status);
                             std::exit(ended);
                         }),
                         ended);
}

// keeps R4, R8
TEST_P(ModuleEndings, TheProgramEndsWithTheModuleLoaded) {
    expect_ended_quietly(in_a_process_of_its_own([] {
                             const Module module;
                             module.play(GetParam());
                             std::exit(ended);
                         }),
                         ended);
}

INSTANTIATE_TEST_SUITE_P(OfModules, ModuleEndings,
                         testing::Values("what_is_closed_in_order", "what_a_module_keeps",
                                         "what_a_module_keeps_for_a_thread", "a_handler_of_a_module"),
                         [](const auto& scene) { return std::string(scene.param); });

// keeps R4, R8: the driver's library stays, and the module finds it again
TEST(ModuleEndings, AModuleMayBeLoadedAgain) {
    const Ended ending = in_a_process_of_its_own([] {
        for (int round = 0; round < 3; ++round) {
            const Module module;
            module.play("what_is_closed_in_order");
            module.unload();
        }
        std::exit(ended);
    });
    EXPECT_TRUE(ending.in_time && WIFEXITED(ending.status));
    EXPECT_EQ(WEXITSTATUS(ending.status), ended);
    EXPECT_EQ(ending.out, "ready\nready\nready\n");
    EXPECT_EQ(ending.errors, "");
}

}  // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (argc != 2) {
        std::fputs("usage: test_module_endings MODULE\n", stderr);
        return 2;
    }
    module_file = argv[1];
    return RUN_ALL_TESTS();
}
