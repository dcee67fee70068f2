# SPDX-License-Identifier: Apache-2.0
"""Buffers: memory that CPU and GPU share, with a shape and an element type.

    buffer = device.allocate_shared((480, 640), 'u1', host='writes_often', device='reads_once')
    print(buffer.explain)                # which memory this machine chose, and why

A buffer has no `__dlpack__` and no buffer protocol: its content is only right inside a scope. `host()` opens one for the
CPU, `device()` one for other code's GPU work. Kernels, copies and fills of isthmus need none.
"""
from __future__ import annotations

from ctypes import byref, c_int
from typing import Any, NoReturn

from ._handles import DeviceHandle, Owner, Share, StreamHandle, free_of, refuse_array
from ._library import c, call, drop_released, text
from ._types import DType, count_of, dtype_of, shape_of
from .errors import InvalidArgument
from .scopes import DeviceScope, scope_of
from .views import HostScope

_free_buffer = free_of('buffer')


class Buffer(Owner):
    """Memory with any number of owners: scopes, work and exported tensors keep it beyond this object. Made by
    `Device.allocate_shared()`, `Device.allocate()`, `Device.allocate_exportable()`, `Device.adopt()` and frames of other
    processes."""

    __slots__ = ('home', 'shape', 'dtype', 'readonly', '_keeps')
    _handle_kind = 'Buffer'
    home: Any   # the Device
    shape: tuple[int, ...]
    dtype: DType
    readonly: bool

    def __init__(self, share: Share, home: DeviceHandle, shape: tuple[int, ...], dtype: DType, *, readonly: bool = False,
                 keeps: Share | None = None) -> None:
        super().__init__(share)
        self.home, self.shape, self.dtype, self.readonly, self._keeps = home, shape, dtype, readonly, keeps

    # ---- scopes

    def host(self, mode: str = 'r', *, rows: slice | None = None, wait: float | None = None) -> HostScope:
        """Opens it for the CPU: 'r' reads, 'w' writes every element (what was there need not be kept), 'rw' both.

        rows: a part of the first dimension, slice(10, 20); conflicts are then with this part only
        wait: at most so many seconds for GPU work that conflicts; 0: `NotReady` at once; None: the runtime's limit
        Raises `InUse` beside a scope or launch that conflicts.
        """
        offset, shape = 0, self.shape
        if rows is not None:
            offset, shape = self._rows(rows)
        if self.readonly and mode != 'r':
            raise InvalidArgument(f'{self!r} was adopted from read-only memory', "host('r')")
        scope = HostScope(self._handle, offset, shape, self.dtype, mode, wait, self._keeps)
        drop_released()
        return scope

    def device(self, stream: StreamHandle, mode: str = 'rw', *, name: str | None = None) -> DeviceScope:
        """Opens it for other code's work on `stream` (PyTorch, CuPy, Numba, TensorRT); modes as `host()`."""
        return scope_of(self, stream, mode, name)

    def _rows(self, rows: slice) -> tuple[int, tuple[int, ...]]:
        if not self.shape:
            raise InvalidArgument('rows of a buffer without dimensions')
        if not isinstance(rows, slice):
            raise TypeError(f'rows={rows!r}: a slice is needed, such as slice(10, 20)')
        first, end, step = rows.indices(self.shape[0])
        if step != 1 or end <= first:
            raise InvalidArgument(f'{rows} is no range of the {self.shape[0]} rows', 'slice(first, end) with rows in it')
        row = count_of(self.shape[1:]) * self.dtype.itemsize
        return first * row, (end - first, *self.shape[1:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Refused: its content is only right inside a scope."""
        refuse_array(self)

    # ---- what it is

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return count_of(self.shape) * self.dtype.itemsize

    @property
    def kind(self) -> str:
        """How the memory was obtained: 'pinned', 'managed', 'device', …"""
        return text(c.isthmus_kind_name(c.isthmus_buffer_kind(self._handle)))

    @property
    def path(self) -> str:
        """How the device uses it: 'pass' (in place), 'stage' (copied), 'attach', 'prefetch', 'refuse'."""
        return text(c.isthmus_path_name(c.isthmus_buffer_path(self._handle)))

    @property
    def explain(self) -> str:
        """Why the memory is of its kind, in one sentence."""
        return text(c.isthmus_buffer_explain(self._handle))

    @property
    def staged_bytes(self) -> int:
        """How many bytes were copied between CPU and GPU so far; 0 where the memory is used in place."""
        return int(c.isthmus_buffer_staged_bytes(self._handle))

    def export_dma_buf(self) -> int:
        """A new descriptor of a dma-buf over the memory of a buffer of `Device.allocate_exportable()`, from its first
        byte on. Close it with os.close(). It gives the right to read and write the memory for as long as it is open,
        also behind `close()`. Nothing orders the other driver's work with this process's: stop using the buffer while
        the other driver writes. Raises `Unsupported` for every other buffer."""
        descriptor = c_int(-1)
        call(c.isthmus_buffer_export_dma_buf, self._handle, byref(descriptor))
        return descriptor.value

    def reshaped(self, shape: Any, dtype: Any = None) -> Buffer:
        """Another object for the same memory, with another shape or element type of the same size."""
        sizes, elements = shape_of(shape), self.dtype if dtype is None else dtype_of(dtype)
        if count_of(sizes) * elements.itemsize != self.nbytes:
            raise InvalidArgument(f'{elements}{list(sizes)} has not the {self.nbytes} bytes of {self!r}')
        share = Share(c.isthmus_buffer_ref(self._handle), _free_buffer, self._keeps or self.home._runtime_share)
        return Buffer(share, self.home, sizes, elements, readonly=self.readonly, keeps=self._keeps)

    def close(self) -> None:
        """Gives up this owner. The memory is released behind the work, scopes and tensors that still use it."""
        super().close()
        drop_released()

    def __repr__(self) -> str:
        title = f'{self.dtype}[{", ".join(map(str, self.shape))}]'
        if self.closed:
            return f'<isthmus.Buffer {title}, closed>'
        return f'<isthmus.Buffer {title}, {self.kind} memory ({self.path}) of {self.home.name!r}>'
