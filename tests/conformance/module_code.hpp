// SPDX-License-Identifier: Apache-2.0
// Ready-made code for the scenarios: PTX written by hand, which every GPU since compute capability 7.5 compiles, and
// the functions that stand in for it where no GPU runs.
#pragma once

#include "conformance.hpp"

#include <isthmus/isthmus.hpp>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace conformance::modules {

using namespace isthmus;

// Entries as an extern "C" __global__ function of CUDA C++ has them:
//   scale_into(int* out, const int* in, int factor, unsigned count)    out[i] = in[i] * factor
//   add_bias(int* data, unsigned count)                               data[i] += bias + table[i % 4]
//   block_sums(int* out, const int* in)                               sums blocks in dynamic shared memory
//   churn(int* data, unsigned count, unsigned rounds)                 adds 1 `rounds` times
// and as ISTHMUS_KERNEL has them:
//   isthmus_scale_into(Extent, Pack<Out<int>, View<const int>, int>)
inline constexpr std::string_view ptx = R"(
.version 7.0
.target sm_75
.address_size 64

.visible .global .align 4 .s32 bias;
.visible .global .align 4 .s32 table[4];
.extern .shared .align 4 .b8 part[];

.visible .entry scale_into(
    .param .u64 out, .param .u64 in, .param .s32 factor, .param .u32 count)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %a<8>;
    ld.param.u64 %a0, [out];
    ld.param.u64 %a1, [in];
    ld.param.s32 %r0, [factor];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r1;
    @%p bra done;
    cvta.to.global.u64 %a2, %a0;
    cvta.to.global.u64 %a3, %a1;
    mul.wide.u32 %a4, %r5, 4;
    add.s64 %a5, %a2, %a4;
    add.s64 %a6, %a3, %a4;
    ld.global.s32 %r6, [%a6];
    mul.lo.s32 %r7, %r6, %r0;
    st.global.s32 [%a5], %r7;
done:
    ret;
}

.visible .entry add_bias(.param .u64 data, .param .u32 count)
{
    .reg .pred %p;
    .reg .b32 %r<12>;
    .reg .b64 %a<8>;
    ld.param.u64 %a0, [data];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r1;
    @%p bra done;
    cvta.to.global.u64 %a2, %a0;
    mul.wide.u32 %a4, %r5, 4;
    add.s64 %a5, %a2, %a4;
    and.b32 %r6, %r5, 3;
    mul.wide.u32 %a1, %r6, 4;
    mov.u64 %a3, table;
    add.s64 %a6, %a3, %a1;
    ld.global.s32 %r7, [%a6];
    ld.global.s32 %r8, [bias];
    ld.global.s32 %r9, [%a5];
    add.s32 %r10, %r7, %r8;
    add.s32 %r11, %r9, %r10;
    st.global.s32 [%a5], %r11;
done:
    ret;
}

.visible .entry block_sums(.param .u64 out, .param .u64 in)
{
    .reg .pred %p;
    .reg .b32 %r<16>;
    .reg .b64 %a<10>;
    ld.param.u64 %a0, [out];
    ld.param.u64 %a1, [in];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    cvta.to.global.u64 %a2, %a0;
    cvta.to.global.u64 %a3, %a1;
    mul.wide.u32 %a4, %r5, 4;
    add.s64 %a5, %a3, %a4;
    ld.global.s32 %r6, [%a5];
    mov.u32 %r7, part;
    shl.b32 %r8, %r4, 2;
    add.s32 %r9, %r7, %r8;
    st.shared.s32 [%r9], %r6;
    bar.sync 0;
    setp.ne.u32 %p, %r4, 0;
    @%p bra done;
    mov.u32 %r10, 0;
    mov.u32 %r11, 0;
more:
    ld.shared.s32 %r12, [%r7];
    add.s32 %r10, %r10, %r12;
    add.s32 %r7, %r7, 4;
    add.s32 %r11, %r11, 1;
    setp.lt.u32 %p, %r11, %r3;
    @%p bra more;
    mul.wide.u32 %a6, %r2, 4;
    add.s64 %a7, %a2, %a6;
    st.global.s32 [%a7], %r10;
done:
    ret;
}

.visible .entry churn(.param .u64 data, .param .u32 count, .param .u32 rounds)
{
    .reg .pred %p;
    .reg .b32 %r<10>;
    .reg .b64 %a<6>;
    ld.param.u64 %a0, [data];
    ld.param.u32 %r1, [count];
    ld.param.u32 %r2, [rounds];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p, %r6, %r1;
    @%p bra done;
    cvta.to.global.u64 %a1, %a0;
    mul.wide.u32 %a2, %r6, 4;
    add.s64 %a3, %a1, %a2;
    mov.u32 %r7, 0;
more:
    setp.ge.u32 %p, %r7, %r2;
    @%p bra done;
    ld.volatile.global.s32 %r8, [%a3];
    add.s32 %r8, %r8, 1;
    st.volatile.global.s32 [%a3], %r8;
    add.s32 %r7, %r7, 1;
    bra more;
done:
    ret;
}

.visible .entry isthmus_scale_into(.param .align 8 .b8 extent[24], .param .align 8 .b8 pack[40])
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %a<10>;
    ld.param.u64 %a0, [extent];
    ld.param.u64 %a1, [pack];
    ld.param.u64 %a2, [pack+16];
    ld.param.s32 %r0, [pack+32];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    cvt.u64.u32 %a3, %r5;
    setp.ge.u64 %p, %a3, %a0;
    @%p bra done;
    cvta.to.global.u64 %a4, %a1;
    cvta.to.global.u64 %a5, %a2;
    shl.b64 %a6, %a3, 2;
    add.s64 %a7, %a4, %a6;
    add.s64 %a8, %a5, %a6;
    ld.global.s32 %r6, [%a8];
    mul.lo.s32 %r7, %r6, %r0;
    st.global.s32 [%a7], %r7;
done:
    ret;
}
)";

// One entry, scale_into(int* out, const int* in, int factor, unsigned count), that leaves 1000 * factor.
inline constexpr std::string_view other_ptx = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry scale_into(
    .param .u64 out, .param .u64 in, .param .s32 factor, .param .u32 count)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %a<8>;
    ld.param.u64 %a0, [out];
    ld.param.s32 %r0, [factor];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r1;
    @%p bra done;
    cvta.to.global.u64 %a2, %a0;
    mul.wide.u32 %a4, %r5, 4;
    add.s64 %a5, %a2, %a4;
    mul.lo.s32 %r7, %r0, 1000;
    st.global.s32 [%a5], %r7;
done:
    ret;
}
)";

inline std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

using ScaleInto = void(Out<std::int32_t>, View<const std::int32_t>, std::int32_t, std::uint32_t);
using AddBias = void(View<std::int32_t>, std::uint32_t);
using BlockSums = void(Out<std::int32_t>, View<const std::int32_t>);
using Churn = void(View<std::int32_t>, std::uint32_t, std::uint32_t);
using OwnScaleInto = void(Index, Out<std::int32_t>, View<const std::int32_t>, std::int32_t);

inline ModuleOptions with_stand_ins() {
    ModuleOptions options;
    options.stand_ins.push_back(
        stand_in<ScaleInto>("scale_into", [](const StandInCall& call, std::int32_t* out, const std::int32_t* in,
                                             std::int32_t factor, std::uint32_t count) {
            for (std::uint64_t i = 0; i < count && i < call.threads(); ++i) out[i] = in[i] * factor;
        }));
    options.stand_ins.push_back(
        stand_in<AddBias>("add_bias", [](const StandInCall& call, std::int32_t* data, std::uint32_t count) {
            const auto* const bias = call.global<const std::int32_t>("bias");
            const auto* const table = call.global<const std::int32_t>("table");
            for (std::uint64_t i = 0; i < count && i < call.threads(); ++i) data[i] += *bias + table[i % 4];
        }));
    options.stand_ins.push_back(
        stand_in<BlockSums>("block_sums", [](const StandInCall& call, std::int32_t* out, const std::int32_t* in) {
            std::vector<std::int32_t> part(call.shared_bytes / sizeof(std::int32_t));
            for (std::uint64_t block = 0; block < call.grid.x; ++block) {
                for (std::uint64_t i = 0; i < call.block.x; ++i) part.at(i) = in[block * call.block.x + i];
                out[block] = 0;
                for (std::uint64_t i = 0; i < call.block.x; ++i) out[block] += part.at(i);
            }
        }));
    options.stand_ins.push_back(stand_in<Churn>(
        "churn", [](const StandInCall& call, std::int32_t* data, std::uint32_t count, std::uint32_t rounds) {
            for (std::uint64_t i = 0; i < count && i < call.threads(); ++i) {
                for (std::uint32_t round = 0; round < rounds; ++round) data[i] = data[i] + 1;
            }
        }));
    options.stand_ins.push_back(stand_in("isthmus_scale_into", scale_into));
    return options;
}

inline ModuleOptions with_other_stand_in() {
    ModuleOptions options;
    options.stand_ins.push_back(stand_in<ScaleInto>(
        "scale_into",
        [](const StandInCall&, std::int32_t* out, const std::int32_t*, std::int32_t factor, std::uint32_t count) {
            for (std::uint64_t i = 0; i < count; ++i) out[i] = 1000 * factor;
        }));
    return options;
}

}  // namespace conformance::modules
