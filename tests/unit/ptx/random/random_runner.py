#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the random programs of random_ptx.py through whatever libcuda.so.1 the loader finds, a GPU's or the simulator's.

usage: random_runner.py FIRST END [--jobs N] [--batch N] [--out FILE] [--limit SECONDS]

It writes one line for each seed: the seed, a digest of all results in 16 digits, and 4 digits for each row of results.
A program that cannot run has the word "error" and the reason instead. Results of approximations (.approx, .full) are
replaced by whether they lie within the error that the PTX ISA documents.
"""
import argparse
import ctypes
import hashlib
import lzma
import math
import os
import struct
import sys
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import random_ptx as rp  # noqa: E402

PROGRAM_BYTES = rp.ROWS * rp.LANES * 8
INPUT_BYTES = rp.WORDS * rp.LANES * 8


class Failure(Exception):
    pass


class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL('libcuda.so.1')
        self.ok('cuInit', 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.ok('cuDeviceGet', ctypes.byref(device), 0)
        self.ok('cuDevicePrimaryCtxRetain', ctypes.byref(context), device)
        self.ok('cuCtxSetCurrent', context)

    def ok(self, name, *arguments):
        code = getattr(self.cuda, name)(*arguments)
        if code != 0:
            raise Failure(f'{name} answered {code}')

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.ok('cuMemAlloc_v2', ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def run(self, seeds, room, cubin=None):
        """The rows of each seed's results."""
        module = ctypes.c_void_p()
        self.ok('cuModuleLoadData', ctypes.byref(module), cubin or rp.module(seeds).encode() + b'\0')
        try:
            data = b''.join(rp.inputs(seed) for seed in seeds)
            self.ok('cuMemcpyHtoD_v2', ctypes.c_uint64(room[0]), data, ctypes.c_size_t(len(data)))
            self.ok('cuMemsetD8_v2', ctypes.c_uint64(room[1]), ctypes.c_ubyte(0),
                    ctypes.c_size_t(len(seeds) * PROGRAM_BYTES))
            for at, seed in enumerate(seeds):
                function = ctypes.c_void_p()
                self.ok('cuModuleGetFunction', ctypes.byref(function), module, f'p{seed}'.encode())
                values = (ctypes.c_uint64 * 2)(room[0] + at * INPUT_BYTES, room[1] + at * PROGRAM_BYTES)
                pointers = (ctypes.c_void_p * 2)(ctypes.addressof(values), ctypes.addressof(values) + 8)
                self.ok('cuLaunchKernel', function, rp.BLOCKS, 1, 1, rp.THREADS, 1, 1, 0, None, pointers, None)
            self.ok('cuCtxSynchronize')
            out = ctypes.create_string_buffer(len(seeds) * PROGRAM_BYTES)
            self.ok('cuMemcpyDtoH_v2', out, ctypes.c_uint64(room[1]), ctypes.c_size_t(len(out)))
        finally:
            self.cuda.cuModuleUnload(module)
        whole, row_bytes = memoryview(out), rp.LANES * 8
        rows = []
        for at in range(len(seeds)):
            begins = range(at * PROGRAM_BYTES, (at + 1) * PROGRAM_BYTES, row_bytes)
            rows.append([bytes(whole[begin:begin + row_bytes]) for begin in begins])
        return rows


def single_float(bits):
    return struct.unpack('<f', struct.pack('<I', bits & 0xffffffff))[0]


def flushed(value):
    return math.copysign(0.0, value) if abs(value) < 2.0 ** -126 else value


def exact(name, a, b):
    if name == 'div':
        if math.isnan(a) or math.isnan(b) or (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
            return math.nan
        if b == 0 or math.isinf(a):
            return math.copysign(math.inf, math.copysign(1, a) * math.copysign(1, b))
        return a / b
    if math.isnan(a):
        return math.nan
    if name == 'rcp':
        return math.copysign(math.inf, a) if a == 0 else 1 / a
    if name == 'sqrt':
        return math.nan if a < 0 else math.sqrt(a)
    if name == 'rsqrt':
        return math.nan if a < 0 else math.copysign(math.inf, a) if a == 0 else 1 / math.sqrt(a)
    if name == 'lg2':
        return math.nan if a < 0 else -math.inf if a == 0 else math.inf if math.isinf(a) else math.log2(a)
    if name == 'ex2':
        return 0.0 if a < -1000 else math.inf if a > 1000 else 2.0 ** a
    if name == 'tanh':
        return math.tanh(a)
    if math.isinf(a):
        return math.nan
    return math.sin(a) if name == 'sin' else math.cos(a)


def is_near(name, a_bits, b_bits, found_bits):
    """PTX ISA, the instructions' pages: the greatest errors; and results at infinities and zeros."""
    ftz = name.endswith('.ftz')
    name = name.removesuffix('.ftz')
    a, b, found = single_float(a_bits), single_float(b_bits), single_float(found_bits)
    if ftz:
        a, b = flushed(a), flushed(b)
    if name == 'div' and 2.0 ** 126 < abs(b) < math.inf:
        return True      # div.approx may give 0
    wanted = exact(name, a, b)
    if math.isnan(wanted):
        return math.isnan(found)
    if math.isnan(found):
        return False
    if name in ('sin', 'cos'):
        return abs(found) <= 1.001 if abs(a) > 6 else abs(found - wanted) <= 2.0 ** -20
    largest = 2.0 ** 128 * (1 - 2.0 ** -25)
    relative = {'div': 2.0 ** -22, 'rcp': 2.0 ** -23, 'sqrt': 2.0 ** -22, 'rsqrt': 2.0 ** -22.4, 'lg2': 2.0 ** -21.5,
                'ex2': 2.0 ** -21.5, 'tanh': 2.0 ** -10.9}[name]
    if abs(wanted) >= largest * (1 - relative):
        if math.isinf(found) and (found > 0) == (wanted > 0):
            return True
        if abs(wanted) >= largest * (1 + relative):
            return False
    if wanted == 0:
        return found == 0
    if abs(wanted) < 2.0 ** -126 * (1 + relative) and found == 0 and (ftz or name == 'ex2'):
        return True
    absolute = 2.0 ** -148 if name != 'lg2' else 2.0 ** -21.5
    return abs(found - wanted) <= max(relative * abs(wanted), absolute)


def judged(seed, rows):
    """Rows of approximations: 1 where the result is near enough."""
    if not rp.SINGLES - len(rp.APPROXIMATIONS) <= seed < rp.SINGLES:
        return rows
    _, _, operands, _, name = rp.single(seed)
    words = struct.unpack(f'<{rp.WORDS * rp.LANES}Q', rp.inputs(seed))
    out = []
    for row in range(rp.SINGLE_ROWS):
        indices = [(row * (at + 1) + 5 * at) % rp.WORDS for at in range(2)]
        found = struct.unpack(f'<{rp.LANES}Q', rows[row])
        values = bytearray()
        for lane in range(rp.LANES):
            a, b = [words[i * rp.LANES + lane] >> (32 * (i % 2)) & 0xffffffff for i in indices]
            near = is_near(name, a, b if len(operands) > 1 else 0, found[lane])
            values.append(near)
            if not near and os.environ.get('SHOW_FAR'):
                print(f'{rp.single(seed)[0]} of {a:#x} {b:#x} gave {found[lane]:#x}', file=sys.stderr)
        out.append(bytes(values))
    return out + rows[rp.SINGLE_ROWS:]


def line_of(seed, rows):
    rows = judged(seed, rows)
    if seed < rp.SINGLES:
        rows = rows[:rp.SINGLE_ROWS]
    else:
        # Rows that a program does not use are 0, and end the list; the last one is that of all threads.
        last = max((at for at in range(rp.SHARED_ROW) if any(rows[at])), default=0)
        rows = rows[:last + 1] + [rows[rp.GLOBAL_ROW]]
    digest = hashlib.blake2b(b''.join(rows), digest_size=8).hexdigest()
    return f'{seed} {digest} ' + ''.join(f'{zlib.crc32(row) & 0xffff:04x}' for row in rows)


def results_of(driver, batch, room, cubin=None):
    """(seed, rows) or (seed, the failure) of each program."""
    try:
        return list(zip(batch, driver.run(batch, room, cubin)))
    except Failure as failure:
        if len(batch) == 1:
            return [(batch[0], failure)]
    out = []
    for seed in batch:
        out += results_of(driver, [seed], room, cubin)
    return out


def work(batches, file, deadline, cubins):
    driver = Driver()
    largest = max(len(batch) for batch in batches)
    room = driver.allocate(largest * INPUT_BYTES), driver.allocate(largest * PROGRAM_BYTES)
    ready = [os.path.join(cubins or '', f'{batch[0]:05d}.xz') for batch in batches]
    ready = [name if cubins and os.path.exists(name) else '' for name in ready]
    for batch, name in sorted(zip(batches, ready), key=lambda pair: pair[1] == ''):
        if time.monotonic() > deadline:
            file.write('error of time\n')
            return
        cubin = None      # the driver compiles
        if name:
            with lzma.open(name) as packed:
                cubin = packed.read()
        for seed, rows in results_of(driver, batch, room, cubin):
            file.write(f'{seed} error {rows}\n' if isinstance(rows, Failure) else line_of(seed, rows) + '\n')
        file.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('first', type=int)
    parser.add_argument('end', type=int)
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--batch', type=int, default=50)
    parser.add_argument('--out', default='-')
    parser.add_argument('--limit', type=float, default=100)
    parser.add_argument('--cubins', help='a folder with NNNNN.xz: batches by their first seed, compiled and packed')
    arguments = parser.parse_args()
    os.environ['CUDA_CACHE_DISABLE'] = '1'
    deadline = time.monotonic() + arguments.limit
    seeds = range(arguments.first, arguments.end)
    batches = [list(seeds[at:at + arguments.batch]) for at in range(0, len(seeds), arguments.batch)]
    children, parts = [], []
    for job in range(min(arguments.jobs, len(batches))):
        parts.append(f'{arguments.out}.{job}' if arguments.out != '-' else f'/tmp/random_ptx.{os.getpid()}.{job}')
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with open(parts[-1], 'w', encoding='ascii') as file:
                    work(batches[job::arguments.jobs], file, deadline, arguments.cubins)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    failed = 0
    for child in children:
        failed += os.waitpid(child, 0)[1] != 0
    lines = []
    for part in parts:
        with open(part, encoding='ascii') as file:
            lines += file.read().splitlines()
        os.unlink(part)
    lines.sort(key=lambda line: int(line.split()[0]) if line[0].isdigit() else -1)
    text = ''.join(line + '\n' for line in lines)
    if arguments.out == '-':
        sys.stdout.write(text)
    else:
        with open(arguments.out, 'w', encoding='ascii') as file:
            file.write(text)
    errors = sum(' error ' in line or line.startswith('error') for line in lines)
    print(f'{len(lines)} programs, {errors} errors, {failed} processes failed', file=sys.stderr)
    return 1 if failed or errors else 0


if __name__ == '__main__':
    sys.exit(main())
