# SPDX-License-Identifier: Apache-2.0
"""Host scopes: the time in which the CPU uses a buffer.

    with buffer.host('w') as pixels:     # waits for GPU work that conflicts; GPU work that conflicts is refused meanwhile
        pixels[:] = frame                # bytes, arrays, memoryviews; slices and arithmetic as NumPy has them
    with buffer.host('r') as pixels:
        total = numpy.asarray(pixels).sum()
    kept = numpy.asarray(buffer.host('r'))   # the scope lasts as long as the array

A scope has the buffer protocol and `__dlpack__`, so that NumPy, memoryview, OpenCV and PyTorch use its memory without
copying. Using a closed scope raises. Closing a scope while an array of it lives raises `isthmus.ArrayAlive`, and the
scope stays open until the array is gone: the array would read memory that the GPU is writing.
"""
from __future__ import annotations

import contextlib
import ctypes
import sys
from ctypes import byref
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _structures as structures
from . import dlpack
from ._handles import OfThisProcess, Share
from ._library import Opened, glue, glue_locked, raised
from ._types import DType, count_of, wait_of
from .errors import ArrayAlive, InvalidArgument, InvalidHandle

if TYPE_CHECKING or sys.version_info >= (3, 13):   # see the glue's buffer_source.c
    BufferSource = object
else:
    BufferSource = glue_locked.isthmus_python_buffer_source()

MODES = {'r': structures.READ, 'w': structures.WRITE, 'rw': structures.READ | structures.WRITE}
_open = glue.isthmus_python_open_view
_TRUTH = bytes([0]) + bytes([1]) * 255   # what bytes are as bools


def flags_of(mode: str) -> int:
    flags = MODES.get(mode)
    if flags is None:
        raise InvalidArgument(f'{mode!r} is no mode of a scope', "'r', 'w' (writes every element) or 'rw'")
    return flags


_memory_types: dict[int, type] = {}


def _memory_at(address: int, size: int, share: Share) -> Any:
    made = _memory_types.get(size)
    if made is None:
        made = type('Memory', (ctypes.c_ubyte * size,), {})
        if len(_memory_types) < 256:
            _memory_types[size] = made
    memory = made.from_address(address)   # type: ignore[attr-defined]
    memory.scope = share
    return memory


class _Bytes(BufferSource):
    """Exports a memoryview, which then knows that it is used: one that is made of it would have its memory directly."""

    __slots__ = ('_exported',)

    def __init__(self, exported: memoryview) -> None:
        self._exported = exported

    if TYPE_CHECKING or sys.version_info >= (3, 13):   # before, the base class has it
        def __buffer__(self, flags: int, /) -> memoryview:
            return self._exported


class HostScope(OfThisProcess, BufferSource):
    """A buffer, or some of its rows, opened for the CPU; made by `Buffer.host()`. Use it in a `with` or give it to
    `numpy.asarray`. It has the buffer protocol, `__dlpack__`, `[…]` and len(); one thread at a time uses it."""

    __slots__ = ('_share', '_once', '_pointer', '_base', 'shape', 'dtype', 'mode', '__weakref__')
    shape: tuple[int, ...]
    dtype: DType
    mode: str

    def __init__(self, buffer: Share, offset: int, shape: tuple[int, ...], dtype: DType, mode: str,
                 wait: float | None, keeps: Share | None) -> None:
        self._share: Share | None = None
        self._base: memoryview | None = None
        self.shape, self.dtype, self.mode = shape, dtype, mode
        opened, share = Opened(), Share.of(0)
        try:
            code = _open(buffer, offset, count_of(shape) * dtype.itemsize, flags_of(mode),
                         -1 if wait is None else wait_of(wait), keeps.pointer if keeps else None, byref(opened))
            if code:
                raise raised(opened.error, code)
            self._pointer: int = opened.data or 0
            share.pointer = opened.share
            self._share = share
            self._once = [share]   # for the one thread that closes
        except BaseException:   # also of a signal's handler, behind the wait: nobody else would end the view
            self._share, share.pointer = None, opened.share or 0
            share.end_view()
            raise

    # ---- its life

    @property
    def closed(self) -> bool:
        """Whether the scope was closed."""
        return self._share is None

    def close(self) -> None:
        """Ends the scope; a second time is harmless. Raises `ArrayAlive` while arrays of it live: then it ends with the
        last of them."""
        try:
            share = self._once.pop()   # atomic, also without the interpreter's lock
        except IndexError:
            return
        base = self._base
        self._share = self._base = None
        alive = False
        if base is not None:
            try:
                base.release()
            except BufferError:
                alive = True
        del base
        # Where an array keeps the share, it ends the view.
        if alive or share.end_view():
            raise ArrayAlive(
                f"an array or tensor made of this scope of {self._title()} lives, so that the scope stays open until it is "
                'gone', 'let go of it inside the `with` (`del array`), use the scope itself (`scope[:] = …`), keep a copy '
                '(`numpy.array(scope)`), or let the array be the scope: `numpy.asarray(buffer.host(…))`')

    def __enter__(self) -> HostScope:
        self._require()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        try:
            self.close()
        except ArrayAlive:
            if kind is None:   # otherwise the first exception is told; its traceback may be what holds the array
                raise

    def _require(self) -> Share:
        share = self._share
        if share is None:
            raise InvalidHandle(f'the scope of {self._title()} is closed', 'use it inside its `with`; open another one')
        return share

    # ---- the buffer protocol

    @property
    def _exported(self) -> memoryview:
        share = self._require()
        base = self._base
        if (base is None or not self.dtype.format) and not self._has_memoryviews:
            raise BufferError(f'isthmus: no memoryview has {self._title()}. Try: numpy.asarray(scope)')
        if base is None:
            memory = memoryview(_memory_at(self._pointer, self.nbytes, share)).cast('B')
            base = memory if self.dtype.format == 'B' and len(self.shape) == 1 else memory.cast(
                self.dtype.format, self.shape)   # type: ignore[call-overload]
            if self.mode == 'r':
                base = base.toreadonly()
            self._base = base
        return base

    def _raw(self) -> memoryview:
        """Its bytes, where a memoryview lacks the element type."""
        share, base = self._require(), self._base
        if base is None:
            base = memoryview(_memory_at(self._pointer, self.nbytes, share)).cast('B')
            self._base = base = base.toreadonly() if self.mode == 'r' else base
        return base

    @property
    def _has_memoryviews(self) -> bool:
        return bool(self.dtype.format) and self.nbytes > 0

    if TYPE_CHECKING or sys.version_info >= (3, 13):   # before, the base class has it
        def __buffer__(self, flags: int, /) -> memoryview:
            return self._exported

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """For NumPy where a memoryview lacks the element type (float16, complex64, …) or has no elements."""
        import numpy
        if self._has_memoryviews:
            array: Any = numpy.asarray(self._exported)
        elif self.dtype.name == 'bfloat16':
            array = numpy.from_dlpack(self)   # type: ignore[arg-type]
        elif not self.nbytes:
            array = numpy.empty(self.shape, self.dtype.typestr)
            array.flags.writeable = self.mode != 'r'
        else:   # not by DLPack: before NumPy 2.2 its arrays are read-only
            array = numpy.asarray(_Bytes(self._raw())).view(self.dtype.typestr).reshape(self.shape)
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f'elements of {self.dtype} become {dtype} by a copy only')
            return array.astype(dtype)
        return array.copy() if copy else array

    # ---- DLPack

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU, 0

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> object:
        """A DLPack capsule; the scope stays open as long as its tensor lives. `stream` must be None: the host waited."""
        if stream is not None:
            raise BufferError('isthmus: a host scope takes stream=None: the CPU has waited for the GPU already')
        dlpack.refuse_other_device(dl_device, (dlpack.CPU, 0), 'buffer.device(stream, …), a scope for the GPU')
        return dlpack.exported(self._pointer, self.shape, self.dtype, (dlpack.CPU, 0), self._require(),
                               readonly=self.mode == 'r', max_version=max_version, copy=copy)

    # ---- like an array

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return count_of(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError('a scope without dimensions has no len()')
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        if type(key) is int and len(self.shape) == 1 and self._has_memoryviews:   # a bool is an index of NumPy's own kind
            return self._exported[key]
        if isinstance(key, tuple) and len(key) == len(self.shape) and self._has_memoryviews and all(
                type(one) is int for one in key):
            return self._exported[key]
        return _numpy_of(self, 'scope[…] with slices')[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._require()
        if self.mode == 'r':
            raise InvalidArgument(f"this scope of {self._title()} is for reading ('r')", "open it with 'w' or 'rw'")
        whole = key is Ellipsis or (isinstance(key, slice) and key == slice(None))
        if whole and self._set_bytes(value):
            return
        if type(key) is int and len(self.shape) == 1 and self._has_memoryviews:
            self._exported[key] = value
        elif isinstance(key, tuple) and len(key) == len(self.shape) and self._has_memoryviews and all(
                type(one) is int for one in key):
            self._exported[key] = value
        else:
            _numpy_of(self, 'scope[…] = with slices or numbers')[key] = value

    def _set_bytes(self, value: Any) -> bool:
        """Copies `value` where it has the buffer protocol and the scope's own elements or bytes, all of them."""
        try:
            source = memoryview(value)
        except TypeError:
            return False
        with contextlib.ExitStack() as stack:
            stack.enter_context(source)
            same = source.shape == self.shape and source.itemsize == self.dtype.itemsize and (
                source.format.lstrip('@=<|') == self.dtype.format)
            raw = source.format in ('B', 'b', 'c') and source.ndim == 1
            if raw and self.dtype.name == 'bool':   # a bool of another byte than 0 and 1 is undefined
                source = stack.enter_context(memoryview(source.tobytes().translate(_TRUTH)))
            if not source.c_contiguous or source.nbytes != self.nbytes or not (same or raw):
                return False
            if self.nbytes == 0:
                return True
            with memoryview(_memory_at(self._pointer, self.nbytes, self._require())) as memory, memory.cast('B') as to, \
                    source.cast('B') as bytes_of:
                to[:] = bytes_of
            return True

    def tobytes(self) -> bytes:
        """A copy of its content."""
        self._require()
        return ctypes.string_at(self._pointer, self.nbytes)

    def _title(self) -> str:
        return f'{self.dtype}[{", ".join(map(str, self.shape))}]'

    def __repr__(self) -> str:
        return f'<isthmus.HostScope {self.mode!r} of {self._title()}{", closed" if self.closed else ""}>'


def _numpy_of(scope: HostScope, what: str) -> Any:
    try:
        import numpy
    except ImportError:
        raise InvalidArgument(f'{what} needs NumPy, which is not installed',
                              'pip install numpy, or use memoryview(scope)') from None
    return numpy.asarray(scope)
