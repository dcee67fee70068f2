// SPDX-License-Identifier: Apache-2.0
// How many registers an entry is said to need: what is alive at a time, and what ptxas gives to the same kernels.
#include "made_by_nvcc.hpp"

#include <cstdlib>
#include <map>

namespace isthmus::ptx::test {
namespace {

using u32 = std::uint32_t;

u32 registers_of(const std::string& directives, const std::string& body) {
    const Program program(
        module_of(".visible .func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %r<3>;\n"
                  "ld.param.u32 %r1, [a]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }\n"
                  ".visible .entry k(.param .u64 out)" +
                  directives +
                  "{ .reg .pred %p<8>; .reg .b32 %r<400>; .reg .b64 %d<200>, %o;\n"
                  "ld.param.u64 %o, [out];\n" +
                  body + "ret; }\n"));
    const Entry* const entry = program.entry("k");
    EXPECT_NE(entry, nullptr) << program.refusal().what;
    if (entry == nullptr) return 0;
    EXPECT_FALSE(entry->refusal.refused()) << entry->refusal.what;
    return entry->registers;
}

// So many values of these bits, alive at the same time.
std::string alive(u32 count, u32 bits) {
    const std::string name = bits == 64 ? "%d" : "%r", type = bits == 64 ? "u64" : "u32";
    std::string out;
    for (u32 at = 1; at <= count; ++at) {
        out += "ld.global." + type + " " + name + std::to_string(at) + ", [%o+" + std::to_string(8 * at) + "];\n";
    }
    for (u32 at = 1; at <= count; ++at) out += "st.global." + type + " [%o], " + name + std::to_string(at) + ";\n";
    return out;
}

// 4 besides what is alive, in whole pairs; parameters, constants and predicates need none of their own.
TEST(PtxRegisters, CountWhatIsAliveAtATime) {  // keeps W8
    EXPECT_EQ(registers_of("", ""), 4u);
    EXPECT_EQ(registers_of("", alive(10, 32)), 14u);
    EXPECT_EQ(registers_of("", alive(11, 32)), 16u);
    EXPECT_EQ(registers_of("", alive(10, 64)), 24u);
    EXPECT_EQ(registers_of("", alive(10, 32) + alive(10, 32)), 14u);
    EXPECT_EQ(registers_of("", "mov.u32 %r1, 7; mov.u32 %r2, 8; st.global.u32 [%o], %r1; st.global.u32 [%o], %r2;\n"),
              4u);
    EXPECT_EQ(registers_of("", "setp.eq.u64 %p1, %o, 0; setp.eq.u64 %p2, %o, 1; @%p1 ret; @%p2 ret;\n"), 4u);
    // A register of an inner scope is another one.
    EXPECT_EQ(registers_of("",
                           "{ .reg .b32 a; ld.global.u32 a, [%o]; st.global.u32 [%o], a; }\n"
                           "{ .reg .b32 a; ld.global.u32 a, [%o]; st.global.u32 [%o], a; }\n"),
              6u);
}

// What a loop is entered with is alive until its end.
TEST(PtxRegisters, ALoopKeepsWhatItIsEnteredWith) {  // keeps W8
    const std::string before = "ld.global.u32 %r1, [%o]; ld.global.u32 %r2, [%o+4];\n",
                      first = "add.u32 %r1, %r1, %r2;\n",
                      then =
                          "ld.global.u32 %r3, [%o]; ld.global.u32 %r4, [%o]; ld.global.u32 %r5, [%o];\n"
                          "st.global.u32 [%o], %r3; st.global.u32 [%o], %r4; st.global.u32 [%o], %r5;\n",
                      last = "setp.lt.u32 %p1, %r1, 100;\n";
    const u32 once = registers_of("", before + first + then + last);
    EXPECT_EQ(registers_of("", before + "L: " + first + then + last + "@%p1 bra L;\n"), once + 2);  // %r2, in pairs
}

TEST(PtxRegisters, StayWithinWhatTheEntryStates) {  // keeps W8
    EXPECT_EQ(registers_of("", alive(150, 64)), 255u);
    EXPECT_EQ(registers_of(".maxnreg 40", alive(150, 64)), 40u);
    EXPECT_EQ(registers_of(".maxntid 1024, 1, 1", alive(150, 64)), 64u);
    EXPECT_EQ(registers_of(".reqntid 16, 16", alive(150, 64)), 255u);
    EXPECT_EQ(registers_of(".maxntid 256 .minnctapersm 2", alive(150, 64)), 128u);
    EXPECT_EQ(registers_of(".maxntid 256 .minnctapersm 2 .maxnreg 32", alive(10, 32)), 14u);
}

// With calls, what the deepest function needs, and 24 at least.
TEST(PtxRegisters, CountWhatIsCalled) {  // keeps W8
    const std::string call =
        "{ .param .b32 a; .param .b32 r; st.param.b32 [a], 1; call (r), twice, (a); ld.param.b32 %r1, [r]; }\n";
    EXPECT_EQ(registers_of("", call), 24u);
    EXPECT_EQ(registers_of("", alive(40, 32) + call), 48u);
}

// Of `ptxas -v` of CUDA 13.0 for sm_90.
TEST(PtxRegisters, AreNearToThoseOfPtxas) {  // keeps W8
    const std::map<std::string, std::map<std::string, int>> rows = {
        {"barriers_90", {{"pipelined", 21}, {"async_barrier", 14}, {"barriers", 16}}},
        {"camera_corners", {{"isthmus_list_corners", 32}, {"isthmus_mark_corners", 28}}},
        {"camera_response", {{"isthmus_corner_response", 32}, {"isthmus_gradients", 30}}},
        {"camera_smooth", {{"isthmus_smooth", 42}}},
        {"camera_tiles", {{"isthmus_frame_response", 32}}},
        {"heap", {{"build_list", 30}, {"keep", 24}}},
        {"samples", {{"add_vectors", 12}, {"multiply_matrices", 32}, {"halves", 12}, {"print", 24}, {"collatz", 14}}},
        {"textures", {{"integers", 14}, {"volume", 16}}},
    };
    int sum = 0, count = 0;
    for (const auto& [file, entries] : rows) {
        const Program program(made_by_nvcc(file));
        for (const auto& [name, registers] : entries) {
            const Entry* const entry = program.entry(name);
            ASSERT_NE(entry, nullptr) << name;
            const int difference = static_cast<int>(entry->registers) - registers;
            EXPECT_LE(std::abs(difference), 9) << name << ": " << entry->registers << ", not " << registers;
            sum += std::abs(difference);
            ++count;
        }
    }
    EXPECT_LE(sum, 4 * count);
}

}  // namespace
}  // namespace isthmus::ptx::test
