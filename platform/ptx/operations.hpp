// SPDX-License-Identifier: Apache-2.0
// The functions that execute operations, by name and type. nullptr: there is none, and the instruction is refused.
#pragma once

#include "code.hpp"

#include <string>
#include <string_view>

namespace isthmus::ptx {

enum class Comparison : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
enum class Combine : std::uint8_t { none, and_, or_, xor_ };
enum class Rounding : std::uint8_t { nearest, zero, down, up };

// d = name(a, b, c). `name` has the variant: "mul.hi", "add.cc".
Run integer_run(std::string_view name, Type type);
Run bit_run(std::string_view name, Type type);  // those of them that work on bits
// With `ftz`: subnormal inputs and results are zeros; `saturate`: results are clamped to [0, 1]. Op::mode: Rounding.
Run float_run(std::string_view name, Type type, bool ftz, bool saturate);
Run half_run(std::string_view name, Type type);  // Op::flag: ftz; Op::value2: bit 0 saturate, bit 1 relu
// Op::mode: Comparison; Op::value: Combine, whose source is predicate c (negated by flag); results p and q.
Run compare_run(Type type, bool ftz);
// The same as a number of d: all ones, or 1.0 where Op::value2 is 1.
Run set_run(Type type, bool ftz);
Run select_run();                             // d = predicate p ? a : b
Run select_by_sign_run(Type type, bool ftz);  // d = c >= 0 ? a : b, where c has the type
Run predicate_run(std::string_view name);     // on predicates: p = name(a, b), numbers of predicates in a and b

struct Conversion {
    Type to = Type::none, from = Type::none;
    Rounding rounding = Rounding::nearest;
    bool to_integral = false;
    bool ftz = false, saturate = false, relu = false;
};
// Op::mode: Rounding; Op::flag: to_integral; Op::value: the mask of d's register; Op::value2: bit 0 ftz, bit 1
// saturate, bit 2 relu.
Run conversion_run(const Conversion& conversion);
Run pack_integers_run();           // d = c, b and a, saturated to Op::value bits each; Op::flag: with a sign
Run tensor_float_run();            // d = a as tf32: 10 bits of fraction, ties away from 0
Run pair_conversion_run(Type to);  // d = {a, b} as f16x2 or bf16x2, both from f32

// Pairs of 8-bit floats from two f32 (a: the high one), from f16x2, or (b16) to f16x2. Op::flag: relu.
Run small_conversion_run(bool e4m3, Type from);

Run move_run();
Run pack_run();           // d = the elements `extra`, each of Op::bytes
Run unpack_run();         // the elements `extra` = a
Run local_address_run();  // d = Op::value in the frame's local memory
// Not of PTX: where dynamic shared memory begins, which depends on the entry.
inline constexpr std::string_view dynamic_shared_name = "%dynamic_shared";
Run special_run(std::string_view name, std::string_view part);

Run load_run(std::uint32_t bytes);  // Op: space, bytes of an element, count, extra: places; value: offset; flag:
                                    // sign-extend; value2: mask
Run store_run(std::uint32_t bytes);
Run fence_run();
// What happens outside of a surface.
enum class Boundary : std::uint8_t { trap, clamp, zero };
// Op: a: surface, b, c, d: x in bytes, y, z; bytes of an element, count, extra: places; mode: Boundary. nullptr: no
// such size.
Run surface_run(std::uint32_t bytes, bool is_load);

// The forms of tex and tld4, and their operands.
struct TextureShape {
    std::string_view name;
    std::uint32_t dimensions;  // of the texels; a place in a cube is a direction of three coordinates
    bool layered;
    bool is_cube;
    std::size_t operands;     // coordinates, with the layer and the padding
    std::size_t of_gradient;  // coordinates of each gradient, with the padding
    constexpr std::uint32_t coordinates() const { return is_cube ? 3 : dimensions; }
};
inline constexpr TextureShape texture_shapes[] = {{".1d", 1, false, false, 1, 1}, {".2d", 2, false, false, 2, 2},
                                                  {".3d", 3, false, false, 4, 4}, {".a1d", 1, true, false, 2, 1},
                                                  {".a2d", 2, true, false, 4, 2}, {".cube", 2, false, true, 4, 4},
                                                  {".acube", 2, true, true, 4, 4}};
enum class Fetching : std::uint8_t { base, level, gradients, gather };
// Op: a: texture, b, c, d: coordinates, value: the place of the layer; mode: its shape; flag: integer coordinates;
// bytes: Fetching; value2: the channel of a gather; count, extra: places of the result, then of the level or of the
// gradients.
Run texture_run();
enum class ObjectQuery : std::uint8_t {
    width,
    height,
    depth,
    array_size,
    channel_type,
    channel_order,
    normalised,
    levels
};
Run object_query_run();

enum class AtomicKind : std::uint8_t { add, min, max, and_, or_, xor_, exch, cas, inc, dec };
// Op::mode: AtomicKind; Op::value2: bit 0: the result is not wanted; extra: the Type.
Run atomic_run(std::uint32_t bytes);
std::uint64_t changed_by(AtomicKind kind, Type type, bool ftz, std::uint64_t old, std::uint64_t operand,
                         std::uint64_t compared) noexcept;

Run warp_run(std::string_view name);     // "shfl.up", "vote.ballot", "match.any", "redux.add.s32", "bar.warp" …
Run barrier_run(std::string_view name);  // "sync", "arrive", "red.popc", "red.and", "red.or"
// Op of each: asynchronous.cpp.
enum class MbarrierDo : std::uint8_t { init, inval, expect, complete, arrive, drop };
Run mbarrier_run(MbarrierDo what);
Run mbarrier_test_run();
// What a lane waits for at a test that has failed. The warp executes the frame of the test.
std::string awaited(Warp& warp, const Op& test, std::uint32_t lane);
Run mbarrier_pending_run();
enum class AsyncDo : std::uint8_t { copy, commit, wait, arrive, bulk };
Run async_run(AsyncDo what);

// Clusters. d = the address of a in the shared memory of block b; d = the number of the block whose memory a names.
Run map_rank_run(bool generic);
Run rank_of_run(bool generic);
Run cluster_arrive_run();

// The thread's stack, for alloca: d = a bytes; d = where it ends; it ends at a again.
Run alloca_run();  // Op::value: the alignment
Run stack_save_run();
Run stack_restore_run();

Run nothing_run();
Run trap_run();  // Op::flag: it is brkpt, without a debugger
Run to_generic_run(Space space);
Run from_generic_run(Space space);
Run is_space_run(Space space);
Run is_cluster_run();  // shared memory of any block of the cluster

}  // namespace isthmus::ptx
