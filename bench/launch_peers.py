#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures launches of a kernel with 0, 4, 16 and 64 array arguments from CuPy, PyTorch and Triton.

They are peers of launch_bench.cpp. Prints nanoseconds per launch, as medians over repetitions.

    python3 bench/launch_peers.py [--repetitions N] [--launches N]

Every launch is made from Python, which takes most of its time. cuLaunchKernel through cuda-python, with arguments packed
beforehand, shows the share of the language alone; it is left out where cuda-python is not installed.
"""
import argparse
import statistics
import sys
import time

ARGUMENTS = [0, 4, 16, 64]
ITEMS = 64


def source(count):
    """A kernel that uses its last argument, so that the compiler keeps all of them."""
    parameters = ', '.join(f'int* a{i}' for i in range(count))
    body = f'a{count - 1}[threadIdx.x] += 1;' if count else ''
    return f'extern "C" __global__ void k{count}({parameters}) {{ {body} }}'


def cupy_ways():
    import cupy
    stream = cupy.cuda.Stream(non_blocking=True)
    for count in ARGUMENTS:
        kernel = cupy.RawKernel(source(count), f'k{count}')
        arrays = tuple(cupy.zeros(ITEMS, dtype=cupy.int32) for _ in range(count))

        def launch(kernel=kernel, arrays=arrays):
            with stream:
                kernel((1,), (ITEMS,), arrays)

        def launch_inside(kernel=kernel, arrays=arrays):
            kernel((1,), (ITEMS,), arrays)
        yield f'CuPy {cupy.__version__} RawKernel in a stream scope/{count}', launch, stream.synchronize
        yield f'CuPy {cupy.__version__} RawKernel/{count}', launch_inside, cupy.cuda.get_current_stream().synchronize


def torch_ways():
    import torch
    compile_kernel = getattr(torch.cuda, '_compile_kernel', None)
    for count in ARGUMENTS:
        if compile_kernel is None:
            break
        kernel = compile_kernel(source(count), f'k{count}')
        arrays = [torch.zeros(ITEMS, dtype=torch.int32, device='cuda') for _ in range(count)]

        def launch(kernel=kernel, arrays=arrays):
            kernel((1, 1, 1), (ITEMS, 1, 1), arrays)
        yield f'PyTorch {torch.__version__} compiled kernel/{count}', launch, torch.cuda.synchronize
    one = torch.zeros(ITEMS, dtype=torch.int32, device='cuda')
    yield f'PyTorch {torch.__version__} add_ in place/1', lambda: one.add_(1), torch.cuda.synchronize


def triton_ways():
    import importlib.util
    import tempfile
    import torch
    import triton
    for count in ARGUMENTS:
        # Triton reads a kernel's source from a file.
        parameters = ', '.join(f'a{i}' for i in range(count))
        last = f'a{count - 1}'
        body = f'    at = tl.arange(0, {ITEMS})\n    tl.store({last} + at, tl.load({last} + at) + 1)' if count else \
            '    pass'
        with tempfile.NamedTemporaryFile('w', suffix='.py', delete=False) as file:
            file.write('import triton\nimport triton.language as tl\n\n\n'
                       f'@triton.jit\ndef kernel({parameters}):\n{body}\n')
        spec = importlib.util.spec_from_file_location(f'kernel_{count}', file.name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        arrays = [torch.zeros(ITEMS, dtype=torch.int32, device='cuda') for _ in range(count)]
        grid = module.kernel[(1,)]
        yield f'Triton {triton.__version__}/{count}', lambda grid=grid, arrays=arrays: grid(*arrays), \
            torch.cuda.synchronize


def driver_ways():
    """cuLaunchKernel itself, through cuda-python."""
    import ctypes
    from cuda.bindings import driver, nvrtc

    def good(answer):
        if int(answer[0]) != 0:
            raise RuntimeError(f'the driver answered {answer[0]}')
        return answer[1] if len(answer) == 2 else answer[1:]
    good(driver.cuInit(0) + (None,))
    device = good(driver.cuDeviceGet(0))
    driver.cuCtxSetCurrent(good(driver.cuDevicePrimaryCtxRetain(device)))
    major = good(driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                             device))
    stream = good(driver.cuStreamCreate(1))
    for count in ARGUMENTS:
        program = good(nvrtc.nvrtcCreateProgram(source(count).encode(), b'k.cu', 0, None, None))
        nvrtc.nvrtcCompileProgram(program, 1, [f'--gpu-architecture=compute_{major}0'.encode()])
        ptx = b' ' * good(nvrtc.nvrtcGetPTXSize(program))
        nvrtc.nvrtcGetPTX(program, ptx)
        function = good(driver.cuModuleGetFunction(good(driver.cuModuleLoadData(ptx)), f'k{count}'.encode()))
        values = (ctypes.c_void_p * max(count, 1))(*[int(good(driver.cuMemAlloc(ITEMS * 4))) for _ in range(count)])
        pointers = (ctypes.c_void_p * max(count, 1))(*[ctypes.addressof(values) + 8 * i for i in range(count)])
        address = ctypes.addressof(pointers)
        yield f'cuda-python cuLaunchKernel/{count}', \
            lambda f=function, a=address, keep=(values, pointers): driver.cuLaunchKernel(
                f, 1, 1, 1, ITEMS, 1, 1, 0, stream, a, 0), lambda: driver.cuStreamSynchronize(stream)


def measure(launch, settle, launches, repetitions):
    for _ in range(16):
        launch()
    settle()
    taken = []
    for _ in range(repetitions):
        begin = time.perf_counter_ns()
        for _ in range(launches):
            launch()
        taken.append((time.perf_counter_ns() - begin) / launches)
        settle()  # the driver's queue must not fill, or its back-pressure is measured
    return statistics.median(taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--repetitions', type=int, default=15)
    parser.add_argument('--launches', type=int, default=512)
    options = parser.parse_args()
    for ways in (driver_ways, cupy_ways, torch_ways, triton_ways):
        try:
            for name, launch, settle in ways():
                taken = measure(launch, settle, options.launches, options.repetitions)
                print(f'{name}: {taken:.0f} ns', flush=True)
        except Exception as error:  # a peer that is missing or has changed is no error
            print(f'skipped: {ways.__name__}: {type(error).__name__}: {error}', file=sys.stderr)
    return 0


if __name__ == '__main__':
    sys.exit(main())
