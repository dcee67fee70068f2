// SPDX-License-Identifier: Apache-2.0
// KeptKernels: descriptions of kernels whose library may be closed.
#include "kept_kernels.hpp"

#include <isthmus/parameter_name.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <string>
#include <vector>

namespace isthmus::detail {
namespace {

// A kernel in memory of its own, as in a shared library.
struct Loaded {
    explicit Loaded(const char* called)
        : name(called),
          text("Index i, View<int> data, int more"),
          parameter{{0, 16, 4, ArgumentUse::read_write}, {16, 4, 0, ArgumentUse::value}},
          info{name.c_str(), text.c_str(), text.c_str(), parameter.data(), 2, 24, 1, 0, nullptr, nullptr} {}
    std::string name, text;
    std::vector<ParameterInfo> parameter;
    KernelInfo info;
};

TEST(KeptKernels, ACopyOutlivesTheKernelsLibrary) {
    KeptKernels kernels;
    auto library = std::make_unique<Loaded>("a_name_too_long_to_lie_within_a_string_object");
    const KernelInfo& kept = kernels.of(library->info);
    EXPECT_EQ(&kernels.of(library->info), &kept);
    library.reset();
    EXPECT_STREQ(kept.name, "a_name_too_long_to_lie_within_a_string_object");
    EXPECT_EQ(parameter_name(kept, 1), "more");
    EXPECT_EQ(kept.parameter[1].offset_bytes, 16u);
    EXPECT_EQ(kept.pack_bytes, 24u);
}

// keeps W9
TEST(KeptKernels, AKernelAtTheAddressOfAnotherIsAnother) {
    KeptKernels kernels;
    alignas(Loaded) unsigned char place[sizeof(Loaded)];
    auto* library = new (place) Loaded("first");
    const KernelInfo& first = kernels.of(library->info);
    library->~Loaded();
    library = new (place) Loaded("second");
    const KernelInfo& second = kernels.of(library->info);
    library->~Loaded();
    EXPECT_STREQ(first.name, "first");
    EXPECT_STREQ(second.name, "second");
}

}  // namespace
}  // namespace isthmus::detail
