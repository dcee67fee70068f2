# SPDX-License-Identifier: Apache-2.0
"""Foreign code: what other libraries do with a scope's pointer and stream, by the driver's own functions. On the CPU device
it is host memory."""
import ctypes
import os

import isthmus


def driver():
    path = os.environ.get('ISTHMUS_TEST_DRIVER') or (
        'libcuda.so.1' if os.environ.get('ISTHMUS_TEST_MACHINE') == 'here' else str(isthmus.simulator.library()))
    return ctypes.CDLL(path)


def current(device):
    """Makes the primary context current on this thread, as the CUDA runtime library does."""
    library, context = driver(), ctypes.c_void_p()
    assert library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device.ordinal) == 0
    assert library.cuCtxSetCurrent(context) == 0


def write_bytes(scope, value):
    """Sets every byte, on the scope's stream."""
    if scope.buffer.home.is_cpu:
        ctypes.memset(scope.pointer, value, scope.nbytes)
        return
    current(scope.buffer.home)
    assert driver().cuMemsetD8Async(ctypes.c_uint64(scope.pointer), ctypes.c_ubyte(value), ctypes.c_size_t(scope.nbytes),
                                    ctypes.c_void_p(scope.stream_handle)) == 0


def read_bytes(scope):
    """What work on the scope's stream reads."""
    if scope.buffer.home.is_cpu:
        return ctypes.string_at(scope.pointer, scope.nbytes)
    current(scope.buffer.home)
    memory, stream = ctypes.create_string_buffer(scope.nbytes), ctypes.c_void_p(scope.stream_handle)
    assert driver().cuMemcpyDtoHAsync_v2(memory, ctypes.c_uint64(scope.pointer), ctypes.c_size_t(scope.nbytes), stream) == 0
    assert driver().cuStreamSynchronize(stream) == 0
    return memory.raw


def new_stream(device):
    """A CUstream of other code."""
    current(device)
    made = ctypes.c_void_p()
    assert driver().cuStreamCreate(ctypes.byref(made), 1) == 0
    return made.value


def end_stream(stream):
    assert driver().cuStreamDestroy_v2(ctypes.c_void_p(stream)) == 0
