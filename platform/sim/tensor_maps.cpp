// SPDX-License-Identifier: Apache-2.0
// Tensor map objects: checked as documented, and kept as what they were made from. No kernel of the simulator reads
// one.
#include "call.hpp"

#include <algorithm>
#include <cstring>

namespace isthmus::sim {
namespace {

constexpr unsigned most_dimensions = 5;
constexpr int packed_from = 13, aligned_4_bits = 14, aligned_6_bits = 15;  // CUtensorMapDataType
constexpr int interleave_none = 0, interleave_32 = 2;
constexpr int swizzle_32 = 1;

// The opaque bytes of the simulator.
struct Kept {
    char magic[8];
    std::uint64_t address;
    std::uint64_t sizes[most_dimensions];
    std::uint64_t strides[most_dimensions - 1];
    std::uint32_t box[3];
    std::uint8_t rank, type, interleave, swizzle;
};
static_assert(sizeof(Kept) <= sizeof(TensorMap));
constexpr char magic[8] = "simtmap";

struct Tensor {
    TensorMap* map;
    int type;
    unsigned rank;
    void* address;
    const std::uint64_t *sizes, *strides;
    const std::uint32_t* element_strides;
    int interleave, swizzle, promotion, fill;
};

bool is_aligned(const void* pointer, std::uintptr_t bytes) {
    return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

bool is_wide(int type) {
    return type == aligned_4_bits || type == aligned_6_bits;
}

std::uint64_t bits_of(int type) {
    constexpr std::uint8_t bits[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
    return bits[type];
}

bool is_floating(int type) {
    return type >= 6 && type < packed_from;
}

// 16, or 32 for interleaved and packed layouts: of the address and of the strides.
std::uint64_t alignment_of(const Tensor& t) {
    return t.interleave == interleave_32 || is_wide(t.type) ? 32 : 16;
}

bool choices_are_known(const Tensor& t) {
    if (t.type < 0 || t.type > aligned_6_bits || t.interleave < 0 || t.interleave > interleave_32) return false;
    if (t.swizzle < 0 || t.swizzle > 6 || t.promotion < 0 || t.promotion > 3 || t.fill < 0 || t.fill > 1) return false;
    if (t.fill == 1 && !is_floating(t.type)) return false;
    if (t.interleave == interleave_32 && t.swizzle != swizzle_32) return false;
    return t.type != aligned_6_bits || t.interleave == interleave_none;
}

bool shape_is_right(const Tensor& t) {
    for (unsigned i = 0; i < t.rank; ++i) {
        if (t.sizes[i] == 0 || t.sizes[i] > std::uint64_t{1} << 32) return false;
        if (i + 1 < t.rank && (t.strides[i] % alignment_of(t) != 0 || t.strides[i] >= std::uint64_t{1} << 40))
            return false;
        const bool ignored = i == 0 && t.interleave == interleave_none;
        if (!ignored && (t.element_strides[i] == 0 || t.element_strides[i] > 8)) return false;
    }
    if (is_wide(t.type)) return t.sizes[0] % 128 == 0;
    return t.type != packed_from || t.sizes[0] % 2 == 0;
}

// The rules that tiled and im2col maps share. `inner`: elements of the bounding box's innermost dimension.
bool is_right(const Tensor& t, std::uint64_t inner, unsigned least_rank) {
    if (!t.map || !is_aligned(t.map, 64) || !t.sizes || !t.element_strides) return false;
    if (t.rank < least_rank || t.rank > most_dimensions || (t.rank > 1 && !t.strides)) return false;
    if (!choices_are_known(t) || !is_aligned(t.address, alignment_of(t)) || !shape_is_right(t)) return false;
    if (inner == 0 || inner > 256) return false;
    if (is_wide(t.type)) return inner == 128;
    if (t.interleave != interleave_none) return t.rank >= 3;
    const std::uint64_t inner_bits = inner * bits_of(t.type);
    if (inner_bits % 128 != 0) return false;
    constexpr std::uint64_t spans[] = {~std::uint64_t{0}, 32, 64, 128, 128, 128, 128};
    return inner_bits / 8 <= spans[t.swizzle];
}

void write(const Tensor& t, std::uint32_t first, std::uint32_t second, std::uint32_t third) {
    Kept kept = {};
    std::memcpy(kept.magic, magic, sizeof magic);
    kept.address = reinterpret_cast<std::uintptr_t>(t.address);
    std::copy_n(t.sizes, t.rank, kept.sizes);
    if (t.rank > 1) std::copy_n(t.strides, t.rank - 1, kept.strides);
    kept.box[0] = first;
    kept.box[1] = second;
    kept.box[2] = third;
    kept.rank = static_cast<std::uint8_t>(t.rank);
    kept.type = static_cast<std::uint8_t>(t.type);
    kept.interleave = static_cast<std::uint8_t>(t.interleave);
    kept.swizzle = static_cast<std::uint8_t>(t.swizzle);
    *t.map = {};
    std::memcpy(t.map, &kept, sizeof kept);
}

// Body: Result(), on a device that has tensor maps. Documented: from 9.0 on, packed types from 10.0 (the code is
// assumed).
template <class Body>
Result call_for_map(CallId id, int type, Body&& body) {
    return call_in_context(id, [&](Driver& d, Context& context) -> Result {
        const int least = type >= packed_from && type <= aligned_6_bits ? 10 : 9;
        return d.fact(context.device, attribute::cc_major) < least ? result::not_supported : body();
    });
}

bool corners_are_right(unsigned rank, const int* lower, const int* upper) {
    if (!lower || !upper) return false;
    const int most = rank == 3 ? 32767 : rank == 4 ? 127 : 15;
    return std::all_of(lower, lower + rank - 2, [&](int one) { return one >= -most - 1 && one <= most; }) &&
           std::all_of(upper, upper + rank - 2, [&](int one) { return one >= -most - 1 && one <= most; });
}

}  // namespace

extern "C" {

Result cuTensorMapEncodeTiled(TensorMap* map, int type, unsigned rank, void* address, const std::uint64_t* sizes,
                              const std::uint64_t* strides, const std::uint32_t* box,
                              const std::uint32_t* element_strides, int interleave, int swizzle, int promotion,
                              int fill) {
    return call_for_map(CallId::cuTensorMapEncodeTiled, type, [&]() -> Result {
        const Tensor t = {map,        type,    rank,      address, sizes, strides, element_strides,
                          interleave, swizzle, promotion, fill};
        if (!box || !is_right(t, box[0], 1)) return result::invalid_value;
        if (std::any_of(box, box + rank, [](std::uint32_t one) { return one == 0 || one > 256; })) {
            return result::invalid_value;
        }
        write(t, box[0], rank > 1 ? box[1] : 1, rank > 2 ? box[2] : 1);
        return result::ok;
    });
}

Result cuTensorMapEncodeIm2col(TensorMap* map, int type, unsigned rank, void* address, const std::uint64_t* sizes,
                               const std::uint64_t* strides, const int* lower, const int* upper, unsigned channels,
                               unsigned pixels, const std::uint32_t* element_strides, int interleave, int swizzle,
                               int promotion, int fill) {
    return call_for_map(CallId::cuTensorMapEncodeIm2col, type, [&]() -> Result {
        const Tensor t = {map,        type,    rank,      address, sizes, strides, element_strides,
                          interleave, swizzle, promotion, fill};
        if (!is_right(t, channels, 3) || pixels == 0 || pixels > 1024 || !corners_are_right(rank, lower, upper)) {
            return result::invalid_value;
        }
        write(t, channels, pixels, 0);
        return result::ok;
    });
}

Result cuTensorMapReplaceAddress(TensorMap* map, void* address) {
    return call_for_map(CallId::cuTensorMapReplaceAddress, 0, [&]() -> Result {
        Kept kept = {};
        if (map) std::memcpy(&kept, map, sizeof kept);
        if (!map || !is_aligned(map, 64) || std::memcmp(kept.magic, magic, sizeof magic) != 0) {
            return result::invalid_value;
        }
        const bool wide = kept.interleave == interleave_32 || is_wide(kept.type);
        if (!is_aligned(address, wide ? 32 : 16)) return result::invalid_value;
        kept.address = reinterpret_cast<std::uintptr_t>(address);
        std::memcpy(map, &kept, sizeof kept);
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
