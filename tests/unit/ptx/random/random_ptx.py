# SPDX-License-Identifier: Apache-2.0
"""Random PTX programs: one kernel for each seed, made of instructions whose results PTX defines.

program(seed) is the text of a kernel, inputs(seed) are the numbers that it reads. A kernel runs in 2 blocks of 64
threads. Each thread loads 12 numbers, executes some 30 steps, and stores the result of each step into a row of its own,
so that two machines can be compared step by step. Numbers whose bits PTX leaves open (the payload of a NaN of f64, the
NaN of `abs`, `neg` and conversions) are replaced by one NaN where they arise.

Every program ends: only loop() jumps back, at most 15 times, by a counter that each turn lowers; descend() calls itself
at most 3 times; and lanes wait for no others than those that certainly come: all lanes of a warp where none has left,
and within a branch those that took it.

The programs keep away from what the ptxas of CUDA 13.0 compiles otherwise than the PTX ISA says (docs/hardware.md): the
lanes of a warp call descend() equally often; results of `set` in single or half precision are stored as they are and
read by no step; conversions read no 0 or 1 of selp; st.b8 takes no result of an atomic on halves; and no branch with
instructions between lanes depends on what all lanes of a block have alike.

Seeds below SINGLES are programs of one form of an instruction each, on many operands: single(seed) names the form.
The text depends on nothing but the seed: random numbers come from Mersenne Twister's 32-bit words.
"""
import functools
import random
import struct

BLOCKS, THREADS = 2, 64
LANES = BLOCKS * THREADS
ROWS = 48                  # rows of results, of 8 bytes for each thread; the last two are for atomics of all threads
WORDS = 12                 # inputs of a thread, of 8 bytes each
SHARED_ROW, GLOBAL_ROW = ROWS - 2, ROWS - 1
TARGET = 'sm_90'
HEADER = f'''.version 8.0
.target {TARGET}
.address_size 64
.const .align 8 .b32 table[16] = {{1, 4294967295, 2147483648, 3, 1065353216, 2139095040, 77, 65535, 8388608, 5, 6, 7,
 3212836864, 9, 10, 4286578688}};
.global .align 8 .b32 scratch[4] = {{11, 22, 33, 44}};
.func (.param .b32 result) blend(.param .b32 x, .param .b32 y)
{{
 .reg .b32 %r<4>;
 .reg .pred %p<2>;
 ld.param.b32 %r0, [x];
 ld.param.b32 %r1, [y];
 setp.lt.s32 %p0, %r0, %r1;
 @%p0 bra LESS;
 sub.s32 %r2, %r0, %r1;
 bra.uni END;
LESS:
 mad.lo.s32 %r2, %r0, 5, %r1;
END:
 st.param.b32 [result], %r2;
 ret;
}}
.func (.param .b64 result) descend(.param .b64 x, .param .b32 depth)
{{
 .reg .b32 %r<4>;
 .reg .b64 %d<4>;
 .reg .pred %p<2>;
 ld.param.b64 %d0, [x];
 ld.param.b32 %r0, [depth];
 mov.b64 %d2, %d0;
 setp.eq.s32 %p0, %r0, 0;
 @%p0 bra END;
 add.s32 %r1, %r0, -1;
 mul.lo.u64 %d1, %d0, 6364136223846793005;
 add.u64 %d1, %d1, 1442695040888963407;
 {{
 .param .b64 a;
 .param .b32 b;
 .param .b64 c;
 st.param.b64 [a], %d1;
 st.param.b32 [b], %r1;
 call (c), descend, (a, b);
 ld.param.b64 %d3, [c];
 }}
 xor.b64 %d2, %d3, %d0;
END:
 st.param.b64 [result], %d2;
 ret;
}}
'''

INTEGERS = [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000,
            0x7fffff, 0x800000, 0x1000000, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0xffffff80,
            0xffff8000, 0x55555555, 0xaaaaaaaa, 0x01010101, 0x80808080, 0x7f7f7f7f]
SINGLE_FLOATS = [0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x3fc00000, 0x40200000, 0xc0600000,
                 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff,
                 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0x7fffffff, 0x4b000000, 0x4b800000,
                 0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000, 0xdf000000, 0x5f800000, 0x33800000, 0x34000000,
                 0x3f7fffff, 0x3f800001, 0x477fe000, 0x477ff000, 0x33000000, 0x38800000, 0x387fc000, 0x437f8000,
                 0x43000000, 0x42ff0000, 0xbf000000, 0x3effffff, 0x1f800000, 0x20000000, 0x5f7fffff]
DOUBLES = [0x0, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x3fe0000000000000, 0x3ff8000000000000,
           0x4004000000000000, 0x1, 0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
           0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001,
           0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000200000, 0x43e0000000000000, 0xc3e0000000000000,
           0x43f0000000000000, 0x3690000000000000, 0x36a0000000000000, 0x380fffffe0000000, 0x3810000000000000,
           0x47efffffe0000000, 0x47effffff0000000, 0x3ff0000010000000, 0x3ff0000030000000, 0x3ca0000000000000,
           0x1ff0000000000000, 0x5ff0000000000000, 0x40effdffffffffff, 0x3e60000000000000]
HALVES = [0x0000, 0x8000, 0x3c00, 0xbc00, 0x3800, 0x3e00, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x7bff, 0xfbff,
          0x7c00, 0xfc00, 0x7e00, 0x7c01, 0x7fff, 0x3c01, 0x3bff, 0x6400, 0x7800, 0x1400, 0x5bf8, 0x4100, 0x4300,
          0x0080, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x3f80, 0xbf80, 0x3f81, 0x4040, 0x4300, 0x2180, 0x42ae]


class Numbers:
    """Random numbers that depend on the seed alone, in every version of Python."""

    def __init__(self, seed, purpose):
        self.bits = random.Random(seed * 4 + purpose).getrandbits

    def below(self, count):
        return self.bits(32) % count

    def one_of(self, items):
        return items[self.bits(32) % len(items)]

    def chance(self, percent):
        return self.bits(32) % 100 < percent


def number64(n):
    """A number that is likely to be at an edge of some type."""
    kind = n.below(12)
    if kind == 0:
        return n.one_of(INTEGERS) | n.one_of(INTEGERS) << 32
    if kind == 1:
        value = n.one_of(INTEGERS)
        return (value | (0xffffffff00000000 if value >> 31 else 0)) & (2 ** 64 - 1)
    if kind == 2:
        return n.below(256)
    if kind == 3:
        return n.one_of(SINGLE_FLOATS) | n.one_of(SINGLE_FLOATS) << 32
    if kind in (4, 5):
        return n.one_of(DOUBLES)
    if kind == 6:      # floats of moderate size
        low = n.bits(23) | (112 + n.below(32)) << 23 | n.below(2) << 31
        return low | (n.bits(23) | (112 + n.below(32)) << 23 | n.below(2) << 31) << 32
    if kind == 7:      # doubles of moderate size
        return n.bits(52) | (1000 + n.below(48)) << 52 | n.below(2) << 63
    if kind == 8:
        return n.one_of(HALVES) | n.one_of(HALVES) << 16 | n.one_of(HALVES) << 32 | n.one_of(HALVES) << 48
    if kind == 9:      # halves of moderate size
        value = 0
        for at in range(4):
            value |= (n.bits(10) | (8 + n.below(14)) << 10 | n.below(2) << 15) << 16 * at
        return value
    if kind == 10:     # few bits, anywhere
        return (1 << n.below(64)) ^ (1 << n.below(64))
    return n.bits(64)


INPUT_SETS = 61


@functools.lru_cache(maxsize=INPUT_SETS)
def input_set(number):
    n = Numbers(number, 1)
    return struct.pack(f'<{WORDS * LANES}Q', *[number64(n) for _ in range(WORDS * LANES)])


def inputs(seed):
    """The numbers that the threads of a program read: WORDS for each thread, little-endian."""
    return input_set(seed % INPUT_SETS)


ROUNDINGS = ['rn', 'rz', 'rm', 'rp']
COMPARE_INTEGER = ['eq', 'ne', 'lt', 'le', 'gt', 'ge']
COMPARE_UNSIGNED = COMPARE_INTEGER + ['lo', 'ls', 'hi', 'hs']
COMPARE_FLOAT = COMPARE_INTEGER + ['equ', 'neu', 'ltu', 'leu', 'gtu', 'geu', 'num', 'nan']
NAN32, NAN64 = '0x7fffffff', '0x7fffffffffffffff'

# Kinds of registers: the prefix and the bytes.
SIZE = {'h': 2, 'r': 4, 'd': 8}


def forms():
    """Each form of an instruction with one result: (text with %d and operands a, b, c, e; kind of the result; kinds of
    the operands; what makes the NaN one: '', 'f32', 'f64', 'f16', 'bf16', 'f16x2', 'bf16x2')."""
    out = []

    def add(name, to, operands, nan='', tail=''):
        letters = ['%a', '%b', '%c', '%e'][:len(operands)]
        out.append((f'{name} %d, ' + ', '.join(letters) + tail + ';', to, operands, nan))

    kinds = {16: 'h', 32: 'r', 64: 'd'}
    for bits in (16, 32, 64):
        k = kinds[bits]
        for sign in 'us':
            t = f'{sign}{bits}'
            for name in ('add', 'sub', 'mul.lo', 'mul.hi', 'min', 'max'):
                add(f'{name}.{t}', k, k * 2)
            for name in ('mad.lo', 'mad.hi', 'sad'):
                add(f'{name}.{t}', k, k * 3)
            add(f'shr.{t}', k, k + 'r')
            if bits < 64:
                wide = kinds[2 * bits]
                add(f'mul.wide.{t}', wide, k * 2)
                add(f'mad.wide.{t}', wide, k * 2 + wide)
            if bits > 16:
                add(f'bfe.{t}', k, k + 'rr')
                add(f'bfind.{t}', 'r', k)
                add(f'bfind.shiftamt.{t}', 'r', k)
        for name in ('abs', 'neg'):
            add(f'{name}.s{bits}', k, k)
        add(f'shl.b{bits}', k, k + 'r')
        for name in ('and', 'or', 'xor'):
            add(f'{name}.b{bits}', k, k * 2)
        for name in ('not', 'cnot'):
            add(f'{name}.b{bits}', k, k)
        if bits > 16:
            for name in ('popc', 'clz'):
                add(f'{name}.b{bits}', 'r', k)
            add(f'brev.b{bits}', k, k)
            add(f'bfi.b{bits}', k, k * 2 + 'rr')
    for sign in 'us':
        for part in ('lo', 'hi'):
            add(f'mul24.{part}.{sign}32', 'r', 'rr')
            add(f'mad24.{part}.{sign}32', 'r', 'rrr')
        add(f'szext.wrap.{sign}32', 'r', 'rr')
        add(f'szext.clamp.{sign}32', 'r', 'rr')
        for other in 'us':
            add(f'dp4a.{sign}32.{other}32', 'r', 'rrr')
            add(f'dp2a.lo.{sign}32.{other}32', 'r', 'rrr')
            add(f'dp2a.hi.{sign}32.{other}32', 'r', 'rrr')
    for name in ('add.sat', 'sub.sat'):
        add(f'{name}.s32', 'r', 'rr')
    add('mad.hi.sat.s32', 'r', 'rrr')
    for mode in ('wrap', 'clamp'):
        add(f'bmsk.{mode}.b32', 'r', 'rr')
        for way in 'lr':
            add(f'shf.{way}.{mode}.b32', 'r', 'rrr')
    for mode in ('', '.f4e', '.b4e', '.rc8', '.ecl', '.ecr', '.rc16'):
        add(f'prmt.b32{mode}', 'r', 'rrr')
    for table in (0x00, 0x01, 0x80, 0x96, 0xe8, 0xca, 0xfe, 0x3c, 0x6a, 0xff, 0x1b, 0xd2):
        add('lop3.b32', 'r', 'rrr', '', f', {table}')
    for t, k in (('s32', 'r'), ('f32', 'r'), ('u64', 'd'), ('b16', 'h'), ('f64', 'd')):
        add(f'slct.{t}.s32', k, k * 2 + 'r')
    add('slct.u32.f32', 'r', 'rrr')
    add('slct.ftz.u32.f32', 'r', 'rrr')

    for ftz in ('', '.ftz'):
        for rounding in ROUNDINGS:
            for sat in ('', '.sat'):
                for name in ('add', 'sub', 'mul'):
                    add(f'{name}.{rounding}{ftz}{sat}.f32', 'r', 'rr', 'f32')
                add(f'fma.{rounding}{ftz}{sat}.f32', 'r', 'rrr', 'f32')
            add(f'div.{rounding}{ftz}.f32', 'r', 'rr', 'f32')
            for name in ('rcp', 'sqrt'):
                add(f'{name}.{rounding}{ftz}.f32', 'r', 'r', 'f32')
        for name in ('min', 'max'):
            for nan in ('', '.NaN'):
                add(f'{name}{ftz}{nan}.f32', 'r', 'rr', 'f32')
                add(f'{name}{ftz}{nan}.xorsign.abs.f32', 'r', 'rr', 'f32')
        for name in ('abs', 'neg'):
            add(f'{name}{ftz}.f32', 'r', 'r', 'f32')
    for rounding in ROUNDINGS:
        for name in ('add', 'sub', 'mul', 'div'):
            add(f'{name}.{rounding}.f64', 'd', 'dd', 'f64')
        add(f'fma.{rounding}.f64', 'd', 'ddd', 'f64')
        for name in ('rcp', 'sqrt'):
            add(f'{name}.{rounding}.f64', 'd', 'd', 'f64')
    for name in ('min', 'max'):
        add(f'{name}.f64', 'd', 'dd', 'f64')
    for name in ('abs', 'neg'):
        add(f'{name}.f64', 'd', 'd', 'f64')
    add('copysign.f32', 'r', 'rr', 'f32')
    add('copysign.f64', 'd', 'dd', 'f64')
    for t, k in (('f16', 'h'), ('f16x2', 'r')):
        for ftz in ('', '.ftz'):
            for sat in ('', '.sat'):
                for name in ('add', 'sub', 'mul'):
                    add(f'{name}.rn{ftz}{sat}.{t}', k, k * 2, t)
                add(f'fma.rn{ftz}{sat}.{t}', k, k * 3, t)
            add(f'fma.rn{ftz}.relu.{t}', k, k * 3, t)
            for name in ('min', 'max'):
                for nan in ('', '.NaN'):
                    add(f'{name}{ftz}{nan}.{t}', k, k * 2, t)
                    add(f'{name}{ftz}{nan}.xorsign.abs.{t}', k, k * 2, t)
            for name in ('abs', 'neg'):
                add(f'{name}{ftz}.{t}', k, k, t)
    for t, k in (('bf16', 'h'), ('bf16x2', 'r')):
        for name in ('add', 'sub', 'mul'):
            add(f'{name}.rn.{t}', k, k * 2, t)
        add(f'fma.rn.{t}', k, k * 3, t)
        add(f'fma.rn.relu.{t}', k, k * 3, t)
        for name in ('min', 'max'):
            for nan in ('', '.NaN'):
                add(f'{name}{nan}.{t}', k, k * 2, t)
                add(f'{name}{nan}.xorsign.abs.{t}', k, k * 2, t)
        for name in ('abs', 'neg'):
            add(f'{name}.{t}', k, k, t)

    # Conversions. Results of 8 bits are those of 16 bits.
    widths = (8, 16, 32, 64)
    holder = {8: 'h', 16: 'h', 32: 'r', 64: 'd'}
    for to_bits in widths:
        for to_sign in 'us':
            for from_bits in widths:
                for from_sign in 'us':
                    to, source = f'{to_sign}{to_bits}', f'{from_sign}{from_bits}'
                    add(f'cvt.{to}.{source}', holder[to_bits], holder[from_bits])
                    # Where the result's range has all numbers of the source, .sat is not allowed.
                    if not (from_bits < to_bits and (to_sign == 's' or from_sign == 'u')) and to != source:
                        add(f'cvt.sat.{to}.{source}', holder[to_bits], holder[from_bits])
    floats = {'f16': 'h', 'bf16': 'h', 'f32': 'r', 'f64': 'd'}
    for bits in widths:
        for sign in 'us':
            t, k = f'{sign}{bits}', holder[bits]
            for f, fk in floats.items():
                if f == 'bf16' and bits == 8:
                    continue
                for rounding in ROUNDINGS:
                    if f == 'bf16' and rounding != 'rn':
                        continue
                    add(f'cvt.{rounding}.{f}.{t}', fk, k, f)
                for rounding in ROUNDINGS:
                    add(f'cvt.{rounding}i.{t}.{f}', k, fk)
                    if f != 'bf16':
                        add(f'cvt.{rounding}i.sat.{t}.{f}', k, fk)
                    if f == 'f32':
                        add(f'cvt.{rounding}i.ftz.{t}.{f}', k, fk)
                if f in ('f16', 'f32', 'f64'):
                    add(f'cvt.rn.sat.{f}.{t}', fk, k, f)
    for rounding in ROUNDINGS:
        add(f'cvt.{rounding}.f32.f64', 'r', 'd', 'f32')
        add(f'cvt.{rounding}.ftz.f32.f64', 'r', 'd', 'f32')
        add(f'cvt.{rounding}.sat.f32.f64', 'r', 'd', 'f32')
        add(f'cvt.{rounding}.f16.f32', 'h', 'r', 'f16')
        add(f'cvt.{rounding}.ftz.f16.f32', 'h', 'r', 'f16')
        add(f'cvt.{rounding}.sat.f16.f32', 'h', 'r', 'f16')
        add(f'cvt.{rounding}.f16.f64', 'h', 'd', 'f16')
        for f, k in (('f16', 'h'), ('f32', 'r'), ('f64', 'd')):
            add(f'cvt.{rounding}i.{f}.{f}', k, k, f)
            add(f'cvt.{rounding}i.sat.{f}.{f}', k, k, f)
        add(f'cvt.{rounding}i.ftz.f32.f32', 'r', 'r', 'f32')
    for rounding in ('rn', 'rz'):
        for relu in ('', '.relu'):
            add(f'cvt.{rounding}{relu}.bf16.f32', 'h', 'r', 'bf16')
            add(f'cvt.{rounding}{relu}.f16.f32', 'h', 'r', 'f16')
            add(f'cvt.{rounding}{relu}.f16x2.f32', 'r', 'rr', 'f16x2')
            add(f'cvt.{rounding}{relu}.bf16x2.f32', 'r', 'rr', 'bf16x2')
    add('cvt.f32.f16', 'r', 'h', 'f32')
    add('cvt.ftz.f32.f16', 'r', 'h', 'f32')
    add('cvt.sat.f32.f16', 'r', 'h', 'f32')
    add('cvt.f32.bf16', 'r', 'h', 'f32')
    add('cvt.f64.f16', 'd', 'h', 'f64')
    add('cvt.f64.f32', 'd', 'r', 'f64')
    add('cvt.ftz.f64.f32', 'd', 'r', 'f64')
    add('cvt.sat.f32.f32', 'r', 'r', 'f32')
    add('cvt.ftz.sat.f32.f32', 'r', 'r', 'f32')
    return out


def comparisons():
    """Forms with a predicate as a result: (text, kinds of the operands)."""
    out = []
    for bits, k in ((16, 'h'), (32, 'r'), (64, 'd')):
        out += [(f'setp.{c}.b{bits} %p, %a, %b;', k * 2) for c in ('eq', 'ne')]
        out += [(f'setp.{c}.s{bits} %p, %a, %b;', k * 2) for c in COMPARE_INTEGER]
        out += [(f'setp.{c}.u{bits} %p, %a, %b;', k * 2) for c in COMPARE_UNSIGNED]
    for t, k in (('f16', 'h'), ('bf16', 'h'), ('f32', 'r'), ('f64', 'd')):
        out += [(f'setp.{c}.{t} %p, %a, %b;', k * 2) for c in COMPARE_FLOAT]
        if t in ('f16', 'f32'):
            out += [(f'setp.{c}.ftz.{t} %p, %a, %b;', k * 2) for c in COMPARE_FLOAT]
    for t in ('f16x2', 'bf16x2'):
        out += [(f'setp.{c}.{t} %p|%q, %a, %b;', 'rr') for c in COMPARE_FLOAT]
    for t, k in (('f32', 'r'), ('f64', 'd')):
        out += [(f'testp.{c}.{t} %p, %a;', k)
                for c in ('finite', 'infinite', 'number', 'notanumber', 'normal', 'subnormal')]
    return out


def sets():
    """set: (text, kind of the result, kinds of the operands)."""
    out = []
    for source, k in (('s32', 'r'), ('u64', 'd'), ('f32', 'r'), ('f64', 'd'), ('b16', 'h'), ('f16', 'h')):
        names = COMPARE_FLOAT if source[0] == 'f' else ['eq', 'ne'] if source[0] == 'b' else COMPARE_INTEGER
        for c in names:
            out.append((f'set.{c}.u32.{source} %d, %a, %b;', 'r', k * 2))
            if source != 'f16':
                out.append((f'set.{c}.f32.{source} %d, %a, %b;', 'r', k * 2))
    for c in COMPARE_FLOAT:
        out.append((f'set.{c}.f16x2.f16x2 %d, %a, %b;', 'r', 'rr'))
        out.append((f'set.{c}.u32.f16x2 %d, %a, %b;', 'r', 'rr'))
        out.append((f'set.{c}.bf16x2.bf16x2 %d, %a, %b;', 'r', 'rr'))
        out.append((f'set.{c}.f16.f16 %d, %a, %b;', 'h', 'hh'))
    return out


# Approximations: (text, kind, kinds of the operands, name of the exact function in runner's table). Their results are
# replaced by whether they lie within the documented error.
APPROXIMATIONS = [
    (f'{name}.approx{ftz}.f32 %d, %a;', 'r', 'r', name + ftz)
    for name in ('rcp', 'sqrt', 'rsqrt', 'sin', 'cos', 'lg2', 'ex2') for ftz in ('', '.ftz')
] + [('tanh.approx.f32 %d, %a;', 'r', 'r', 'tanh'), ('div.approx.f32 %d, %a, %b;', 'r', 'rr', 'div'),
     ('div.full.f32 %d, %a, %b;', 'r', 'rr', 'div'), ('div.full.ftz.f32 %d, %a, %b;', 'r', 'rr', 'div.ftz')]

FORMS, COMPARISONS, SETS = forms(), comparisons(), sets()
SINGLES = len(FORMS) + len(COMPARISONS) + len(SETS) + len(APPROXIMATIONS)


class Maker:
    def __init__(self, seed):
        self.seed = seed
        self.n = Numbers(seed, 0)
        self.lines = []
        self.row = 0
        self.counts = {'h': WORDS, 'r': WORDS, 'd': WORDS, 'p': 2}
        # What may be read: registers that are set whatever way control took.
        self.made = {'h': [], 'r': [], 'd': []}
        self.predicates = [0, 1]
        self.label = 0
        # Registers that not every step may read.
        self.flags = set()     # 0 or 1, by selp
        self.atomic_halves = set()
        self.uniform = set()   # alike in all lanes of a warp; predicates too
        self.names = []        # of the steps, for messages: one for each row

    def emit(self, line):
        self.lines.append(' ' + line)

    def new(self, kind):
        number = self.counts[kind]
        self.counts[kind] += 1
        return f'%{kind}{number}'

    def new_label(self):
        self.label += 1
        return f'L{self.seed}_{self.label}'

    def operand(self, kind, constants=True):
        if self.made[kind] and self.n.chance(35):
            return self.n.one_of(self.made[kind])
        return f'%{kind}{self.n.below(WORDS)}'

    def operand_beside(self, kind, left_out):
        """An operand, or a number of the input in its place."""
        register = self.operand(kind)
        return f'%{kind}0' if register in left_out else register

    def predicate(self):
        return f'%p{self.n.one_of(self.predicates)}'

    def fill(self, text, to, operands):
        result = self.new(to) if to else ''
        converts, uniform = text.startswith('cvt'), True
        text = text.replace('%d,', result + ',')
        for letter, kind in zip('abce', operands):
            register = self.operand_beside(kind, self.flags if converts else ())
            uniform = uniform and register in self.uniform
            text = text.replace('%' + letter, register, 1)
        if uniform:
            self.uniform.add(result)
        return text, result

    def one_nan(self, kind, register):
        """Replaces each NaN by one, since PTX leaves its bits open here."""
        if kind in ('f32', 'f64'):
            p = self.new('p')
            self.emit(f'setp.nan.{kind} {p}, {register}, {register};')
            nan = NAN32 if kind == 'f32' else NAN64
            self.emit(f'selp.b{kind[1:]} {register}, {nan}, {register}, {p};')
        elif kind in ('f16', 'bf16'):
            p, wide, limit = self.new('p'), self.new('r'), '0x7c00' if kind == 'f16' else '0x7f80'
            self.emit(f'cvt.u32.u16 {wide}, {register};')
            self.emit(f'and.b32 {wide}, {wide}, 0x7fff;')
            self.emit(f'setp.gt.u32 {p}, {wide}, {limit};')
            self.emit(f'selp.b16 {register}, 0x7fff, {register}, {p};')
        elif kind in ('f16x2', 'bf16x2'):
            low, high = self.new('h'), self.new('h')
            self.emit(f'mov.b32 {{{low}, {high}}}, {register};')
            self.one_nan(kind[:-2], low)
            self.one_nan(kind[:-2], high)
            self.emit(f'mov.b32 {register}, {{{low}, {high}}};')

    def store(self, kind, register, name):
        """The row of a result."""
        if kind == 'h':
            wide = self.new('d')
            self.emit(f'cvt.u64.u16 {wide}, {register};')
        elif kind == 'r':
            wide = self.new('d')
            self.emit(f'cvt.u64.u32 {wide}, {register};')
        else:
            wide = register
        self.emit(f'st.global.b64 [%out+{self.row * LANES * 8}], {wide};')
        self.row += 1
        self.names.append(name)

    def store_alone(self, kind, register, name):
        """The row of a result, without a conversion to 64 bits: rows are 0 at first."""
        self.emit(f'st.global.b{8 * SIZE[kind]} [%out+{self.row * LANES * 8}], {register};')
        self.row += 1
        self.names.append(name)

    def keep(self, kind, register, name):
        self.made[kind].append(register)
        self.store(kind, register, name)

    def room(self):
        return SHARED_ROW - self.row

    def converge(self):
        """All lanes of the warp meet, as a barrier of the block that is .aligned needs it."""
        self.emit('bar.warp.sync 0xffffffff;')

    def barrier(self):
        self.converge()
        self.emit('bar.sync 0;')

    # -- steps; each takes one to three rows -------------------------------------------------------------------------

    def plain(self):
        n = self.n
        if n.chance(12):
            text, to, operands = n.one_of(SETS)
            nan = ''
        else:
            # Conversions are so many that they would crowd the rest out.
            text, to, operands, nan = n.one_of(FORMS)
            if text.startswith('cvt') and n.chance(50):
                text, to, operands, nan = n.one_of(FORMS)
        line, result = self.fill(text, to, operands)
        self.emit(line)
        if text.startswith('set') and text.split('.')[2] in ('f32', 'f16'):
            self.store_alone(to, result, text)
            return
        self.one_nan(nan, result)
        self.keep(to, result, text)

    def division(self):
        n = self.n
        bits = n.one_of([16, 32, 64])
        kind = {16: 'h', 32: 'r', 64: 'd'}[bits]
        divisor, result = self.new(kind), self.new(kind)
        # Without division by zero, and without INT_MIN / -1, which are unspecified.
        self.emit(f'or.b{bits} {divisor}, {self.operand(kind)}, 1;')
        sign = n.one_of('us')
        if sign == 's':
            self.emit(f'and.b{bits} {divisor}, {divisor}, {hex((1 << (bits - 1)) - 1)};')
        name = n.one_of(['div', 'rem']) + f'.{sign}{bits}'
        self.emit(f'{name} {result}, {self.operand(kind)}, {divisor};')
        self.keep(kind, result, name)

    def comparison(self):
        n = self.n
        text, operands = n.one_of(COMPARISONS)
        name = text
        number = self.counts['p']
        p = self.new('p')
        way = n.below(4)
        pair = '%q' in text
        if pair:
            text = text.replace('%q', self.new('p'))
            self.predicates.append(self.counts['p'] - 1)
            text = text.replace('%p|', p + '|')
        elif way and text.startswith('setp'):
            combine = n.one_of(['and', 'or', 'xor'])
            head, rest = text.split(' ', 1)
            parts = head.split('.')
            head = '.'.join(parts[:2] + [combine] + parts[2:])
            q = ''
            if way == 3 and parts[-1] not in ('f16', 'bf16'):
                q = self.new('p')
            result = f'{p}|{q}' if q else p
            not_ = n.one_of(['', '!'])
            text = f'{head} {rest}'.replace('%p,', result + ',').replace(';', f', {not_}{self.predicate()};')
            if q:
                self.predicates.append(self.counts['p'] - 1)
        else:
            text = text.replace('%p,', p + ',')
        read = [self.operand(kind) for kind in operands]
        for letter, register in zip('ab', read):
            text = text.replace('%' + letter, register, 1)
        if all(register in self.uniform for register in read):
            self.uniform |= {f'%p{made}' for made in range(number, self.counts['p'])}
        self.emit(text)
        self.predicates.append(number)
        kind = n.one_of('hrd')
        result = self.new(kind)
        bits = 8 * SIZE[kind]
        chosen = self.predicate() if n.chance(30) else p
        self.emit(f'selp.b{bits} {result}, {self.operand(kind)}, {self.operand(kind)}, {chosen};')
        self.keep(kind, result, 'selp of ' + name)
        flags = self.new('r')
        self.emit(f'selp.b32 {flags}, 1, 0, {p};')
        self.store('r', flags, name)

    def predicate_logic(self):
        p = self.new('p')
        name = self.n.one_of(['and', 'or', 'xor', 'not'])
        second = '' if name == 'not' else f', {self.predicate()}'
        first = self.predicate()
        if {first, second.lstrip(', ') or first} <= self.uniform:
            self.uniform.add(p)
        self.emit(f'{name}.pred {p}, {first}{second};')
        self.predicates.append(self.counts['p'] - 1)
        result = self.new('r')
        self.emit(f'selp.u32 {result}, {self.operand("r")}, {self.operand("r")}, {p};')
        self.keep('r', result, name + '.pred')

    def carries(self):
        n = self.n
        bits = n.one_of([32, 64])
        kind = {32: 'r', 64: 'd'}[bits]
        low, high = self.new(kind), self.new(kind)
        way = n.below(3)
        o = [self.operand(kind) for _ in range(6)]
        if way == 0:
            self.emit(f'add.cc.u{bits} {low}, {o[0]}, {o[1]};')
            self.emit(f'addc.u{bits} {high}, {o[2]}, {o[3]};')
        elif way == 1:
            self.emit(f'sub.cc.u{bits} {low}, {o[0]}, {o[1]};')
            self.emit(f'subc.u{bits} {high}, {o[2]}, {o[3]};')
        else:
            self.emit(f'mad.lo.cc.u{bits} {low}, {o[0]}, {o[1]}, {o[2]};')
            self.emit(f'madc.hi.u{bits} {high}, {o[3]}, {o[4]}, {o[5]};')
        self.keep(kind, low, f'carry {way} low')
        self.keep(kind, high, f'carry {way} high')

    def vectors(self):
        n = self.n
        if n.chance(50):
            low, high, whole = self.new('r'), self.new('r'), self.new('d')
            self.emit(f'mov.b64 {{{low}, {high}}}, {self.operand("d")};')
            self.emit(f'mov.b64 {whole}, {{{high}, {self.operand("r")}}};')
            self.keep('d', whole, 'mov.b64 of 2')
        else:
            parts = [self.operand('h') for _ in range(4)]
            whole = self.new('d')
            self.emit(f'mov.b64 {whole}, {{{", ".join(parts)}}};')
            self.keep('d', whole, 'mov.b64 of 4')

    def shared(self):
        """A round trip of each thread's number to another thread of the block."""
        n = self.n
        kind = n.one_of('hrd')
        size = SIZE[kind]
        at, other, value = self.new('d'), self.new('d'), self.new(kind)
        generic = n.chance(40)
        space = '' if generic else '.shared'
        base = '%gshared' if generic else '%shared'
        self.barrier()
        self.emit(f'mad.wide.u32 {at}, %t, {size}, {base};')
        self.emit(f'st{space}.b{8 * size} [{at}], {self.operand(kind)};')
        self.barrier()
        index = self.new('r')
        self.emit(f'xor.b32 {index}, %t, {n.below(64)};')
        self.emit(f'mad.wide.u32 {other}, {index}, {size}, {base};')
        self.emit(f'ld{space}.b{8 * size} {value}, [{other}];')
        self.keep(kind, value, 'shared memory')

    def narrow(self):
        """Stores of one width and loads of another in local or shared memory of the thread's own."""
        n = self.n
        to_local = n.chance(60)
        if to_local:
            at, space = '%local', n.one_of(['', '.local'])
            at = '%glocal' if space == '' else at
        else:
            at, space = self.new('d'), '.shared'
            self.barrier()
            self.emit(f'mad.wide.u32 {at}, %t, 16, %shared;')
        self.emit(f'st{space}.v2.b64 [{at}], {{{self.operand("d")}, {self.operand("d")}}};')
        place = n.below(4) * 4
        self.emit(f'st{space}.b8 [{at}+{n.below(16)}], {self.operand_beside("h", self.atomic_halves)};')
        self.emit(f'st{space}.b16 [{at}+{n.below(8) * 2}], {self.operand("h")};')
        self.emit(f'st{space}.f32 [{at}+{place}], {self.operand("r")};')
        type_, kind = n.one_of([('u8', 'r'), ('s8', 'r'), ('u16', 'r'), ('s16', 'r'), ('s8', 'h'), ('u8', 'h'),
                                ('s16', 'd'), ('s32', 'd'), ('u32', 'd'), ('b32', 'r'), ('b64', 'd'), ('s8', 'd')])
        size = int(type_[1:]) // 8
        value = self.new(kind)
        self.emit(f'ld{space}.{type_} {value}, [{at}+{n.below(16 // size) * size}];')
        self.keep(kind, value, f'ld.{type_} of 16 bytes')
        v = [self.new('r') for _ in range(4)]
        self.emit(f'ld{space}.v4.b32 {{{", ".join(v)}}}, [{at}];')
        sum_ = self.new('r')
        self.emit(f'lop3.b32 {sum_}, {v[0]}, {v[1]}, {v[2]}, 0x96;')
        self.emit(f'xor.b32 {sum_}, {sum_}, {v[3]};')
        self.keep('r', sum_, 'ld.v4.b32')

    def indexed(self):
        """A table in constant memory, or the thread's own array in local memory, by an index that is a result."""
        n = self.n
        index, at, value = self.new('r'), self.new('d'), self.new('r')
        self.emit(f'and.b32 {index}, {self.operand("r")}, {15 if n.chance(50) else 3};')
        if n.chance(50):
            self.emit(f'mad.wide.u32 {at}, {index}, 4, %table;')
            self.emit(f'ld.const.b32 {value}, [{at}];')
            self.keep('r', value, 'ld.const')
        else:
            self.emit(f'st.local.v4.b32 [%local], {{{", ".join(self.operand("r") for _ in range(4))}}};')
            self.emit(f'st.local.v4.b32 [%local+16], {{{", ".join(self.operand("r") for _ in range(4))}}};')
            self.emit(f'st.local.v4.b32 [%local+32], {{{", ".join(self.operand("r") for _ in range(4))}}};')
            self.emit(f'st.local.v4.b32 [%local+48], {{{", ".join(self.operand("r") for _ in range(4))}}};')
            self.emit(f'mad.wide.u32 {at}, {index}, 4, %local;')
            self.emit(f'ld.local.b32 {value}, [{at}];')
            self.keep('r', value, 'ld.local by index')

    def own_atomic(self):
        """An atomic on a word of the thread's own: its old and its new content."""
        n = self.n
        forms_ = [(f'{op}.{t}', k) for op in ('add', 'min', 'max') for t, k in
                  (('u32', 'r'), ('s32', 'r'), ('u64', 'd'), ('s64', 'd')) if not (op == 'add' and t == 's64')]
        forms_ += [(f'{op}.b{b}', k) for op in ('and', 'or', 'xor', 'exch', 'cas') for b, k in ((32, 'r'), (64, 'd'))]
        forms_ += [('inc.u32', 'r'), ('dec.u32', 'r'), ('add.f32', 'r'), ('add.f64', 'd'), ('add.noftz.f16', 'h'),
                   ('add.noftz.f16x2', 'r'), ('add.noftz.bf16', 'h'), ('add.noftz.bf16x2', 'r'), ('cas.b16', 'h')]
        form, kind = n.one_of(forms_)
        size = SIZE[kind]
        place = n.below(3)
        if place == 0:
            at, space = self.new('d'), n.one_of(['.shared', ''])
            self.barrier()
            self.emit(f'mad.wide.u32 {at}, %t, 8, {"%shared" if space else "%gshared"};')
        else:
            at, space = f'%out+{self.row * LANES * 8}', n.one_of(['.global', ''])
        first = self.operand(kind)
        self.emit(f'st{space}.b{8 * size} [{at}], {first};')
        nan = form.split('.')[-1] if '.f' in form or '.bf' in form else ''
        operands = self.operand(kind)
        if form.startswith('cas'):
            operands = f'{first if n.chance(50) else operands}, {self.operand(kind)}'
        old, new = self.new(kind), self.new(kind)
        with_result = n.chance(70) or form.startswith(('cas', 'exch'))
        op = f'atom{space}.{form} {old}, [{at}], {operands};'
        if not with_result:
            op = f'red{space}.{form} [{at}], {operands};'
        self.emit(op)
        self.emit(f'ld{space}.b{8 * size} {new}, [{at}];')
        where = 'shared' if place == 0 else 'global'
        self.one_nan(nan, new)
        self.keep(kind, new, f'{form} {where} new')
        if with_result:
            if kind == 'h':
                self.atomic_halves.add(old)
            self.keep(kind, old, f'{form} {where} old')

    def common_atomic(self):
        """An atomic of all threads on one word, whose end does not depend on the order."""
        n = self.n
        op = n.one_of(['add.u32', 'min.s32', 'max.s32', 'min.u32', 'max.u32', 'and.b32', 'or.b32', 'xor.b32',
                       'inc.u32', 'add.u64', 'max.u64', 'min.s64', 'xor.b64'])
        kind = 'd' if op.endswith('64') else 'r'
        bits = 8 * SIZE[kind]
        operand = str(n.below(1000)) if op.startswith('inc') else self.operand(kind)
        p = self.new('p')
        result = self.new(kind)
        self.barrier()
        self.emit(f'setp.eq.u32 {p}, %t, 0;')
        self.emit(f'@{p} st.shared.b{bits} [%shared], {n.one_of(INTEGERS) if not op.startswith("inc") else 0};')
        self.barrier()
        if n.chance(50):
            trash = self.new(kind)
            self.emit(f'atom.shared.{op} {trash}, [%shared], {operand};')
        else:
            self.emit(f'red.shared.{op} [%shared], {operand};')
        self.barrier()
        self.emit(f'ld.shared.b{bits} {result}, [%shared];')
        self.barrier()
        self.uniform.add(result)
        self.keep(kind, result, f'{op} of a block')

    def shuffle(self):
        n = self.n
        way = n.one_of(['up', 'down', 'bfly', 'idx'])
        p, result = self.new('p'), self.new('r')
        width = n.one_of([32, 16, 8, 4, 2, 1])
        c = ((32 - width) << 8) | (0 if way == 'up' else 31)
        lane = n.one_of([str(n.below(32)), str(n.below(64)), self.operand('r')])
        if n.chance(15):
            masked = self.new('r')
            self.emit(f'and.b32 {masked}, {self.operand("r")}, 0x1f1f;')
            c = masked
        # A source lane outside of the segment gives the lane's own number, so the result is always defined.
        self.emit(f'shfl.sync.{way}.b32 {result}|{p}, {self.operand("r")}, {lane}, {c}, 0xffffffff;')
        flag = self.new('r')
        self.emit(f'selp.u32 {flag}, 1, 0, {p};')
        self.keep('r', result, f'shfl.{way}')
        self.store('r', flag, f'shfl.{way} predicate')

    def votes(self, members='0xffffffff'):
        n = self.n
        way = n.one_of(['all', 'any', 'uni', 'ballot', 'match.any.b32', 'match.any.b64', 'match.all.b32',
                        'redux.add.u32', 'redux.add.s32', 'redux.min.u32', 'redux.max.u32', 'redux.min.s32',
                        'redux.max.s32', 'redux.and.b32', 'redux.or.b32', 'redux.xor.b32'])
        result = self.new('r')
        if way == 'ballot':
            self.emit(f'vote.sync.ballot.b32 {result}, {n.one_of(["", "!"])}{self.predicate()}, {members};')
        elif way in ('all', 'any', 'uni'):
            p = self.new('p')
            self.emit(f'vote.sync.{way}.pred {p}, {n.one_of(["", "!"])}{self.predicate()}, {members};')
            self.emit(f'selp.u32 {result}, 1, 0, {p};')
            self.flags.add(result)
        elif way.startswith('match'):
            _, how, type_ = way.split('.')
            kind = 'r' if type_ == 'b32' else 'd'
            value = self.new(kind)
            self.emit(f'and.{type_} {value}, {self.operand(kind)}, {n.one_of([0, 1, 3, 0x8001])};')
            if how == 'all':
                p = self.new('p')
                self.emit(f'match.all.sync.{type_} {result}|{p}, {value}, {members};')
            else:
                self.emit(f'match.any.sync.{type_} {result}, {value}, {members};')
        else:
            _, how, type_ = way.split('.')
            self.emit(f'redux.sync.{how}.{type_} {result}, {self.operand("r")}, {members};')
        return way, result

    def vote(self):
        way, result = self.votes()
        if not way.startswith('match.any'):
            self.uniform.add(result)
        self.keep('r', result, way)

    def barrier_reduction(self):
        n = self.n
        way = n.one_of(['popc', 'and', 'or'])
        result = self.new('r')
        self.converge()
        if way == 'popc':
            self.emit(f'bar.red.popc.u32 {result}, 0, {n.one_of(["", "!"])}{self.predicate()};')
        else:
            p = self.new('p')
            self.emit(f'bar.red.{way}.pred {p}, 0, {self.predicate()};')
            self.emit(f'selp.u32 {result}, 1, 0, {p};')
            self.flags.add(result)
        self.uniform.add(result)
        self.keep('r', result, f'bar.red.{way}')

    def special(self):
        n = self.n
        name = n.one_of(['%tid.x', '%tid.y', '%ntid.x', '%ntid.z', '%ctaid.x', '%ctaid.z', '%nctaid.x', '%nctaid.y',
                         '%laneid', '%lanemask_eq', '%lanemask_lt', '%lanemask_le', '%lanemask_gt', '%lanemask_ge',
                         'WARP_SZ'])
        result = self.new('r')
        self.emit(f'mov.u32 {result}, {name};')
        if not name.startswith(('%tid', '%lane')):
            self.uniform.add(result)
        self.keep('r', result, name)

    def guarded(self):
        """Instructions under a predicate: the result is that of before where it is false."""
        n = self.n
        text, to, operands, nan = n.one_of(FORMS)
        line, result = self.fill(text, to, operands)
        bits = 8 * SIZE[to]
        self.emit(f'mov.b{bits} {result}, {self.operand(to)};')
        # The operands were chosen before: the result is none of them.
        self.emit(f'@{n.one_of(["", "!"])}{self.predicate()} {line}')
        self.one_nan(nan, result)
        self.keep(to, result, '@ ' + text)

    def inside(self, result, kind):
        """Some instructions of one path, whose last one sets the register."""
        n = self.n
        saved = {k: list(v) for k, v in self.made.items()}
        predicates = list(self.predicates)
        for _ in range(1 + n.below(3)):
            text, to, operands, nan = n.one_of(FORMS)
            line, value = self.fill(text, to, operands)
            self.emit(line)
            self.one_nan(nan, value)
            self.made[to].append(value)
        self.emit(f'mov.b{8 * SIZE[kind]} {result}, {self.operand(kind)};')
        self.made, self.predicates = saved, predicates

    def branch(self):
        """if and else, which may have another one within."""
        n = self.n
        kind = n.one_of('hrd')
        result = self.new(kind)
        other, end = self.new_label(), self.new_label()
        p = self.predicate()
        if p in self.uniform:
            p = '%p1'
        # The lanes of each path, for instructions between lanes in it.
        taken, rest = self.new('r'), self.new('r')
        self.emit(f'vote.sync.ballot.b32 {taken}, {p}, 0xffffffff;')
        self.emit(f'not.b32 {rest}, {taken};')
        way_out = self.new('r')
        self.emit(f'@!{p} bra {other};')
        self.inside(result, kind)
        way, value = self.votes(taken)
        self.emit(f'mov.b32 {way_out}, {value};')
        n.one_of(["", ".uni"])    # only drawn: lanes part here
        self.emit(f'bra {end};')
        self.lines.append(f'{other}:')
        if n.chance(40):
            q, second, end2 = self.predicate(), self.new_label(), self.new_label()
            self.emit(f'@{q} bra {second};')
            self.inside(result, kind)
            self.emit(f'bra {end2};')
            self.lines.append(f'{second}:')
            self.inside(result, kind)
            self.lines.append(f'{end2}:')
            self.emit(f'bar.warp.sync {rest};')
        else:
            self.inside(result, kind)
        way2, value = self.votes(rest)
        self.emit(f'mov.b32 {way_out}, {value};')
        self.lines.append(f'{end}:')
        self.converge()
        self.keep(kind, result, 'branch')
        self.keep('r', way_out, f'{way} and {way2} within a branch')

    def loop(self):
        """A loop whose count differs between threads, and which may be left early."""
        n = self.n
        count, sum_, other = self.new('r'), self.new('r'), self.new('r')
        start, end = self.new_label(), self.new_label()
        p, q = self.new('p'), self.new('p')
        wide = self.new('d')
        self.emit(f'and.b32 {count}, {self.operand("r")}, {n.one_of([3, 7, 15])};')
        self.emit(f'mov.b32 {sum_}, {self.operand("r")};')
        self.emit(f'mov.b64 {wide}, {self.operand("d")};')
        self.lines.append(f'{start}:')
        self.emit(f'setp.eq.u32 {p}, {count}, 0;')
        self.emit(f'@{p} bra {end};')
        step = n.one_of(['mad.lo.u32 {0}, {0}, 1664525, {1};', 'shf.l.wrap.b32 {0}, {0}, {1}, 7;',
                         'sub.u32 {0}, {1}, {0};', 'mul.hi.u32 {0}, {0}, {1};', 'fma.rn.f32 {0}, {0}, {1}, {0};',
                         'xor.b32 {0}, {0}, {1};', 'dp4a.u32.s32 {0}, {0}, {1}, {0};'])
        self.emit(step.format(sum_, self.operand('r')))
        if step.startswith('fma'):
            self.one_nan('f32', sum_)
        self.emit(f'cvt.u64.u32 {self.new("d")}, {sum_};')
        self.emit(f'add.u64 {wide}, {wide}, %d{self.counts["d"] - 1};')
        if n.chance(50):
            self.emit(f'and.b32 {other}, {sum_}, 7;')
            self.emit(f'setp.eq.u32 {q}, {other}, 5;')
            self.emit(f'@{q} bra {end};')
        self.emit(f'sub.u32 {count}, {count}, 1;')
        self.emit(f'bra {start};')
        self.lines.append(f'{end}:')
        self.converge()
        self.keep('r', sum_, 'loop')
        self.keep('d', wide, 'loop, sum')

    def table(self):
        """brx.idx: one of four paths."""
        n = self.n
        index, result = self.new('r'), self.new('r')
        labels, end, targets = [self.new_label() for _ in range(4)], self.new_label(), self.new_label()
        self.emit(f'and.b32 {index}, {self.operand("r")}, 3;')
        self.emit(f'{targets}: .branchtargets {", ".join(labels)};')
        self.emit(f'brx.idx {index}, {targets};')
        for label in labels:
            self.lines.append(f'{label}:')
            self.inside(result, 'r')
            self.emit(f'bra {end};')
        self.lines.append(f'{end}:')
        self.converge()
        self.keep('r', result, 'brx.idx')

    def call(self):
        n = self.n
        if n.chance(60):
            result = self.new('r')
            self.emit('{ .param .b32 a; .param .b32 b; .param .b32 c;')
            self.emit(f'st.param.b32 [a], {self.operand("r")};')
            self.emit(f'st.param.b32 [b], {self.operand("r")};')
            self.emit('call.uni (c), blend, (a, b);')
            self.emit(f'ld.param.b32 {result}, [c]; }}')
            self.converge()
            self.keep('r', result, 'call')
        else:
            depth, result = self.new('r'), self.new('d')
            self.emit(f'shr.u32 {depth}, %number, 5;')      # the number of the warp
            self.emit(f'add.u32 {depth}, {depth}, {n.below(4)};')
            self.emit(f'and.b32 {depth}, {depth}, 3;')
            self.emit('{ .param .b64 a; .param .b32 b; .param .b64 c;')
            self.emit(f'st.param.b64 [a], {self.operand("d")};')
            self.emit(f'st.param.b32 [b], {depth};')
            self.emit('call (c), descend, (a, b);')
            self.emit(f'ld.param.b64 {result}, [c]; }}')
            self.converge()
            self.keep('d', result, 'recursive call')

    def global_atomic(self):
        """Once in a program: all threads of the grid on the last row, which starts as 0."""
        n = self.n
        op = n.one_of(['add.u32', 'max.u32', 'or.b32', 'xor.b32', 'add.u64', 'max.u64', 'inc.u32'])
        kind = 'd' if op.endswith('64') else 'r'
        operand = str(n.below(1000)) if op.startswith('inc') else self.operand(kind)
        self.emit(f'red.global.{op} [%common], {operand};')
        self.names.append(op + ' of the grid')

    STEPS = [(34, plain), (5, division), (9, comparison), (2, predicate_logic), (3, carries), (2, vectors), (5, shared),
             (4, narrow), (3, indexed), (6, own_atomic), (3, common_atomic), (6, shuffle), (6, vote),
             (2, barrier_reduction), (2, special), (4, guarded), (6, branch), (5, loop), (3, table), (3, call)]

    def begin(self):
        for at in range(WORDS):
            self.emit(f'ld.global.b64 %d{at}, [%in+{at * LANES * 8}];')
        # Narrow registers hold other words than the wide ones, so that a chain mixes them.
        for at in range(WORDS):
            word, part = at, at % 2
            self.emit(f'ld.global.b32 %r{at}, [%in+{word * LANES * 8 + 4 * part}];')
        for at in range(WORDS):
            self.emit(f'ld.global.b16 %h{at}, [%in+{(WORDS - 1 - at) * LANES * 8 + 2 * (at % 4)}];')
        self.emit('setp.lt.s32 %p0, %r0, %r1;')
        self.emit('setp.ne.u32 %p1, %t, 7;')

    def text(self):
        regs = '\n'.join(f' .reg .b{8 * SIZE[k]} %{k}<{self.counts[k]}>;' for k in 'hrd')
        body = '\n'.join(self.lines)
        return f'''.visible .entry p{self.seed}(.param .u64 input, .param .u64 output)
{{
{regs}
 .reg .pred %p<{self.counts['p']}>;
 .reg .b32 %t, %number;
 .reg .b64 %in, %out, %shared, %gshared, %local, %glocal, %table, %common;
 .shared .align 16 .b8 words[1024];
 .local .align 16 .b8 own[64];
 ld.param.u64 %in, [input];
 ld.param.u64 %out, [output];
 cvta.to.global.u64 %in, %in;
 cvta.to.global.u64 %out, %out;
 mov.u32 %t, %tid.x;
 mov.u32 %number, %ctaid.x;
 mad.lo.u32 %number, %number, {THREADS}, %t;
 add.u64 %common, %out, {GLOBAL_ROW * LANES * 8};
 mad.wide.u32 %in, %number, 8, %in;
 mad.wide.u32 %out, %number, 8, %out;
 mov.u64 %shared, words;
 cvta.shared.u64 %gshared, %shared;
 mov.u64 %local, own;
 cvta.local.u64 %glocal, %local;
 mov.u64 %table, table;
{body}
 ret;
}}
'''


def single(seed):
    """(text, kind of the result or None for a predicate, kinds of the operands, NaN, name of an approximation)."""
    if seed < len(FORMS):
        return FORMS[seed] + ('',)
    seed -= len(FORMS)
    if seed < len(COMPARISONS):
        text, operands = COMPARISONS[seed]
        return text, None, operands, '', ''
    seed -= len(COMPARISONS)
    if seed < len(SETS):
        return SETS[seed] + ('', '')
    text, to, operands, name = APPROXIMATIONS[seed - len(SETS)]
    return text, to, operands, '', name


# Of approximations: the operands of each row, so that the runner can judge the results.
SINGLE_ROWS = 16


def make(seed):
    maker = Maker(seed)
    maker.begin()
    n = maker.n
    if seed < SINGLES:
        text, to, operands, nan, _ = single(seed)
        for row in range(SINGLE_ROWS):
            registers = [f'%{kind}{(row * (at + 1) + 5 * at) % WORDS}' for at, kind in enumerate(operands)]
            line = text
            if to is None:
                p, result = maker.new('p'), maker.new('r')
                line = line.replace('%p,', p + ',').replace('%p|', p + '|')
                if '%q' in line:
                    q = maker.new('p')
                    line = line.replace('%q', q)
            else:
                result = maker.new(to)
                line = line.replace('%d,', result + ',')
            for letter, register in zip('abce', registers):
                line = line.replace('%' + letter, register, 1)
            maker.emit(line)
            if to is None:
                maker.emit(f'selp.u32 {result}, 1, 0, {p};')
                if '%q' in text:
                    maker.emit(f'@{q} add.u32 {result}, {result}, 2;')
            maker.one_nan(nan, result)
            maker.store(to or 'r', result, line)
        return maker
    total = sum(weight for weight, _ in Maker.STEPS)
    while maker.room() > 3:
        at = n.below(total)
        for weight, step in Maker.STEPS:
            if at < weight:
                step(maker)
                break
            at -= weight
    maker.global_atomic()
    return maker


def program(seed):
    return make(seed).text()


def module(seeds):
    return HEADER + ''.join(program(seed) for seed in seeds)
