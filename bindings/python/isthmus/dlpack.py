# SPDX-License-Identifier: Apache-2.0
"""DLPack: how scopes hand memory to NumPy, PyTorch, CuPy and JAX without copying, and how their arrays are taken in.

A buffer has no `__dlpack__`: its content is only right inside a scope. A host scope is `(kDLCPU, 0)`; a device scope is
`(kDLCUDA, ordinal)`, or `(kDLCPU, 0)` where the device is the CPU. Both protocols are spoken: DLPack 1.x for consumers
that pass `max_version`, and the unversioned one.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from . import _structures as structures
from ._handles import Share
from ._library import address, glue_locked
from ._types import DType, count_of
from .errors import OutOfMemory

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13   # DLDeviceType
READ_ONLY, IS_COPIED = 1, 2                        # flags of DLPack 1.x

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_void_p]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_void_p]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_void_p]
_capsule_ends = address(glue_locked.isthmus_python_capsule_ends)
# Addresses of the names, which are C's: a capsule keeps a pointer to its name, and may outlive this module.
PLAIN, VERSIONED, USED_PLAIN, USED_VERSIONED = (
    int(glue_locked.isthmus_python_capsule_name(versioned, used)) for used in (0, 1) for versioned in (0, 1))


def tensor_of(pointer: int, shape: tuple[int, ...], dtype: DType, device: tuple[int, int]) -> structures.DLTensor:
    """A DLTensor in C order, without strides."""
    return structures.DLTensor(pointer, device[0], device[1], len(shape), dtype.code, 8 * dtype.itemsize, 1,
                               (ctypes.c_int64 * max(len(shape), 1))(*shape), None, 0)


def exported(pointer: int, shape: tuple[int, ...], dtype: DType, device: tuple[int, int], share: Share, *,
             readonly: bool, max_version: tuple[int, int] | None, copy: bool | None) -> object:
    """The capsule of `__dlpack__`. What it holds keeps `share` until its consumer deletes the tensor.

    The array API's rules: no `max_version` asks for the unversioned protocol, which cannot say that memory is read-only;
    `copy=True` makes a copy, here of host memory only; what cannot be done raises BufferError.
    """
    versioned = max_version is not None and tuple(max_version)[0] >= 1
    flags = READ_ONLY if readonly else 0
    if copy:
        if device[0] != CPU:
            raise BufferError('isthmus: copy=True is for memory of the host: copy on the device (torch.Tensor.clone, '
                              'cupy.copy, or isthmus: Stream.copy)')
        share, pointer = Share.of_copy(pointer, count_of(shape) * dtype.itemsize)
        flags = IS_COPIED
    elif readonly and not versioned:
        raise BufferError("isthmus: this scope is for reading ('r'), which the unversioned DLPack protocol cannot say. Try: "
                          f"{'numpy.asarray(scope), ' if device[0] == CPU else ''}a consumer that passes "
                          "max_version=(1, 0), a scope for 'rw', or copy=True")
    like = tensor_of(pointer, shape, dtype, device)
    managed = glue_locked.isthmus_python_export(ctypes.byref(like), versioned, flags, share.pointer)
    if not managed:
        raise OutOfMemory('no memory for a DLPack tensor')
    capsule: object = _new_capsule(managed, VERSIONED if versioned else PLAIN, _capsule_ends)
    return capsule


def refuse_other_device(asked: tuple[int, int] | None, own: tuple[int, int], instead: str) -> None:
    """`dl_device=` other than the scope's own device."""
    if asked is not None and (int(asked[0]), int(asked[1])) != own:
        raise BufferError(f'isthmus: this scope is for DLPack device {own}, and {tuple(map(int, asked))} was asked for. '
                          f'Try: {instead}')


def imported(producer: Any, stream: Callable[[], int | None]) -> tuple[structures.DLTensor, int, int, int]:
    """Consumes `producer.__dlpack__()`: the tensor, the addresses of the plain and the versioned managed tensor (0: it is
    the other one), and the flags. `stream` says for which CUDA stream the data has to be ready."""
    kind = int(producer.__dlpack_device__()[0])
    arguments: dict[str, Any] = {'stream': stream()} if kind in (CUDA, CUDA_MANAGED) else {}
    try:
        capsule = producer.__dlpack__(max_version=(1, 0), copy=False, **arguments)
    except (TypeError, NotImplementedError):   # made for the array API before 2023.12
        capsule = producer.__dlpack__(**arguments)
    if _is_valid(capsule, VERSIONED):
        pointer = _get_pointer(capsule, VERSIONED)
        versioned = structures.DLManagedTensorVersioned.from_address(pointer)
        if versioned.major != 1:   # the rest of the structure is unknown; the capsule's destructor deletes it
            raise BufferError(f'isthmus: a tensor of DLPack {versioned.major}.{versioned.minor}; 1.x is understood')
        _set_name(capsule, USED_VERSIONED)
        return versioned.tensor, 0, pointer, versioned.flags
    if _is_valid(capsule, PLAIN):
        pointer = _get_pointer(capsule, PLAIN)
        _set_name(capsule, USED_PLAIN)
        return structures.DLManagedTensor.from_address(pointer).tensor, pointer, 0, 0
    raise BufferError(f'isthmus: __dlpack__ of {type(producer).__name__} returned no DLPack capsule')
