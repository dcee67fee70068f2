#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyCUDA on the simulated machine that ISTHMUS_SIM names, unchanged: kernels from PTX, launches as before CUDA 4.

From PyPI, built with a toolkit's header and stub: `pip install pycuda` (without cuRAND, whose library needs the CUDA
runtime library: `configure.py --no-cuda-enable-curand`). ISTHMUS_PYCUDA_PYTHON, else ISTHMUS_CLIENTS_PYTHON, names the
interpreter that has it; without it the tests are skipped.

usage: pycuda_test.py
"""
import os
import subprocess
import sys
import unittest

PYTHON = os.environ.get('ISTHMUS_PYCUDA_PYTHON') or os.environ.get('ISTHMUS_CLIENTS_PYTHON') or sys.executable

PROGRAM = r'''
import numpy as np
import pycuda.driver as cuda
cuda.init()
context = cuda.Device(0).make_context()

PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.const .align 4 .u32 factor = 3;
.visible .entry scale(.param .u64 data, .param .u32 count, .param .f32 added)
{
    .reg .b64 %d, %at;
    .reg .b32 %i, %n, %t, %s;
    .reg .f32 %v, %a, %f;
    .reg .pred %p;
    mov.u32 %i, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %t, %tid.x;
    mad.lo.u32 %i, %i, %n, %t;
    ld.param.u32 %n, [count];
    setp.ge.u32 %p, %i, %n;
    @%p ret;
    ld.param.u64 %d, [data];
    ld.param.f32 %a, [added];
    mul.wide.u32 %at, %i, 4;
    add.u64 %d, %d, %at;
    ld.const.u32 %s, [factor];
    cvt.rn.f32.u32 %f, %s;
    ld.global.f32 %v, [%d];
    fma.rn.f32 %v, %v, %f, %a;
    st.global.f32 [%d], %v;
    ret;
}
"""
module = cuda.module_from_buffer(PTX)
scale = module.get_function('scale')
assert scale.const_size_bytes == 4 and scale.local_size_bytes == 0, (scale.const_size_bytes, scale.local_size_bytes)

data = np.arange(1000, dtype=np.float32)
scale(cuda.InOut(data), np.uint32(1000), np.float32(1), block=(128, 1, 1), grid=(8, 1))
assert np.array_equal(data, np.arange(1000) * 3 + 1)
print('launches with arguments')

scale.prepare('PIf')
there = cuda.to_device(data)
scale.prepared_call((8, 1), (128, 1, 1), there, 1000, 0.5)
assert np.array_equal(cuda.from_device_like(there, data), data * 3 + np.float32(0.5))
print('launches prepared')

address, size = module.get_global('factor')
cuda.memcpy_htod(address, np.uint32(10))
stream, start, end = cuda.Stream(), cuda.Event(), cuda.Event()
pinned = cuda.pagelocked_empty(1000, np.float32)
pinned[:] = 2
cuda.memcpy_htod_async(there, pinned, stream)
start.record(stream)
scale.prepared_async_call((8, 1), (128, 1, 1), stream, there, 1000, 0)
end.record(stream)
cuda.memcpy_dtoh_async(pinned, there, stream)
stream.synchronize()
assert (pinned == 20).all() and end.time_since(start) >= 0
print('works in streams')

try:
    scale(cuda.In(data), np.uint32(1), np.float32(1), block=(4096, 1, 1))
    raise SystemExit('a block of 4096 threads was taken')
except cuda.LogicError as error:
    assert 'cuFuncSetBlockShape' in str(error) or 'cuLaunchKernel' in str(error), error
print('refuses')
there.free()
context.detach()
'''

WANTED = ['launches with arguments', 'launches prepared', 'works in streams', 'refuses']


class PyCuda(unittest.TestCase):
    def test_pycuda_loads_and_runs_kernels(self):
        done = subprocess.run([PYTHON, '-c', PROGRAM], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in WANTED:
            self.assertIn(line, done.stdout)
        self.assertEqual(done.stderr, '')


if __name__ == '__main__':
    if subprocess.run([PYTHON, '-c', 'import pycuda.driver'], capture_output=True, check=False).returncode != 0:
        print('pycuda is not installed: skipped')
        sys.exit(77)
    unittest.main(verbosity=2)
