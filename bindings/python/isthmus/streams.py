# SPDX-License-Identifier: Apache-2.0
"""Streams and events: the order of GPU work.

    stream = device.create_stream()
    stream.fill(buffer, 0)
    stream.copy(target, source)          # None of these waits for the GPU
    event = stream.record()
    other.wait(event)                    # work that `other` gets from now on runs behind it
    stream.synchronize()                 # the CPU waits; other Python threads run meanwhile
"""
from __future__ import annotations

from ctypes import byref, c_int32
from typing import Any

from . import _structures as structures
from ._handles import DeviceHandle, Owner, Share, owned
from ._library import c, call, drop_released, make
from ._types import number_of, wait_of
from .buffers import Buffer
from .errors import InvalidArgument
from .scopes import DeviceScopes, Use, open_scopes


def _need_buffers(call: str, *buffers: Any) -> None:
    for each in buffers:
        if not isinstance(each, Buffer):
            raise TypeError(f'{call}: a {type(each).__name__} is no isthmus.Buffer; device.adopt() makes one of other memory')


class Event(Owner):
    """A place in a stream's work; made by `Stream.record()`."""

    __slots__ = ()

    @property
    def finished(self) -> bool:
        """Whether all work before it has ended. Does not wait."""
        answer = c_int32()
        call(c.isthmus_event_finished, self._handle, byref(answer))
        return bool(answer.value)

    def synchronize(self, wait: float | None = None) -> None:
        """Waits until it has; `wait` in seconds, None: the runtime's limit. Raises `TimedOut`, `NotReady`."""
        call(c.isthmus_event_synchronize, self._handle, wait_of(wait))
        drop_released()

    @property
    def native_handle(self) -> int:
        """Its CUevent, for other code to wait for; 0 on the CPU device, whose work is done."""
        return make(c.isthmus_event_native_handle, self._handle)

    def __repr__(self) -> str:
        return f'<isthmus.Event{", closed" if self.closed else ""}>'


class Stream(Owner):
    """Work in order on one device; `Device.stream`, `Device.create_stream()` and `Device.wrap_stream()` give one. Any
    thread may use it."""

    __slots__ = ('device',)
    _handle_kind = 'Stream'
    device: Any   # the Device

    def __init__(self, share: Share, device: DeviceHandle) -> None:
        super().__init__(share)
        self.device = device

    def copy(self, to: Buffer, source: Buffer) -> None:
        """Copies all of `source` into `to`, of the same size, in the order of the stream."""
        _need_buffers('copy', to, source)
        if to.nbytes != source.nbytes:
            raise InvalidArgument(f'a copy of {source.nbytes} bytes into a buffer of {to.nbytes}', 'buffers of one size')
        self._refuse_readonly(to)
        call(c.isthmus_stream_copy, self._handle, to._handle, 0, source._handle, 0, source.nbytes)

    def fill(self, buffer: Buffer, value: complex) -> None:
        """Sets every element of the buffer to `value`, a number that its element type has, in the order of the stream."""
        _need_buffers('fill', buffer)
        element = buffer.dtype.bytes_of(value)
        self._refuse_readonly(buffer)
        call(c.isthmus_stream_fill_elements, self._handle, buffer._handle, 0, structures.REST, element, len(element))

    def record(self) -> Event:
        """An event behind what the stream has been given so far."""
        return Event(owned('event', c.isthmus_stream_record, self._handle))

    def wait(self, other: Event | Stream | int) -> None:
        """Work that this stream gets from now on runs behind the event, behind the present work of another stream, or
        behind a CUevent of other code (an int). The CPU does not wait."""
        if isinstance(other, Event):
            call(c.isthmus_stream_wait, self._handle, other._handle)
        elif isinstance(other, Stream):
            call(c.isthmus_stream_wait_stream, self._handle, other._handle)
        else:
            call(c.isthmus_stream_wait_native, self._handle, number_of(other, 'an event'))

    def synchronize(self, wait: float | None = None) -> None:
        """The CPU waits for the stream's work; `wait` in seconds, None: the runtime's limit. Raises `TimedOut`,
        `NotReady` (wait=0)."""
        call(c.isthmus_stream_synchronize, self._handle, wait_of(wait))
        drop_released()

    @property
    def finished(self) -> bool:
        """Whether all its work has ended. Does not wait."""
        answer = c_int32()
        call(c.isthmus_stream_finished, self._handle, byref(answer))
        return bool(answer.value)

    def scope(self, *uses: Use, name: str = 'Stream.scope') -> DeviceScopes:
        """Opens several buffers for other code's work on this stream: see `isthmus.scopes`. `name` is for messages."""
        return open_scopes(self, uses, name)

    @property
    def native_handle(self) -> int:
        """Its CUstream (cudaStream_t) as a number, for `torch.cuda.ExternalStream`, CuPy and Numba. It claims no buffer:
        open a scope for the work. The CPU device has none: `Unsupported`."""
        return make(c.isthmus_stream_native_handle, self._handle)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The stream protocol of cuda.core."""
        return 0, self.native_handle

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and self._id() == other._id()

    def __hash__(self) -> int:
        return hash(self._id())

    def _id(self) -> int:
        return int(c.isthmus_stream_id(self._handle))

    def _refuse_readonly(self, buffer: Buffer) -> None:
        if buffer.readonly:
            raise InvalidArgument(f'{buffer!r} was adopted from read-only memory', 'write to another buffer')

    def __repr__(self) -> str:
        return '<isthmus.Stream, closed>' if self.closed else f'<isthmus.Stream {self._id()} of {self.device.name!r}>'
