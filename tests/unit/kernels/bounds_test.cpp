// SPDX-License-Identifier: Apache-2.0
// Bounds of views in CPU twins: the line that names what was wrong, and when nothing is checked.
#define ISTHMUS_CHECK_BOUNDS 1
#include "unchecked.hpp"

#include "run_twin.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <numeric>
#include <string>
#include <sys/wait.h>

namespace {

using namespace isthmus;

ISTHMUS_KERNEL(gather, Index i, Out<int> out, View<const int> in, View<const std::uint32_t>, std::int64_t shift) {
    out[i] = in[static_cast<std::int64_t>(i.x) + shift];
}
ISTHMUS_KERNEL(from_half, Index i, View<int> data) {
    const View<int> half{data.data + data.count / 2, data.count / 2};
    half[i] = 1;
}
ISTHMUS_KERNEL(with_one_inside, Index i, View<int> data) {
    if (i.x == 0) run_twin(gather, 1, Out<int>{data.data, 1}, View<const int>{data.data, 1}, {}, 0);
    data[i] = 2;
}

bool trapped(int status) {
    return WIFSIGNALED(status) && (WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP);
}

// The line is the last one. Where qemu runs the test, it adds its own about the signal.
const std::string the_end = "(qemu: [^\n]*\n)?$";

struct Arrays {
    std::array<int, 4> out{};
    std::array<int, 6> in{1, 2, 3, 4, 5, 6};
};

// keeps L15
TEST(Bounds, ALineNamesKernelArgumentIndexAndSizeBeforeTheTrap) {
    Arrays a;
    const Out<int> out{a.out.data(), 4};
    const View<const int> in{a.in.data(), 6};
    EXPECT_EXIT(run_twin(gather, 5, out, in, {}, 0), trapped,
                "^isthmus: kernel 'gather': index 4 is outside argument 'out' \\(number 1\\), which has 4 elements\n" +
                    the_end);
    EXPECT_EXIT(run_twin(gather, 4, out, in, {}, 3), trapped,
                "kernel 'gather': index 6 is outside argument 'in' \\(number 2\\), which has 6 elements");
    EXPECT_EXIT(run_twin(gather, 4, out, in, {}, -1), trapped,
                "kernel 'gather': index -1 is outside argument 'in' \\(number 2\\), which has 6 elements");
    run_twin(gather, 4, out, in, {}, 2);
    EXPECT_EQ(a.out[3], 6) << "what is inside is untouched";
}

// keeps L15
TEST(Bounds, APartOfAnArgumentAndAViewOfNoArgumentAreNamedAsWhatTheyAre) {
    Arrays a;
    EXPECT_EXIT(
        run_twin(from_half, 3, View<int>{a.out.data(), 4}), trapped,
        "kernel 'from_half': index 2 is outside a part of argument 'data' \\(number 1\\), which has 2 elements");
    EXPECT_EXIT((void)(View<int>{a.out.data(), 1}[1]), trapped,
                "^isthmus: index 1 is outside the view at 0x[0-9a-f]+, which has 1 element\n" + the_end);
    const View<const std::uint32_t> unnamed{nullptr, 3};
    const auto pack =
        KernelTraits<void(Index, Out<int>, View<const int>, View<const std::uint32_t>, std::int64_t)>::pack({}, {},
                                                                                                            unnamed, 0);
    const detail::RunningTwin twin{&gather.info(), &pack};
    EXPECT_EQ(detail::words_out_of_bounds(twin, nullptr, 3, 9).text(),
              "isthmus: kernel 'gather': index 9 is outside argument number 3, which has 3 elements\n");
}

// keeps L15: the kernel that goes on is named again
TEST(Bounds, AKernelThatRanAnotherIsNamedAgain) {
    Arrays a;
    EXPECT_EXIT(run_twin(with_one_inside, 5, View<int>{a.out.data(), 4}), trapped, "kernel 'with_one_inside': index 4");
    EXPECT_EQ(detail::running_twin.kernel, nullptr);
}

TEST(Bounds, ALineThatIsTooLongIsCutAndNothingElse) {
    const std::string name(1000, 'k');
    KernelInfo kernel = gather.info();
    kernel.name = name.c_str();
    kernel.parameter_count = 0;
    const detail::LastLine line = detail::words_out_of_bounds({&kernel, nullptr}, nullptr, 1, 2);
    EXPECT_EQ(line.text().size(), 400u);
    EXPECT_EQ(line.text().substr(0, 18), "isthmus: kernel 'k");
}

// keeps L15: switched off, nothing is asked, beside checked kernels in the same program
TEST(Bounds, NothingIsCheckedWhereTheMacroSwitchesItOff) {
    std::array<int, 4> memory{};
    run_twin(store_unchecked, 4, View<int>{memory.data(), 2});
    EXPECT_EQ(memory[3], 7);
    EXPECT_FALSE(unchecked_file_checks);
#if defined(NDEBUG)
    EXPECT_FALSE(unset_file_checks) << "no cost in release builds";
#else
    EXPECT_TRUE(unset_file_checks) << "on in debug builds";
#endif
}

}  // namespace
