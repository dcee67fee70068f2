# SPDX-License-Identifier: Apache-2.0
"""Adoption: buffers of memory that other objects own.

    frame = numpy.zeros((480, 640), 'u1')
    buffer = device.adopt(frame)          # no copy, where the machine lets the GPU use such memory; see buffer.explain
    buffer = device.adopt(torch_tensor)   # CUDA tensors of this device, tensors of the host

The object is kept until the last use of the memory has ended: by the GPU, by scopes, by tensors made of them. Use it by
scopes of the buffer meanwhile, so that CPU and GPU take turns.
"""
from __future__ import annotations

import ctypes
from ctypes import byref, c_void_p
from typing import Any

from . import _structures as structures
from . import dlpack
from ._handles import DeviceHandle, Share, free_of
from ._library import c, drop_released, glue_locked, raised
from ._types import DType, dtype_of_dlpack, dtype_of_format
from .buffers import Buffer
from .errors import InvalidArgument, OutOfMemory
from .streams import Event

_adopt = c.isthmus_device_adopt_dlpack


def adopted(device: DeviceHandle, source: Any) -> Buffer:
    """`Device.adopt()`."""
    drop_released()
    if isinstance(source, Buffer):
        raise InvalidArgument(f'{source!r} is a buffer of isthmus already', 'use it, or reshaped()')
    if hasattr(source, '__dlpack__') and hasattr(source, '__dlpack_device__'):
        return _of_dlpack(device, source)
    try:
        view = memoryview(source)
    except TypeError:
        raise InvalidArgument(f'a {type(source).__name__} has neither __dlpack__ nor the buffer protocol',
                              'a NumPy array, a tensor, a bytearray, an mmap') from None
    return _of_buffer(device, view, source)


def _of_buffer(device: DeviceHandle, view: memoryview, source: Any) -> Buffer:
    dtype = dtype_of_format(view.format, view.itemsize)
    if not view.c_contiguous:
        raise InvalidArgument(f'the memory of this {type(source).__name__} has gaps or another order',
                              'an object in C order (numpy.ascontiguousarray makes a copy)')
    shape = tuple(view.shape or ())
    like = dlpack.tensor_of(_address_of(view), shape, dtype, (dlpack.CPU, 0))
    return _adopted(device, view, like, 0, 0, dlpack.READ_ONLY if view.readonly else 0, shape, dtype, None)


class _PyBuffer(ctypes.Structure):   # of the stable ABI
    _fields_ = [('buf', c_void_p), ('obj', c_void_p), ('len', ctypes.c_ssize_t), ('itemsize', ctypes.c_ssize_t),
                ('readonly', ctypes.c_int), ('ndim', ctypes.c_int), ('format', ctypes.c_char_p), ('shape', c_void_p),
                ('strides', c_void_p), ('suboffsets', c_void_p), ('internal', c_void_p)]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = [ctypes.POINTER(_PyBuffer)], None


def _address_of(view: memoryview) -> int:
    """The first byte; the view itself keeps the memory where it is."""
    raw = _PyBuffer()
    _get_buffer(view, byref(raw), 0)
    try:
        return raw.buf or 0
    finally:
        _release_buffer(byref(raw))


def _of_dlpack(device: DeviceHandle, source: Any) -> Buffer:
    stream = None if device.is_cpu else device.stream
    try:
        like, plain, versioned, flags = dlpack.imported(source, lambda: stream.native_handle if stream else None)
    except BufferError:   # of a read-only array before NumPy 2.1, which has the buffer protocol, too
        try:
            view = memoryview(source)
        except TypeError:
            view = None
        if view is None:
            raise
        return _of_buffer(device, view, source)
    after: Event | None = None
    try:
        shape = tuple(like.shape[at] for at in range(like.ndim))
        dtype = dtype_of_dlpack(like.code, like.bits, like.lanes)
        if stream is not None and like.device_type in (dlpack.CUDA, dlpack.CUDA_MANAGED):
            after = stream.record()   # the producer's work is ordered before our stream
    except BaseException:
        _delete(source, plain, versioned, like)
        raise
    return _adopted(device, source, like, plain, versioned, flags & dlpack.READ_ONLY, shape, dtype, after)


def _kept(source: Any, plain: int, versioned: int, like: structures.DLTensor, flags: int) -> int:
    kept = glue_locked.isthmus_python_adopted(source, plain, versioned, byref(like), flags)
    if not kept:
        raise OutOfMemory('no memory to adopt an object')
    return int(kept)


def _delete(source: Any, plain: int, versioned: int, like: structures.DLTensor) -> None:
    glue_locked.isthmus_python_not_adopted(_kept(source, plain, versioned, like, 0))


def _adopted(device: DeviceHandle, source: Any, like: structures.DLTensor, plain: int, versioned: int, flags: int,
             shape: tuple[int, ...], dtype: DType, after: Event | None) -> Buffer:
    share, error = Share(0, free_of('buffer'), device._runtime_share), c_void_p()
    buffer, kept = share.place(), _kept(source, plain, versioned, like, flags)
    try:
        code = _adopt(device._handle, kept, after._handle if after else None, byref(buffer), byref(error))
        if code:
            raise raised(error, code)
        share.handle = buffer.value or 0
    except BaseException:
        adopted = share.take()
        if adopted:   # a signal's handler raised behind the adoption: the library lets go of what it has
            c.isthmus_buffer_free(adopted)
        else:
            glue_locked.isthmus_python_not_adopted(kept)
        raise
    return Buffer(share, device, shape, dtype, readonly=bool(flags & dlpack.READ_ONLY))
