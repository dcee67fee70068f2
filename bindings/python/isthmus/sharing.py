# SPDX-License-Identifier: Apache-2.0
"""Frames between processes, in memory that all of them map.

    # one process                                             # others, also several
    ring = isthmus.SharedRing(device, (480, 640), 'u1',       for frame in isthmus.SharedReader('/run/user/1000/camera'):
                              at='/run/user/1000/camera')         with frame.host('r') as pixels:
    with ring.frame() as frame:                                       work(pixels)
        with frame.host('w') as pixels:                           if not frame.finish():
            camera.read_into(pixels)                                  ...   # overwritten meanwhile: drop the result

A frame is a buffer of the reader's device: `frame.device(stream, 'r')` gives it to PyTorch or CuPy, in place where the
machine can. By default the producer never waits: a reader that is slower by a whole ring is overtaken, and told so.
"""
from __future__ import annotations

import ctypes
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_int32, c_size_t, c_void_p
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from . import _structures as structures
from . import meeting
from ._handles import Owner, Share, Turn, free_of, handle_of, owned, refuse_array
from ._library import address, c, call, glue, raised
from ._types import DType, count_of, dtype_of, shape_of, wait_of
from ._uses import shared_use
from .buffers import Buffer
from .errors import Ended, InvalidArgument, NotReady, Overtaken, PeerBrokeRules, TimedOut
from .views import HostScope

if TYPE_CHECKING:
    from .runtime import Device, Runtime
    from .scopes import DeviceScope
    from .streams import Stream

_publish, _finish = address(c.isthmus_frame_publish), address(c.isthmus_frame_finish)
_SLICE = 0.1   # seconds between looks at signals, such as Ctrl-C
_LET_IN = 0.0005   # seconds in which a thread that waits leaves its lock to other threads
_LEAST = 1e-6   # seconds left behind a deadline: 0 would ask for NotReady in place of TimedOut


class _Frame(Owner):
    """A frame of a ring: a buffer, by its scopes."""

    __slots__ = ('number', 'missed', '_device', '_shape', '_dtype', '_buffer', '_used', '_turn')
    _buffer: Buffer | None

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: DType, ring: Share, turn: Turn) -> None:
        self._turn, self._buffer, self._used = turn, None, False
        super().__init__(Share(0, free_of('frame'), ring))
        self.number = self.missed = 0
        self._device, self._shape, self._dtype = device, shape, dtype

    def _take(self, function: Any, of: Share, wait: float) -> None:
        """Takes the frame that a C function makes, under the lock. The function writes it where this object keeps it: a
        signal's handler that raises behind the call loses no frame, and frames behind one that is never published are not
        published either. All that C is asked about the frame is asked here: another thread may end it at any time."""
        share = self._live
        place = share.place()
        call(function, of, wait_of(wait), byref(place))
        frame = share.handle = place.value or 0
        self.number = int(c.isthmus_frame_number(frame))
        self.missed = int(c.isthmus_frame_missed(frame))
        memory = Share(c.isthmus_buffer_ref(c.isthmus_frame_buffer(frame)), free_of('buffer'), self._device._runtime_share)
        self._buffer = Buffer(memory, self._device, self._shape, self._dtype)

    @property
    def buffer(self) -> Buffer:
        """Its memory, for kernels and copies of isthmus. Its content is the frame's until the frame ends."""
        self._used = True
        return self._buffer or self._refused()

    def host(self, mode: str = 'r', *, wait: float | None = None) -> HostScope:
        """Opens it for the CPU, as `Buffer.host()`."""
        return self.buffer.host(mode, wait=wait)

    def device(self, stream: Stream, mode: str = 'r', *, name: str | None = None) -> DeviceScope:
        """Opens it for GPU work of other code, as `Buffer.device()`."""
        return self.buffer.device(stream, mode, name=name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Refused: its content is only right inside a scope."""
        refuse_array(self)

    def _end(self, function: Any, wait: float | None) -> None:
        limit = self._device._wait_limit(wait)   # for the device work; other threads have their turn meanwhile
        until = time.monotonic() + limit
        while True:
            now = time.monotonic()
            left = max(min(_SLICE, until - now), _LEAST) if limit else 0
            try:
                with self._turn.lock:
                    self._end_within(function, left)
                    return
            except TimedOut:
                if time.monotonic() >= until:
                    raise
            time.sleep(_LET_IN)

    def _end_within(self, function: Any, wait: float) -> None:
        share, error, code = self._live, c_void_p(), -1
        try:
            code = glue.isthmus_python_end_frame(function, share.handle, share.pointer, wait_of(wait), byref(error))
        finally:
            if code <= 0:   # ended, or a signal's handler raised behind the call: then it ended, or is given up
                self._share = self._buffer = None
                del share
        if code:
            raise raised(error, code)

    def close(self) -> None:
        """Gives up the frame; again is harmless."""
        with self._turn.lock:
            self._buffer = None
            super().close()

    def __del__(self, _finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        share = getattr(self, '_share', None)
        if share is None:
            return
        if _finalizing():
            share.take()   # a thread that runs no more may have the lock; the end of the process gives up the frame
        else:
            self.close()

    def __repr__(self) -> str:
        return f'<isthmus.{type(self).__name__.lstrip("_")} {self.number}{", ended" if self.closed else ""}>'


class RingFrame(_Frame):
    """A frame that the producer fills: `with ring.frame() as frame`. The end of the `with` publishes it; an exception in
    it abandons it."""

    __slots__ = ()

    def publish(self, wait: float | None = None) -> None:
        """Shows it to all readers, behind the device work that writes it, for which it waits at most `wait` seconds;
        None: the runtime's limit, 0: raises `NotReady` at once. It can be repeated where it raises `TimedOut`."""
        if self._used:   # waits for the device's work, while other threads may use the ring
            limit = self._device._wait_limit(wait)
            until = time.monotonic() + limit
            self.host('r', wait=limit).close()
            wait = max(until - time.monotonic(), _LEAST) if limit else 0
        self._end(_publish, wait)

    def __enter__(self) -> RingFrame:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if self.closed:
            return
        if kind is None:
            self.publish()
        else:
            self.close()


class ReaderFrame(_Frame):
    """A frame that a reader has. `missed`: how many frames were overwritten before it since the last one. End it by
    `finish()`; a `with` does so and raises `Overtaken` where it was overwritten."""

    __slots__ = ()

    def finish(self, wait: float | None = None) -> bool:
        """Gives it back, behind the device work that reads it. True: it was whole to the end, and results made from it are
        valid. False: it was overwritten meanwhile; drop them."""
        try:
            self._end(_finish, wait)
        except Overtaken:
            self.close()
            return False
        return True

    def close(self) -> None:
        """Gives it back without asking whether it was whole; again is harmless."""
        super().close()

    def __enter__(self) -> ReaderFrame:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if self.closed:
            return
        if kind is not None:
            self.close()
        elif not self.finish():
            raise Overtaken(f'frame {self.number} was overwritten while it was read', 'drop what was made from it; a ring '
                            "with more slots, or policy='wait'")


class SharedRing(Owner):
    """Makes a ring of frames for other processes of this user.

    shape, dtype:    of a frame
    at:              a directory where readers come to; None: send `admit()` to each of them yourself
    slots:           2 to 256 frames
    policy:          'overwrite' (never waits for a reader) or 'wait' (for `reader_deadline` seconds, then gives it up)
    writable:        readers may write the frames, too: for trusted ones, and GPUs that cannot map memory read-only
    most_readers:    1 to 64
    """

    __slots__ = ('home', 'shape', 'dtype', '_turn', '_door')

    def __init__(self, device: Device, shape: Any, dtype: Any = 'u1', *, at: str | os.PathLike[str] | None = None,
                 slots: int = 4, policy: str = 'overwrite', writable: bool = False, most_readers: int = 16,
                 reader_deadline: float = 1.0) -> None:
        self.home, self.shape, self.dtype = device, shape_of(shape), dtype_of(dtype)
        if policy not in ('overwrite', 'wait'):
            raise InvalidArgument(f'{policy!r} is no policy', "'overwrite' or 'wait'")
        options = structures.sized(
            structures.SharedRingOptions, slots=slots, policy=int(policy == 'wait'), rights=int(writable),
            most_readers=most_readers, reader_deadline_ns=max(wait_of(reader_deadline), 1),   # 0 would be C's default
            element_bytes=self.dtype.itemsize, use=shared_use(host='writes_often', device='reads_once'))
        super().__init__(owned('shared_ring', c.isthmus_shared_ring_create, handle_of(device, 'Device'),
                               count_of(self.shape) * self.dtype.itemsize, byref(options), first=device._runtime_share))
        self._turn = Turn()
        self._door: meeting.Doorkeeper | None = None
        if at is not None:
            self._door = meeting.Doorkeeper(meeting.checked_directory(at), self._offer)
            weakref.finalize(self, self._door.stop).atexit = False   # where it is dropped without close()

    def admit(self) -> tuple[bytes, tuple[int, ...]]:
        """Admits one reader: bytes, and files to send with them by your own transport (`socket.send_fds`). The files are
        yours to close after sending. `SharedReader.received()` takes both."""
        offer = self._offer()
        files: list[int] = []
        try:
            for file in offer.files:
                files.append(os.dup(file))
            return offer.descriptor, tuple(files)
        except BaseException:   # no descriptor is left, or a signal's handler raised
            meeting.close(files)
            raise
        finally:
            offer.sent()

    def _offer(self) -> meeting.Offer:
        with self._turn.lock:
            made = owned('descriptor', c.isthmus_shared_ring_admit, self._handle)
        size, count = c_size_t(), c_size_t()
        first = c.isthmus_descriptor_bytes(made.handle, byref(size))
        files = c.isthmus_descriptor_fds(made.handle, byref(count))

        def sent() -> None:
            handle = made.take()
            if handle:
                c.isthmus_descriptor_free(handle)
        return meeting.Offer(meeting.Frames(self.shape, self.dtype), ctypes.string_at(first, size.value),
                             [files[at] for at in range(count.value)], sent)

    def frame(self, wait: float | None = None) -> RingFrame:
        """The next frame to fill. Use it in a `with`, whose end publishes it. Two fewer than there are slots may be
        held, at least one; they are published in the order in which they were begun. With the policy 'wait' it waits
        for readers, at most `wait` seconds; None: the runtime's limit, 0: raises `NotReady` at once."""
        limit = self.home._wait_limit(wait)
        until = time.monotonic() + limit
        frame = RingFrame(self.home, self.shape, self.dtype, self._live, self._turn)
        try:
            while True:
                left = max(min(_SLICE, until - time.monotonic()), _LEAST) if limit else 0
                try:
                    with self._turn.lock:
                        frame._take(c.isthmus_shared_ring_begin, self._handle, left)
                        return frame
                except TimedOut:
                    if time.monotonic() >= until:
                        raise
                time.sleep(_LET_IN)
        except BaseException:   # the traceback may keep the frame
            frame.close()
            raise

    @property
    def published(self) -> int:
        """How many frames were published."""
        with self._turn.lock:
            return int(c.isthmus_shared_ring_published(self._handle))

    def close(self) -> None:
        """No more frames come: readers get the remaining ones, then their loops end. Again is harmless."""
        door, self._door = getattr(self, '_door', None), None
        if door is not None:
            door.stop()
        with self._turn.lock:   # also for the end of the handle, which another thread may be using
            if not self.closed:
                c.isthmus_shared_ring_close(self._handle)
            super().close()

    def __enter__(self) -> SharedRing:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f'<isthmus.SharedRing of {self.dtype}{list(self.shape)}{", closed" if self.closed else ""}>'


class SharedReader(Owner):
    """Reads the frames of a ring of another process: `for frame in isthmus.SharedReader(directory)`.

    at:      the directory of the ring: `SharedRing(at=…)`, or `isthmus share --at …`, whose gray pictures have two
             dimensions; frames of other formats are bytes
    device:  the device that uses the frames; None: the default device of a runtime that is opened for this reader
    connect: how many seconds the producer may come later
    """

    __slots__ = ('home', 'shape', 'dtype', '_turn', '_runtime', '_last')
    _last: ReaderFrame | None

    def __init__(self, at: str | os.PathLike[str], device: Device | None = None, *, connect: float = 5.0) -> None:
        directory = meeting.checked_directory(at)
        self._find_device(device)   # first: at the meeting the producer gives this reader a place, and files
        self._open(*meeting.received(directory, connect))

    @classmethod
    def received(cls, descriptor: bytes, files: Sequence[int], shape: Any, dtype: Any = 'u1', *,
                 device: Device | None = None) -> SharedReader:
        """A reader of what `SharedRing.admit()` gave and your own transport brought; it takes the files, also where it
        raises."""
        made, taken = cls.__new__(cls), list(files)
        try:
            frames = meeting.Frames(shape_of(shape), dtype_of(dtype))
            made._find_device(device)
        except BaseException:
            meeting.close(taken)
            raise
        made._open(frames, descriptor, taken)
        return made

    def _find_device(self, device: Device | None) -> None:
        self._share, self._last, self._turn = None, None, Turn()
        self._runtime: Runtime | None = None
        if device is None:
            from .runtime import open
            self._runtime = open()
            device = self._runtime.default_device
        handle_of(device, 'Device')   # raises where its runtime is closed
        self.home = device

    def _open(self, frames: meeting.Frames, descriptor: bytes, files: list[int]) -> None:
        try:
            device = self.home._handle
            memory = (ctypes.c_char * len(descriptor)).from_buffer_copy(descriptor)
            fds = (c_int32 * max(len(files), 1))(*files)
        except BaseException:
            meeting.close(files)
            raise
        super().__init__(owned('shared_reader', c.isthmus_shared_reader_open, device, memory, len(descriptor), fds,
                               len(files), first=self.home._runtime_share))   # takes the files
        size, dtype = int(c.isthmus_shared_reader_frame_bytes(self._handle)), frames.dtype
        shape = (size,) if frames.shape is None else frames.shape
        if size != count_of(shape) * dtype.itemsize:
            self._share = None
            raise PeerBrokeRules(f"the producer's frames have not the size of {dtype}{list(shape)}")
        self.shape, self.dtype = shape, dtype

    def next(self, wait: float | None = None) -> ReaderFrame:
        """The next frame; gives back the last one if that was not done. Raises `Ended` behind the last one of a closed
        ring, `TimedOut`, `PeerLost`. `wait` in seconds; None: for ever."""
        wait_of(wait)   # raises where it is no time
        with self._turn.lock:
            last, self._last = self._last, None
            if last is not None:
                last.close()
        until = None if wait is None else time.monotonic() + wait
        frame = ReaderFrame(self.home, self.shape, self.dtype, self._live, self._turn)
        try:
            while True:
                left = _SLICE if until is None else max(min(_SLICE, until - time.monotonic()), _LEAST) if wait else 0
                try:
                    with self._turn.lock:
                        frame._take(c.isthmus_shared_reader_next, self._handle, left)
                        self._last = frame
                        return frame
                except (TimedOut, NotReady):
                    if until is not None and time.monotonic() >= until:
                        raise
                time.sleep(_LET_IN)
        except BaseException:   # the traceback may keep the frame
            frame.close()
            raise

    def __iter__(self) -> Iterator[ReaderFrame]:
        while True:
            try:
                frame = self.next()
            except Ended:
                return
            yield frame

    def close(self) -> None:
        """Leaves the ring; again is harmless."""
        with self._turn.lock:
            last, self._last = self._last, None
            if last is not None:
                last.close()
            super().close()
        if self._runtime is not None:
            self._runtime.close()

    def __enter__(self) -> SharedReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f'<isthmus.SharedReader of {self.dtype}{list(self.shape)}{", closed" if self.closed else ""}>'
