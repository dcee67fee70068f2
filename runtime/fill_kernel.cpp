// The fill kernel: as PTX, so that the library needs no GPU compiler, and drivers compile it for any GPU; its CPU twin
// is what simulated GPUs run.
#include "fill_kernel.hpp"

#include <algorithm>
#include <cstring>

namespace isthmus::inline v0::detail {
namespace {

constexpr std::size_t item_bytes = 16;

// Extent and pack are passed as every kernel's are.
constexpr char ptx[] = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry isthmus_fill_rows(.param .align 8 .b8 extent[24], .param .align 8 .b8 pack[72])
{
    .reg .pred %stop, %first, %part;
    .reg .b32 %block, %threads, %thread, %k, %shift;
    .reg .b64 %item, %all, %line, %rest, %at, %begin, %end, %low, %high, %word, %size;

    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mul.wide.u32 %item, %block, %threads;
    cvt.u64.u32 %rest, %thread;
    add.u64 %item, %item, %rest;
    ld.param.u64 %all, [extent];
    setp.ge.u64 %stop, %item, %all;
    @%stop ret;

    // line = item / items; at = item % items * 16; begin = data + line / rows * slice + line % rows * row
    ld.param.u64 %size, [pack+64];
    div.u64 %line, %item, %size;
    rem.u64 %at, %item, %size;
    shl.b64 %at, %at, 4;
    ld.param.u64 %begin, [pack];
    ld.param.u64 %size, [pack+48];
    rem.u64 %rest, %line, %size;
    div.u64 %line, %line, %size;
    ld.param.u64 %size, [pack+40];
    mad.lo.u64 %begin, %rest, %size, %begin;
    ld.param.u64 %size, [pack+56];
    mad.lo.u64 %begin, %line, %size, %begin;
    ld.param.u64 %size, [pack+32];
    add.u64 %end, %begin, %size;
    and.b64 %rest, %begin, -16;
    add.u64 %at, %at, %rest;
    ld.param.u64 %low, [pack+16];
    ld.param.u64 %high, [pack+24];

    add.u64 %rest, %at, 16;
    setp.lt.u64 %part, %at, %begin;
    setp.gt.or.u64 %part, %rest, %end, %part;
    @%part bra bytes;
    st.v2.u64 [%at], {%low, %high};
    ret;

bytes:
    mov.u32 %k, 0;
next:
    setp.lt.u32 %first, %k, 8;
    selp.b64 %word, %low, %high, %first;
    and.b32 %shift, %k, 7;
    shl.b32 %shift, %shift, 3;
    shr.u64 %word, %word, %shift;
    setp.ge.u64 %part, %at, %begin;
    setp.lt.and.u64 %part, %at, %end, %part;
    @%part st.u8 [%at], %word;
    add.u64 %at, %at, 1;
    add.u32 %k, %k, 1;
    setp.lt.u32 %stop, %k, 16;
    @%stop bra next;
    ret;
}
)";

const KernelImage image = {reinterpret_cast<const unsigned char*>(ptx), sizeof ptx, "fill_rows_1", "fill_rows", true};

static_assert(sizeof(FillPack) == 72 && offsetof(FillPack, width) == 32 && offsetof(FillPack, items) == 64,
              "as the PTX reads it");
constexpr ParameterInfo parameters[] = {
    {offsetof(FillPack, data), 16, 1, ArgumentUse::write},
    {offsetof(FillPack, words), sizeof(FillPack) - offsetof(FillPack, words), 0, ArgumentUse::value},
};

void twin(const Extent& /*extent*/, std::uint64_t first, std::uint64_t last, const void* given) {
    FillPack pack;
    std::memcpy(&pack, given, sizeof pack);
    const auto* const words = reinterpret_cast<const unsigned char*>(pack.words);
    for (std::uint64_t item = first; item < last; ++item) {
        const std::uint64_t line = item / pack.items;
        const std::uint64_t begin = pack.data + line % pack.rows * pack.row + line / pack.rows * pack.slice;
        const std::uint64_t end = begin + pack.width;
        const std::uint64_t at = begin / item_bytes * item_bytes + item % pack.items * item_bytes;
        const std::uint64_t from = std::max(at, begin);
        const std::uint64_t to = std::min(at + item_bytes, end);
        if (from < to) {
            std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(from)), words + (from - at), to - from);
        }
    }
}

}  // namespace

FillPack fill_pack(std::uint64_t first, const rules::CopyShape& shape, const void* value, std::size_t value_bytes) {
    FillPack pack;
    pack.data = first;
    pack.size = (shape.slices - 1) * shape.to.slice + (shape.rows - 1) * shape.to.row + shape.width;
    for (std::size_t at = 0; at < item_bytes; at += value_bytes) {
        std::memcpy(reinterpret_cast<unsigned char*>(pack.words) + at, value, value_bytes);
    }
    pack.width = shape.width;
    pack.row = shape.to.row;
    pack.rows = shape.rows;
    pack.slice = shape.to.slice;
    pack.items = (shape.width + 2 * (item_bytes - 1)) / item_bytes;  // wherever the row begins within its first 16
    return pack;
}

Extent fill_extent(const FillPack& pack, const rules::CopyShape& shape) {
    return {pack.items * shape.rows * shape.slices, 1, 1};
}

const KernelInfo fill_rows = {"fill_rows",
                              "isthmus_fill_rows",
                              "Index i, Out<std::byte> to, FillRows rows",
                              parameters,
                              2,
                              sizeof(FillPack),
                              1,
                              0,
                              &image,
                              &twin};

}  // namespace isthmus::inline v0::detail
