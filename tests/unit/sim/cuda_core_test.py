#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own Python package cuda.core on the simulated machine that ISTHMUS_SIM names: kernels that NVRTC compiled.

It reaches the driver as anybody's program does. It comes from PyPI: `pip install "cuda-core[cu13]" numpy
"nvidia-cuda-nvrtc==13.0.*"`. ISTHMUS_CLIENTS_PYTHON names the interpreter that has it; without it the tests are skipped.

usage: cuda_core_test.py
"""
import os
import subprocess
import sys
import unittest

PYTHON = os.environ.get('ISTHMUS_CLIENTS_PYTHON', sys.executable)

PROGRAM = r'''
import sys
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

CODE = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned long n) {
    const unsigned long i = blockIdx.x * (unsigned long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void sum(const float* x, float* out, unsigned long n) {
    __shared__ float part[256];
    float mine = 0;
    for (unsigned long i = threadIdx.x; i < n; i += 256) mine += x[i];
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, part[0]);
}
extern "C" __global__ void beyond(float* x, unsigned long n) { x[n + threadIdx.x] = 1; }
"""
def worked(result):
    assert int(result[0]) == 0, result
    return result[1:]

device = Device()
device.set_current()
stream = device.create_stream()
target = 'compute_%d%d' % tuple(device.compute_capability)
module = Program(CODE, code_type='c++', options=ProgramOptions(arch=target)).compile('ptx')
count = 10000
x, y = np.arange(count, dtype=np.float32), np.ones(count, dtype=np.float32)
on_device = [device.allocate(bytes, stream=stream) for bytes in (4 * count, 4 * count, 4)]
there = [int(memory.handle) for memory in on_device]
for address, values in zip(there, (x, y)):
    worked(driver.cuMemcpyHtoDAsync(address, values.ctypes.data, values.nbytes, stream.handle))
worked(driver.cuMemsetD32Async(there[2], 0, 1, stream.handle))
blocks = LaunchConfig(grid=(count + 255) // 256, block=256)
launch(stream, blocks, module.get_kernel('saxpy'), np.float32(2), on_device[0], on_device[1], np.uint64(count))
launch(stream, LaunchConfig(grid=1, block=256), module.get_kernel('sum'), on_device[1], on_device[2], np.uint64(count))
got, total = np.empty(count, dtype=np.float32), np.empty(1, dtype=np.float32)
worked(driver.cuMemcpyDtoHAsync(got.ctypes.data, there[1], got.nbytes, stream.handle))
worked(driver.cuMemcpyDtoHAsync(total.ctypes.data, there[2], 4, stream.handle))
stream.sync()
assert np.array_equal(got, 2 * x + 1) and total[0] == 100000000, (got[:4], total)
if sys.argv[1] == 'beyond':
    launch(stream, LaunchConfig(grid=1, block=32), module.get_kernel('beyond'), on_device[1], np.uint64(1 << 20))
    print('answer', int(driver.cuStreamSynchronize(stream.handle)[0]), flush=True)
    import os
    os._exit(0)
print('right')
'''

def run(code, *words):
    return subprocess.run([PYTHON, '-c', code, *words], capture_output=True, text=True, timeout=120, check=False)


class CudaCore(unittest.TestCase):
    def right(self, done):
        if 'UNSUPPORTED_PTX_VERSION' in done.stderr:
            self.skipTest("the compiler's PTX is newer than the driver of this machine")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_cuda_core_compiles_and_runs_kernels(self):
        self.assertIn('right', self.right(run(PROGRAM, 'all')).stdout)

    def test_a_kernel_that_leaves_its_allocation_is_named(self):
        done = self.right(run(PROGRAM, 'beyond'))
        self.assertIn('answer 700', done.stdout)
        self.assertIn('kernel beyond, PTX line', done.stderr)


if __name__ == '__main__':
    if run('import cuda.core, numpy').returncode != 0:
        print('cuda.core is not installed')
        sys.exit(77)
    unittest.main()
