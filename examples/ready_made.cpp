// SPDX-License-Identifier: Apache-2.0
// A kernel that comes as PTX, with a function that stands in for it where no GPU runs: docs/kernels.md.
#include <isthmus/isthmus.hpp>

#include <cstdio>
#include <span>
#include <string_view>

using namespace isthmus;

// What `nvcc -ptx` makes of
//   extern "C" __global__ void brighten(unsigned char* pixels, unsigned count, int by);
constexpr std::string_view ptx = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry brighten(.param .u64 pixels, .param .u32 count, .param .s32 by)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %a<4>;
    ld.param.u64 %a0, [pixels];
    ld.param.u32 %r0, [count];
    ld.param.s32 %r1, [by];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r0;
    @%p bra done;
    cvta.to.global.u64 %a1, %a0;
    cvt.u64.u32 %a2, %r5;
    add.s64 %a3, %a1, %a2;
    ld.global.u8 %r6, [%a3];
    add.s32 %r7, %r6, %r1;
    st.global.u8 [%a3], %r7;
done:
    ret;
}
)";

int main() {
    Runtime runtime = Runtime::open().value();
    Device& device = runtime.default_device();
    Stream& stream = device.stream();

    using Brighten = void(View<unsigned char>, unsigned, int);
    ModuleOptions options;
    options.stand_ins = {
        stand_in<Brighten>("brighten", [](const StandInCall&, unsigned char* pixels, unsigned count, int by) {
            for (unsigned i = 0; i < count; ++i) pixels[i] = static_cast<unsigned char>(pixels[i] + by);
        })};

    const Module module = device.load_module(std::as_bytes(std::span(ptx)), options).value();
    const auto brighten = module.kernel<Brighten>("brighten").value();

    constexpr unsigned count = 640 * 480;
    auto picture = device.allocate_shared<unsigned char>(count).value();
    {
        auto pixels = picture.write_on_host().value();
        for (unsigned char& pixel : pixels) pixel = 100;
    }
    stream.launch(brighten, {.grid = {(count + 255) / 256}, .block = {256}}, picture, count, 20).value();
    const auto pixels = picture.read_on_host().value();  // waits for the launch
    std::printf("first %d, last %d\n", pixels[0], pixels[count - 1]);
    return pixels[0] == 120 && pixels[count - 1] == 120 ? 0 : 1;
}
