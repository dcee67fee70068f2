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

WIDE = r'''
import importlib.util
import os
import sys
import tempfile
import numpy as np
from cuda.bindings import driver
from cuda.core import (Device, DeviceMemoryResource, DeviceMemoryResourceOptions, Host, LegacyPinnedMemoryResource,
                       ManagedMemoryResource, StreamOptions, VirtualMemoryResource, utils)
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.graph import GraphBuilder, GraphDefinition

def worked(result):
    assert int(result[0]) == 0, result
    return result[1:]

device = Device()
device.set_current()
stream, other = (device.create_stream(options=StreamOptions(nonblocking=True)) for _ in range(2))
version = worked(driver.cuDriverGetVersion())[0]

def on_device(bytes):
    return device.allocate(bytes, stream=stream)

def content(buffer):
    got = np.empty(buffer.size, dtype=np.uint8)
    worked(driver.cuMemcpyDtoHAsync(got.ctypes.data, int(buffer.handle), buffer.size, stream.handle))
    stream.sync()
    return got

def events():
    first = stream.record()
    first.sync()
    other.wait(first)
    other.wait(stream)
    assert first.is_done and stream.is_nonblocking and stream.context == device.context

def buffers():
    a, b = on_device(256), on_device(256)
    a.fill(7, stream=stream)
    a.copy_to(b, stream=stream)
    assert (content(b) == 7).all()
    a.fill(np.uint32(0x01020304), stream=stream)
    b.copy_from(a, stream=stream)
    assert (content(a) == content(b)).all() and content(b)[3] == 1
    pinned = LegacyPinnedMemoryResource().allocate(256, stream=stream)
    np.from_dlpack(pinned)[:] = 5
    pinned.copy_to(a, stream=stream)
    assert (content(a) == 5).all()

def pools():
    pool = DeviceMemoryResource(device, options=DeviceMemoryResourceOptions(max_size=1 << 25))
    taken = pool.allocate(4096, stream=stream)
    assert pool.attributes.used_mem_current >= 4096
    taken.close(stream)
    stream.sync()
    pool.close()

def managed():  # needs a driver of CUDA 13
    pool = ManagedMemoryResource()
    both = [pool.allocate(4096, stream=stream) for _ in range(2)]
    both[0].fill(3, stream=stream)
    stream.sync()
    assert np.from_dlpack(both[0])[100] == 3
    utils.prefetch_batch(stream, both, [device, Host()])
    utils.discard_prefetch_batch(stream, both, device)
    utils.discard_batch(stream, both)
    stream.sync()

def virtual():
    mapped = VirtualMemoryResource(device).allocate(1 << 21, stream=stream)
    mapped.fill(1, stream=stream)
    assert (content(mapped) == 1).all()
    mapped.close(stream)

def graphs():
    a, b, called = on_device(64), on_device(64), []
    stream.sync()
    graph, event = GraphDefinition(), device.create_event()
    fill = graph.memset(a, 9, 64)
    copy = fill.memcpy(b, a, 64)
    host = copy.callback(lambda: called.append(1))
    record = host.record(event)
    child = GraphDefinition()
    child.memset(a, 4, 32)
    graph.join(fill, record).embed(child)
    assert len(graph.nodes()) == 6 and copy.size == 64 and copy.src == int(a.handle) and record.event == event
    run = graph.instantiate()
    run.launch(stream)
    assert (content(b) == 9).all() and called == [1] and content(a)[31] == 4 and content(a)[32] == 9
    fill.update(value=8)
    copy.update(size=32)
    run = graph.instantiate()
    run.launch(stream)
    assert content(b)[31] == 8 and content(b)[32] == 9
    run[fill].disable()
    assert not run[fill].is_enabled
    run.launch(stream)
    assert content(b)[31] == 4  # what the child graph left
    run[fill].enable()
    run[fill].update(dst=a, value=6, width=64)
    run.launch(stream)
    assert content(b)[0] == 6
    run.update(graph)
    host.destroy()
    with tempfile.TemporaryDirectory() as folder:
        graph.debug_dot_print(os.path.join(folder, 'graph.dot'))

def memory_of_graphs():
    graph = GraphDefinition()
    taken = graph.allocate(1024)
    taken.memset(taken.dptr, 1, 1024).deallocate(taken.dptr)
    graph.instantiate().launch(stream)
    stream.sync()

def conditions():  # else and switch need a driver of CUDA 12.8
    a = on_device(64)
    graph = GraphDefinition()
    both = graph.if_else(graph.create_condition(default_value=1))
    both.then.memset(a, 3, 64)
    both.else_.memset(a, 4, 64)
    graph.instantiate().launch(stream)
    assert content(a)[0] == 3
    graph = GraphDefinition()
    for number, branch in enumerate(graph.switch(graph.create_condition(default_value=2), 3).branches):
        branch.memset(a, 10 + number, 64)
    graph.instantiate().launch(stream)
    assert content(a)[0] == 12

def captures():
    a, b = on_device(64), on_device(64)
    stream.sync()
    builder = device.create_graph_builder().begin_building()
    a.fill(2, stream=builder)
    left, right = builder.split(2)
    a.copy_to(b, stream=left)
    right.callback(lambda: None)
    builder = GraphBuilder.join(left, right)
    builder.end_building()
    builder.complete().launch(stream)
    assert (content(b) == 2).all()

def batches():  # needs a driver of CUDA 13
    a, b, c, d = (on_device(64) for _ in range(4))
    a.fill(1, stream=stream)
    c.fill(2, stream=stream)
    utils.copy_batch(stream, [a, c], [b, d])
    assert (content(b) == 1).all() and (content(d) == 2).all()

def words():
    pinned = LegacyPinnedMemoryResource().allocate(64, stream=stream)
    at, values = int(pinned.handle), np.from_dlpack(pinned).view(np.uint32)
    values[:] = 0
    worked(driver.cuStreamWaitValue32(stream.handle, at, 5, 0))
    worked(driver.cuStreamWriteValue32(stream.handle, at + 4, 6, 0))
    assert int(driver.cuStreamQuery(stream.handle)[0]) == 600
    values[0] = 5
    stream.sync()
    assert values[1] == 6

def arrays():  # of cuda.core from 1.1 on
    from cuda.core.texture import MipmappedArrayOptions, OpaqueArrayOptions
    volume = device.create_opaque_array(OpaqueArrayOptions((8, 4, 3), 'uint16', 2))
    values, got = np.arange(192, dtype=np.uint16), np.zeros(192, dtype=np.uint16)
    volume.copy_from(values, stream=stream)
    volume.copy_to(got, stream=stream)
    stream.sync()
    assert (got == values).all() and volume.size_bytes == values.nbytes and volume.device == device
    a, b = on_device(values.nbytes), on_device(values.nbytes)
    a.fill(3, stream=stream)
    stream.sync()
    builder = device.create_graph_builder().begin_building()
    volume.copy_from(a, stream=builder)
    volume.copy_to(b, stream=builder)
    builder.end_building()
    builder.complete().launch(stream)
    assert (content(b) == 3).all()
    levels = device.create_mipmapped_array(MipmappedArrayOptions((64, 32), 'uint8', 4, 4))
    level = levels.get_level(2)
    assert level.shape == (16, 8) and level.num_channels == 4
    levels.close()
    part = np.arange(512, dtype=np.uint16).view(np.uint8)[:512].copy()
    level.copy_from(part, stream=stream)  # the level keeps the array
    back = np.zeros_like(part)
    level.copy_to(back, stream=stream)
    stream.sync()
    assert (back == part).all()
    try:
        device.create_opaque_array(OpaqueArrayOptions((1 << 20, 1), 'uint8', 1))
        raise AssertionError('an array that is too wide')
    except CUDAError as error:
        assert 'CUDA_ERROR_INVALID_VALUE' in str(error)

def textures():  # as arrays()
    from cuda.core.texture import (MipmappedArrayOptions, OpaqueArrayOptions, ResourceDescriptor, TextureObjectOptions)
    array = device.create_opaque_array(OpaqueArrayOptions((32, 16), 'float32', 1, is_surface_load_store=True))
    of_array = ResourceDescriptor.from_opaque_array(array)
    made = [device.create_texture_object(resource=of_array, options=TextureObjectOptions(
        address_mode=('wrap', 'clamp'), filter_mode='linear', normalized_coords=True))]
    levels = device.create_mipmapped_array(MipmappedArrayOptions((32, 32), 'float32', 1, 3))
    made.append(device.create_texture_object(
        resource=ResourceDescriptor.from_mipmapped_array(levels),
        options=TextureObjectOptions(normalized_coords=True, max_mipmap_level_clamp=2.0)))
    memory = on_device(64 * 256)
    made.append(device.create_texture_object(
        resource=ResourceDescriptor.from_linear(memory, format='uint32', num_channels=1)))
    made.append(device.create_texture_object(resource=ResourceDescriptor.from_pitch2d(
        memory, format='uint8', num_channels=4, width=32, height=64, pitch_bytes=256)))
    made.append(device.create_surface_object(resource=of_array))
    assert all(one.handle != 0 for one in made) and len({one.handle for one in made}) == 5
    description = worked(driver.cuTexObjectGetResourceDesc(made[0].handle))[0]
    assert int(description.res.array.hArray) == array.handle
    for one in made:
        one.close()

def graphics():
    from cuda.core import GraphicsResource
    for register in (lambda: GraphicsResource.from_gl_buffer(1), lambda: GraphicsResource.from_gl_image(1, 0x0DE1)):
        try:
            register()
            raise AssertionError('a resource of OpenGL')
        except CUDAError as error:
            assert 'CUDA_ERROR_OPERATING_SYSTEM' in str(error), error  # as a driver 580 on an H200

needed = {managed: 13000, batches: 13000, conditions: 12080}
parts = [events, buffers, pools, managed, virtual, graphs, memory_of_graphs, conditions, captures, batches, words]
if importlib.util.find_spec('cuda.core.texture'):
    parts += [arrays, textures, graphics]
else:
    print('arrays, textures and graphics need a newer cuda.core')
for part in parts:
    if version < needed.get(part, 0):
        continue
    try:
        part()
    except BaseException:
        print(part.__name__, 'failed', file=sys.stderr, flush=True)
        raise
    print(part.__name__, flush=True)
'''

SURFACES = r'''
import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
from cuda.core.texture import OpaqueArrayOptions, ResourceDescriptor

CODE = """
extern "C" __global__ void twice(unsigned long long from, unsigned long long to, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= width + 8) return;
    float value;
    surf2Dread(&value, from, x * 4, y, cudaBoundaryModeClamp);
    surf2Dwrite(2 * value, to, x * 4, y, cudaBoundaryModeZero);
}
"""
device = Device()
device.set_current()
stream = device.create_stream()
target = 'compute_%d%d' % tuple(device.compute_capability)
module = Program(CODE, code_type='c++', options=ProgramOptions(arch=target)).compile('ptx')
width, height = 100, 7
arrays = [device.create_opaque_array(OpaqueArrayOptions((width, height), 'float32', 1, is_surface_load_store=True))
          for _ in range(2)]
surfaces = [device.create_surface_object(resource=ResourceDescriptor.from_opaque_array(one)) for one in arrays]
values, got = np.arange(width * height, dtype=np.float32), np.empty(width * height, dtype=np.float32)
arrays[0].copy_from(values, stream=stream)
launch(stream, LaunchConfig(grid=(2, height), block=64), module.get_kernel('twice'), np.uint64(surfaces[0].handle),
       np.uint64(surfaces[1].handle), np.int32(width), np.int32(height))
arrays[1].copy_to(got, stream=stream)
stream.sync()
assert np.array_equal(got, 2 * values), got[:8]
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

    def test_kernels_reach_surfaces(self):
        if run('import cuda.core.texture').returncode != 0:
            self.skipTest('this cuda.core has no surfaces')
        self.assertIn('right', self.right(run(SURFACES)).stdout)

    def test_cuda_core_runs_streams_memory_and_graphs(self):
        done = self.right(run(WIDE))
        self.assertIn('graphs', done.stdout)
        self.assertIn('words', done.stdout)
        self.assertIn('graphics', done.stdout)


if __name__ == '__main__':
    if run('import cuda.core, numpy').returncode != 0:
        print('cuda.core is not installed')
        sys.exit(77)
    unittest.main()
