#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on shared buffers of isthmus, by hand on a machine with a GPU and PyTorch.

usage: torch_native.py BUILD_DIR        (after `ninja -C BUILD_DIR tests/native/libtorch_native.so`)

For each kind of memory the host writes, PyTorch computes on the buffer in a native scope, on the stream that isthmus
made, and the host reads the result.
"""
import ctypes
import sys

import numpy
import torch

COUNT = 1 << 20


class OnDevice:
    """Describes device memory as other libraries read it (__cuda_array_interface__, version 3)."""

    def __init__(self, address, count, stream):
        self.__cuda_array_interface__ = {'shape': (count,), 'typestr': '<f4', 'data': (address, False), 'version': 3,
                                         'stream': stream}


def main():
    library = ctypes.CDLL(sys.argv[1] + '/tests/native/libtorch_native.so')
    library.session_open.restype = ctypes.c_void_p
    library.session_open.argtypes = [ctypes.c_size_t, ctypes.c_int]
    library.session_write.argtypes = [ctypes.c_void_p, ctypes.c_float, ctypes.c_float]
    library.session_read.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.session_begin.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_void_p)]
    for name in ('session_close', 'session_device', 'session_end'):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    torch.cuda.init()
    for kind in range(-1, 12):
        session = library.session_open(COUNT, kind)
        if not session:
            continue  # this machine has no shared buffer of the kind: printed above
        gpu = library.session_device(session)
        for turn in range(3):
            assert library.session_write(session, float(turn), 1.0) == 0
            cu_stream, data = ctypes.c_void_p(), ctypes.c_void_p()
            assert library.session_begin(session, ctypes.byref(cu_stream), ctypes.byref(data)) == 0
            result = numpy.empty(COUNT, dtype=numpy.float32)
            assert library.session_write(session, 0.0, 0.0) != 0, 'a view while PyTorch works is refused'
            stream = torch.cuda.ExternalStream(cu_stream.value, device=gpu)
            with torch.cuda.device(gpu), torch.cuda.stream(stream):
                tensor = torch.as_tensor(OnDevice(data.value, COUNT, cu_stream.value), device=f'cuda:{gpu}')
                assert tensor.data_ptr() == data.value, 'the tensor is a copy'
                tensor.mul_(2).add_(1)
            del tensor
            assert library.session_end(session) == 0
            assert library.session_read(session, result.ctypes.data) == 0
            expected = 2 * (turn + (numpy.arange(COUNT) % 1000)).astype(numpy.float32) + 1
            assert (result == expected).all(), f'kind {kind}, turn {turn}'
        library.session_close(session)
        print(f'kind {kind}: right')
    return 0


if __name__ == '__main__':
    sys.exit(main())
