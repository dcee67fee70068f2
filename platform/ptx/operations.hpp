// SPDX-License-Identifier: Apache-2.0
// The functions that execute operations, by name and type. nullptr: there is none, and the instruction is refused.
#pragma once

#include "code.hpp"

#include <string_view>

namespace isthmus::ptx {

enum class Comparison : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
enum class Combine : std::uint8_t { none, and_, or_, xor_ };
enum class Rounding : std::uint8_t { nearest, zero, down, up };

// d = name(a, b, c). `name` has the variant: "mul.hi", "add.cc".
Run integer_run(std::string_view name, Type type);
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
Run pair_conversion_run(Type to);  // d = {a, b} as f16x2 or bf16x2, both from f32

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

enum class AtomicKind : std::uint8_t { add, min, max, and_, or_, xor_, exch, cas, inc, dec };
// Op::mode: AtomicKind; Op::value2: bit 0: the result is not wanted; extra: the Type.
Run atomic_run(std::uint32_t bytes);
std::uint64_t changed_by(AtomicKind kind, Type type, bool ftz, std::uint64_t old, std::uint64_t operand,
                         std::uint64_t compared) noexcept;

Run warp_run(std::string_view name);     // "shfl.up", "vote.ballot", "match.any", "redux.add.s32", "bar.warp" …
Run barrier_run(std::string_view name);  // "sync", "arrive", "red.popc", "red.and", "red.or"
Run nothing_run();
Run trap_run();
Run to_generic_run(Space space);
Run from_generic_run(Space space);
Run is_space_run(Space space);

}  // namespace isthmus::ptx
