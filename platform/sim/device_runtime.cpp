// SPDX-License-Identifier: Apache-2.0
// Recognises the device runtime's archive, and holds the text that stands in for it.
#include "device_runtime.hpp"

namespace isthmus::sim {

bool is_device_runtime(std::span<const std::byte> input) {
    const std::string_view bytes(reinterpret_cast<const char*>(input.data()), input.size());
    return bytes.starts_with("!<arch>\n") && bytes.find("cuda_device_runtime.o") != std::string_view::npos;
}

// A handle is the address of the grid's workspace, 0 for a grid that is not cooperative. Each block adds 1 to the word
// behind its size, and block 0 what is missing to the top bit: the bit turns over when all have arrived.
std::string_view device_runtime_text() noexcept {
    return R"(.version 6.0
.target sm_50
.address_size 64
.visible .func (.param .b64 out) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    .reg .b32 %low, %high;
    .reg .b64 %handle;
    mov.u32 %low, %envreg2;
    mov.u32 %high, %envreg1;
    mov.b64 %handle, {%low, %high};
    st.param.b64 [out], %handle;
    ret;
}
.visible .func (.param .b32 out) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %none, %other, %first, %same;
    .reg .b32 %x, %y, %z, %blocks, %added, %old, %now;
    .reg .b64 %handle;
    ld.param.b64 %handle, [handle];
    setp.eq.u64 %none, %handle, 0;
    @%none bra NO_GRID;
    bar.sync 0;
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %z, %tid.z;
    or.b32 %x, %x, %y;
    or.b32 %x, %x, %z;
    setp.ne.u32 %other, %x, 0;
    @%other bra ARRIVED;
    mov.u32 %x, %nctaid.x;
    mov.u32 %y, %nctaid.y;
    mov.u32 %z, %nctaid.z;
    mul.lo.u32 %blocks, %x, %y;
    mul.lo.u32 %blocks, %blocks, %z;
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ctaid.y;
    mov.u32 %z, %ctaid.z;
    or.b32 %x, %x, %y;
    or.b32 %x, %x, %z;
    setp.eq.u32 %first, %x, 0;
    sub.u32 %added, 0x80000001, %blocks;
    selp.u32 %added, %added, 1, %first;
    membar.gl;
    atom.add.u32 %old, [%handle + 4], %added;
WAIT:
    ld.volatile.u32 %now, [%handle + 4];
    xor.b32 %now, %now, %old;
    and.b32 %now, %now, 0x80000000;
    setp.eq.u32 %same, %now, 0;
    @%same bra WAIT;
    membar.gl;
ARRIVED:
    bar.sync 0;
    st.param.b32 [out], 0;
    ret;
NO_GRID:
    st.param.b32 [out], 1;
    ret;
}
)";
}

}  // namespace isthmus::sim
