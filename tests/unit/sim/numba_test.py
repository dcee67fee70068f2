#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Numba's kernels (@cuda.jit) on the simulated machine that ISTHMUS_SIM names, unchanged.

Numba compiles with NVVM to PTX. It must then link by the driver, as it does where nvJitLink is not installed: nvJitLink
makes machine code, which nothing runs here. From PyPI: `pip install numba-cuda numpy "nvidia-nvvm==13.0.*"
"nvidia-cuda-nvrtc==13.0.*"`; for Orin's driver `"cuda-bindings==12.9.*" "nvidia-cuda-nvcc-cu12==12.6.*"
"nvidia-cuda-nvrtc-cu12==12.6.*"`. ISTHMUS_NUMBA_PYTHON, else ISTHMUS_CLIENTS_PYTHON, names the interpreter that has it;
without it the tests are skipped.

usage: numba_test.py NVJITLINK
NVJITLINK: a library with nvJitLink's name and no functions, so that one of a toolkit is not found.
"""
import os
import subprocess
import sys
import unittest

PYTHON = os.environ.get('ISTHMUS_NUMBA_PYTHON') or os.environ.get('ISTHMUS_CLIENTS_PYTHON') or sys.executable
NVJITLINK = sys.argv.pop(1) if len(sys.argv) > 1 and os.path.exists(sys.argv[1]) else ''

PROGRAM = r'''
import math
import sys
import warnings
warnings.simplefilter('ignore')
import numba
import numpy as np
from numba import cuda, float32, int32

def adds_vectors():
    @cuda.jit
    def add(x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i] + y[i]
    for kind in (np.float32, np.float64, np.int64, np.uint8):
        x, y = np.arange(1000).astype(kind), np.full(1000, 3).astype(kind)
        out = cuda.device_array_like(x)
        add[4, 256](cuda.to_device(x), cuda.to_device(y), out)
        assert np.array_equal(out.copy_to_host(), x + y), kind

def reduces_in_shared_memory():
    @cuda.jit
    def total(x, out):
        part = cuda.shared.array(128, float32)
        at = cuda.threadIdx.x
        mine = float32(0)
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            mine += x[i]
        part[at] = mine
        cuda.syncthreads()
        half = 64
        while half > 0:
            if at < half:
                part[at] += part[at + half]
            cuda.syncthreads()
            half //= 2
        if at == 0:
            cuda.atomic.add(out, 0, part[0])
    out = cuda.to_device(np.zeros(1, dtype=np.float32))
    total[3, 128](cuda.to_device(np.arange(2000, dtype=np.float32)), out)
    assert out.copy_to_host()[0] == 1999000, out.copy_to_host()
    assert cuda.reduce(lambda a, b: a + b)(np.arange(1000, dtype=np.int64)) == 499500

def multiplies_matrices():
    @cuda.jit
    def multiply(a, b, c):
        left, right = cuda.shared.array((8, 8), float32), cuda.shared.array((8, 8), float32)
        row, column = cuda.grid(2)
        ty, tx = cuda.threadIdx.x, cuda.threadIdx.y
        value = float32(0)
        for tile in range(a.shape[1] // 8):
            left[ty, tx] = a[row, tile * 8 + tx]
            right[ty, tx] = b[tile * 8 + ty, column]
            cuda.syncthreads()
            for k in range(8):
                value += left[ty, k] * right[k, tx]
            cuda.syncthreads()
        c[row, column] = value
    a, b = (np.arange(16 * 24, dtype=np.float32) % 7).reshape(16, 24), (np.arange(24 * 16) % 5).reshape(24, 16)
    b = b.astype(np.float32)
    c = cuda.device_array((16, 16), np.float32)
    multiply[(2, 2), (8, 8)](a, b, c)
    assert np.array_equal(c.copy_to_host(), a @ b)

def updates_atomically():
    @cuda.jit
    def update(counts, extremes, real, swapped):
        i = cuda.grid(1)
        cuda.atomic.add(counts, i % 4, 1)
        cuda.atomic.max(extremes, 0, i)
        cuda.atomic.min(extremes, 1, -i)
        cuda.atomic.sub(extremes, 2, 1)
        cuda.atomic.xor(extremes, 3, 1 << (i % 5))
        cuda.atomic.add(real, 0, 0.5)
        cuda.atomic.max(real, 1, float(i))
        cuda.atomic.cas(swapped, 0, 0, i + 1)
    counts, extremes = cuda.to_device(np.zeros(4, dtype=np.int32)), cuda.to_device(np.zeros(4, dtype=np.int32))
    real, swapped = cuda.to_device(np.zeros(2)), cuda.to_device(np.zeros(1, dtype=np.int32))
    update[4, 64](counts, extremes, real, swapped)
    assert (counts.copy_to_host() == 64).all()
    assert list(extremes.copy_to_host())[:3] == [255, -255, -256]
    assert list(real.copy_to_host()) == [128, 255] and 1 <= swapped.copy_to_host()[0] <= 256

def shuffles_and_votes():
    @cuda.jit
    def warp(out):
        lane = cuda.laneid
        value = lane
        for step in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(0xffffffff, value, step)
        first = cuda.shfl_sync(0xffffffff, value, 0)
        out[lane] = first + cuda.popc(cuda.ballot_sync(0xffffffff, lane % 2 == 0)) + cuda.clz(int32(1))
    out = cuda.device_array(32, np.int32)
    warp[1, 32](out)
    assert (out.copy_to_host() == 496 + 16 + 31).all()

def calls_functions_of_libdevice():
    @cuda.jit(device=True)
    def both(x):
        return math.sin(x) + math.exp(-x)
    @cuda.jit
    def curve(x, out):
        i = cuda.grid(1)
        local = cuda.local.array(4, numba.float64)
        for k in range(4):
            local[k] = both(x[i] + k)
        out[i] = local[i % 4] + math.sqrt(x[i]) + math.pow(x[i], 1.5) + math.erf(x[i])
    x = np.linspace(0.1, 4, 64)
    out = np.empty(64)
    curve[1, 64](x, out)
    k = np.arange(64) % 4
    wanted = np.sin(x + k) + np.exp(-x - k) + np.sqrt(x) + x ** 1.5 + np.array([math.erf(v) for v in x])
    assert np.allclose(out, wanted, rtol=1e-12), np.abs(out - wanted).max()

def works_in_streams():
    @cuda.jit
    def scale(x, by):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= by
    stream, start, end = cuda.stream(), cuda.event(), cuda.event()
    pinned = cuda.pinned_array(100, dtype=np.float32)
    pinned[:] = 2
    start.record(stream)
    there = cuda.to_device(pinned, stream=stream)
    scale[1, 128, stream](there, 3)
    there.copy_to_host(pinned, stream=stream)
    end.record(stream)
    end.synchronize()
    assert (pinned == 6).all() and start.elapsed_time(end) >= 0
    mapped = cuda.mapped_array(100, dtype=np.float32)
    mapped[:] = 1
    scale[1, 128, stream](mapped, 5)
    stream.synchronize()
    assert (mapped == 5).all()

def vectorizes():
    @numba.vectorize(['float32(float32, float32)'], target='cuda')
    def plus(a, b):
        return a + b
    x = np.arange(100, dtype=np.float32)
    assert np.array_equal(plus(x, x), 2 * x)

def leaves_its_array():
    @cuda.jit
    def beyond(x):
        x[cuda.grid(1) + (1 << 42)] = 1
    beyond[1, 32](cuda.to_device(np.zeros(4, dtype=np.float32)))
    cuda.synchronize()

for name in sys.argv[1:]:
    globals()[name]()
    print(name, flush=True)
'''

PARTS = ['adds_vectors', 'reduces_in_shared_memory', 'multiplies_matrices', 'updates_atomically', 'shuffles_and_votes',
         'calls_functions_of_libdevice', 'works_in_streams', 'vectorizes']


def run(code, *words):
    environment = dict(os.environ)
    if NVJITLINK:
        environment['LD_PRELOAD'] = NVJITLINK
    return subprocess.run([PYTHON, '-c', code, *words], capture_output=True, text=True, timeout=300, check=False,
                          env=environment)


class Numba(unittest.TestCase):
    def right(self, done):
        if 'UNSUPPORTED_PTX_VERSION' in done.stderr:
            self.skipTest("the compiler's PTX is newer than the driver of this machine")
        if 'libnvvm' in done.stderr and 'not found' in done.stderr.lower():
            self.skipTest('NVVM is not installed')
        return done

    def test_numba_compiles_and_runs_kernels(self):
        done = self.right(run(PROGRAM, *PARTS))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split(), PARTS)

    def test_a_kernel_that_leaves_its_array_is_named(self):
        done = self.right(run(PROGRAM, 'leaves_its_array'))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('ILLEGAL_ADDRESS', done.stderr)
        self.assertRegex(done.stderr, r'kernel \S*beyond\S*, PTX line \d+')


if __name__ == '__main__':
    if run('import numba.cuda, numpy').returncode != 0:
        print('Numba is not installed')
        sys.exit(77)
    unittest.main()
