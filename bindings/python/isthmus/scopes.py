# SPDX-License-Identifier: Apache-2.0
"""Device scopes: the time in which other code's GPU work uses buffers.

    with buffer.device(stream, 'rw') as pixels:      # uploads what the CPU wrote, where the machine needs that
        tensor = torch.from_dlpack(pixels)           # no copy; torch's current stream waits for ours
        tensor.mul_(2)
    with stream.scope(isthmus.reads(a), isthmus.writes(b)) as (x, y):    # several buffers at once
        cupy.multiply(cupy.asarray(x), 2, out=cupy.asarray(y))

Inside, host scopes, launches, copies and other scopes that conflict are refused on every thread (`isthmus.InUse`).
Leaving fences: whoever uses the buffers then waits for the work that the stream was given, and for the streams that took
a tensor (`__dlpack__(stream=…)`). Work on other streams is told by `scope.joins(stream)`. After an exception in the
`with`, what the work was to write has no defined content.

On the CPU device the memory is the host's, and NumPy is the library that works on it.
"""
from __future__ import annotations

import dataclasses
import warnings
from ctypes import byref, c_void_p
from types import TracebackType
from typing import Any, NoReturn

from . import _structures as structures
from . import dlpack
from ._handles import BufferHandle, OfThisProcess, Share, StreamHandle, handle_of, refuse_array
from ._library import address, c, glue, raised
from ._types import DType, count_of
from .errors import Error, InvalidArgument, InvalidHandle
from .views import flags_of

_close_scope = address(glue.isthmus_python_close_scope)


class ScopeWarning(RuntimeWarning):
    """A tensor lives on behind its device scope: its memory stays valid, but nothing orders its content any more."""


@dataclasses.dataclass(frozen=True)
class Use:
    """What a scope does with a buffer: made by `isthmus.reads`, `writes` and `updates`."""

    buffer: Any   # a Buffer
    mode: str


def reads(buffer: BufferHandle) -> Use:
    """The work only reads it."""
    return Use(buffer, 'r')


def writes(buffer: BufferHandle) -> Use:
    """The work writes every element; what was there need not be kept."""
    return Use(buffer, 'w')


def updates(buffer: BufferHandle) -> Use:
    """The work reads and writes it."""
    return Use(buffer, 'rw')


class _Claim:
    """The open native scope behind one or several device scopes. Exported tensors keep `share`: a scope that is in no
    `with` ends with the last of them."""

    def __init__(self, stream: StreamHandle, uses: tuple[Use, ...], name: str) -> None:
        array, buffers = (structures.NativeUse * len(uses))(), [use.buffer._handle for use in uses]
        for at, use in enumerate(uses):
            array[at].buffer, array[at].flags = buffers[at].handle, flags_of(use.mode)
        share, error = Share(0, _close_scope), c_void_p()
        scope = share.place()
        try:
            code = c.isthmus_stream_open_native_scope(handle_of(stream, 'Stream'), name.encode(), array, len(uses),
                                                      byref(scope), byref(error))
            if code:
                raise raised(error, code)
            self.share: Share | None = share
            self.stream = stream
            self.name = name
            self.native: int = c.isthmus_native_scope_stream(scope) or 0
            self.joined: list[StreamHandle] = []
            # What tensors keep: the memory (the buffer) and, until close(), the claim.
            self.views = [Share(0, 0, buffer, share) for buffer in buffers]
            self.pointers = [array[at].pointer or 0 for at in range(len(uses))]
        except BaseException:   # also of a signal's handler, behind the call: the traceback may keep the share
            c.isthmus_native_scope_close(share.take() or None, 0, None)   # no scope: refused
            raise

    def live(self) -> Share:
        share = self.share
        if share is None:
            raise InvalidHandle(f"the device scope '{self.name}' is closed", 'use it inside its `with`; open another one')
        return share

    def join(self, stream: StreamHandle) -> None:
        if stream not in self.joined:
            self.joined.append(stream)

    def close(self, failed: bool) -> None:
        share, self.share = self.share, None
        if share is None:
            return
        problem: Error | None = None
        for one in self.joined:
            try:
                self.stream.wait(one)
            except Error as error:
                problem = problem or error
        tensors = sum(one.exported() for one in self.views)
        self.views = []
        handle = share.take()
        if handle:
            error_of = c_void_p()
            code = c.isthmus_native_scope_close(handle, 1 if failed or problem else 0, byref(error_of))
            if code:
                problem = raised(error_of, code)
        if problem:
            try:
                raise problem
            finally:
                problem = None   # an exception and the frame that it names would be a cycle
        if tensors and not failed:
            warnings.warn(
                f"isthmus: {tensors} tensor{'s' if tensors > 1 else ''} of the device scope '{self.name}' live on behind "
                'it; their memory stays, but what they read and write is not ordered any more. Let go of them inside the '
                '`with` (`del tensor`)', ScopeWarning, stacklevel=4)


class DeviceScope(OfThisProcess):
    """A buffer that is open for other code's work on a stream; made by `Buffer.device()` and `Stream.scope()`. It has
    `__dlpack__` and, on CUDA devices, `__cuda_array_interface__` (version 3)."""

    __slots__ = ('_claim', '_share', '_pointer', 'buffer', 'mode', 'shape', 'dtype', '__weakref__')
    buffer: Any   # the Buffer
    shape: tuple[int, ...]
    dtype: DType

    def __init__(self, claim: _Claim, use: Use, at: int) -> None:
        self._claim, self._pointer, self._share = claim, claim.pointers[at], claim.views[at]
        self.buffer, self.mode = use.buffer, use.mode
        self.shape, self.dtype = use.buffer.shape, use.buffer.dtype

    @property
    def closed(self) -> bool:
        """Whether the scope was closed."""
        return self._claim.share is None

    @property
    def pointer(self) -> int:
        """The address of the first element, for the device (on the CPU device: for the host)."""
        self._claim.live()
        return self._pointer

    @property
    def stream(self) -> Any:
        """The `Stream` behind which the scope was opened."""
        return self._claim.stream

    @property
    def stream_handle(self) -> int:
        """The CUstream (cudaStream_t) that gets the work, for `torch.cuda.ExternalStream` or `cupy.cuda.ExternalStream`;
        0 on the CPU device."""
        self._claim.live()
        return self._claim.native

    def joins(self, stream: int | StreamHandle) -> None:
        """Work on this stream uses the scope, too: the end of the scope waits for what it has by then. An int is a
        CUstream of other code. Its work has to be ordered behind the scope's stream by that code; `__dlpack__` does
        both."""
        self._claim.live()
        if not isinstance(stream, int):
            handle_of(stream, 'Stream')
        self._claim.join(self.buffer.home.wrap_stream(stream) if isinstance(stream, int) else stream)

    def close(self, *, failed: bool = False) -> None:
        """Ends the scope (with `Stream.scope()`: all of its scopes); a second time is harmless. `failed`: what the work
        was to write has no defined content."""
        self._claim.close(failed)

    def __enter__(self) -> DeviceScope:
        self._claim.live()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        _leave(self._claim, value)

    # ---- DLPack and the array interfaces

    def __dlpack_device__(self) -> tuple[int, int]:
        home = self.buffer.home
        return (dlpack.CPU, 0) if home.is_cpu else (dlpack.CUDA, home.ordinal)

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> object:
        """A DLPack capsule. `stream`: the consumer's stream as the array API numbers it (1 or None: the legacy default
        stream; -1: no order is wanted). It waits for the scope's stream here, and the scope's end waits for it."""
        self._claim.live()
        own = self.__dlpack_device__()
        dlpack.refuse_other_device(dl_device, own, "buffer.host('r'), a scope for the CPU")
        capsule = dlpack.exported(self._pointer, self.shape, self.dtype, own, self._share, readonly=self.mode == 'r',
                                  max_version=max_version, copy=copy)
        if own[0] == dlpack.CPU:
            if stream is not None:
                raise BufferError('isthmus: memory of the CPU device takes stream=None')
        elif stream != -1:
            self._order(stream)
        return capsule

    def _order(self, stream: Any) -> None:
        if stream == 0:
            raise BufferError('isthmus: stream=0 is ambiguous in DLPack: 1 is the legacy default stream, None means it')
        if stream == 2:
            raise BufferError('isthmus: the per-thread default stream (2) is another stream on each thread. Try: a stream '
                              'of your own, or the legacy default stream (1)')
        number = 0 if stream is None or stream == 1 else int(stream)
        if number == self._claim.native:
            return
        consumer = self.buffer.home.wrap_stream(number)
        consumer.wait(self._claim.stream)
        self._claim.join(consumer)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3. Its `stream` is the scope's: CuPy and Numba let their stream wait for it. Give work to that stream, or
        tell another one by `joins()`."""
        if self.buffer.home.is_cpu:
            raise AttributeError('__cuda_array_interface__: the device of this scope is the CPU')
        if not self.dtype.format and self.dtype.name == 'bfloat16':
            raise AttributeError('__cuda_array_interface__ has no bfloat16; use __dlpack__')
        return {'shape': self.shape, 'typestr': self.dtype.typestr, 'data': (self.pointer, self.mode == 'r'),
                'version': 3, 'strides': None, 'stream': self._claim.native or 1}

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Version 3, on the CPU device only, where NumPy does the work."""
        if not self.buffer.home.is_cpu:
            raise AttributeError("__array_interface__: this memory is a GPU's; open buffer.host() for the CPU")
        return {'shape': self.shape, 'typestr': self.dtype.typestr, 'data': (self.pointer, self.mode == 'r'),
                'version': 3, 'strides': None}

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """For NumPy, which would otherwise make an array of one object. On the CPU device it asks `__array_interface__`."""
        refuse_array(self)

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return count_of(self.shape) * self.dtype.itemsize

    def __repr__(self) -> str:
        return (f'<isthmus.DeviceScope {self.mode!r} of {self.dtype}[{", ".join(map(str, self.shape))}] on '
                f'{self.buffer.home.name!r}{", closed" if self.closed else ""}>')


class DeviceScopes(tuple[DeviceScope, ...]):
    """The scopes of `Stream.scope()`, in the order of the uses: one claim, opened and closed together."""

    __slots__ = ()

    def __enter__(self) -> DeviceScopes:
        for one in self:
            one._claim.live()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        _leave(self[0]._claim, value)

    def close(self, *, failed: bool = False) -> None:
        """Ends all of them; a second time is harmless."""
        self[0].close(failed=failed)


def _leave(claim: _Claim, exception: BaseException | None) -> None:
    try:
        claim.close(exception is not None)
    except Error as problem:
        if exception is None:
            raise
        if hasattr(exception, 'add_note'):   # Python 3.11
            exception.add_note(f'isthmus: the scope did not end well, either: {problem}')


def open_scopes(stream: StreamHandle, uses: tuple[Use, ...], name: str) -> DeviceScopes:
    """Opens one claim for all uses."""
    if not uses:
        raise InvalidArgument('a device scope of no buffer', 'stream.scope(isthmus.reads(a), isthmus.writes(b))')
    for use in uses:
        if not isinstance(use, Use):
            raise TypeError(f'{use!r} is no use of a buffer: isthmus.reads(buffer), writes(buffer) or updates(buffer)')
        if not hasattr(use.buffer, 'readonly'):
            raise TypeError(f'a {type(use.buffer).__name__} is no buffer of isthmus. Try: Device.adopt() gives one, '
                            'and frames of other processes have one (`frame.buffer`)')
        if use.buffer.readonly and use.mode != 'r':
            raise InvalidArgument(f'{use.buffer!r} was adopted from read-only memory', 'isthmus.reads(buffer)')
    claim = _Claim(stream, uses, name)
    return DeviceScopes(DeviceScope(claim, use, at) for at, use in enumerate(uses))


def scope_of(buffer: BufferHandle, stream: StreamHandle, mode: str, name: str | None) -> DeviceScope:
    """The scope of one buffer."""
    flags_of(mode)
    return open_scopes(stream, (Use(buffer, mode),), name or 'Buffer.device')[0]
