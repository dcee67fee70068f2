// SPDX-License-Identifier: Apache-2.0
// How fast PTX runs on one core, in thread instructions a second, with every access checked.
#include <execution.hpp>
#include <program.hpp>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace isthmus::ptx;

class OneBuffer final : public Memory {
public:
    explicit OneBuffer(std::vector<float>& data) : data_(data) {}
    MemoryWindow window(std::uint64_t address, std::uint32_t, bool) override {
        const auto begin = reinterpret_cast<std::uint64_t>(data_.data());
        MemoryWindow out;
        if (address - begin >= data_.size() * sizeof(float)) {
            out.refusal = "it is not the buffer";
            return out;
        }
        return {begin, data_.size() * sizeof(float), reinterpret_cast<std::byte*>(begin), true, {}};
    }
    std::uint64_t update(void*, std::uint32_t, Update&) override { return 0; }
    void print(std::string_view) override {}
    void pause() override {}
    bool set_condition(std::uint64_t, std::uint32_t) override { return false; }

private:
    std::vector<float>& data_;
};

// y = a·x + y, 64 times in each thread: loads, stores and arithmetic.
const std::string saxpy = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 rounds) {
    .reg .pred %p; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [data]; ld.param.u32 %r0, [rounds];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r1, %r1, %r2, %r3;
    mul.wide.u32 %d1, %r1, 8; add.u64 %d0, %d0, %d1; mov.u32 %r4, 0;
LOOP:
    ld.global.f32 %f0, [%d0]; ld.global.f32 %f1, [%d0+4];
    fma.rn.f32 %f1, %f0, 0f3F000000, %f1;
    st.global.f32 [%d0+4], %f1;
    add.s32 %r4, %r4, 1; setp.lt.s32 %p, %r4, %r0; @%p bra LOOP;
    ret;
})";
// Integers alone, with a branch that parts the lanes.
const std::string divergent = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 rounds) {
    .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [data]; ld.param.u32 %r0, [rounds];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r1, %r1, %r2, %r3;
    mul.wide.u32 %d1, %r1, 8; add.u64 %d0, %d0, %d1; mov.u32 %r4, 0; mov.u32 %r5, %r1;
LOOP:
    mad.lo.u32 %r5, %r5, 1664525, 1013904223; shr.u32 %r6, %r5, 31; setp.eq.u32 %p, %r6, 0;
    @%p bra ELSE; xor.b32 %r5, %r5, 0x55555555; bra.uni END;
ELSE: add.u32 %r5, %r5, %r1;
END: add.s32 %r4, %r4, 1; setp.lt.s32 %p, %r4, %r0; @%p bra LOOP;
    st.global.u32 [%d0], %r5; ret;
})";

void measure(const char* name, const std::string& text) {
    constexpr std::uint32_t blocks = 64, threads = 256, rounds = 256;
    std::vector<float> data(2 * blocks * threads, 1.0f);
    OneBuffer memory(data);
    Program program(text);
    program.place({});
    ExecutionShape shape;
    shape.grid.x = blocks;
    shape.block.x = threads;
    std::byte parameters[12] = {};
    const auto place = reinterpret_cast<std::uint64_t>(data.data());
    std::memcpy(parameters, &place, sizeof place);
    std::memcpy(parameters + 8, &rounds, sizeof rounds);
    double best = 0;
    for (int run = 0; run < 5; ++run) {
        Execution execution(program, program.entries().at(0), shape, parameters, memory);
        const auto begin = std::chrono::steady_clock::now();
        execution.run();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        if (execution.fault().kind != FaultKind::none) std::printf("%s\n", execution.fault().message.c_str());
        best = std::max(best, static_cast<double>(execution.thread_instructions()) / took.count());
    }
    std::printf("%-10s %8.1f million thread instructions a second\n", name, best / 1e6);
}

}  // namespace

int main() {
    measure("saxpy", saxpy);
    measure("divergent", divergent);
}
