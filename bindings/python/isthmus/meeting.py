# SPDX-License-Identifier: Apache-2.0
"""Where the processes of a shared ring meet: a channel in a directory of one user (docs/sharing-between-processes.md). A
reader that connects gets one message: the ring's descriptor with its files, and what the frames are.

Gray pictures (two dimensions of bytes) are told as `isthmus share` tells them, so that Python reads its rings and
`isthmus view` reads Python's. Other shapes are told in a message of another kind.
"""
from __future__ import annotations

import contextlib
import ctypes
import json
import os
import struct
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from ctypes import byref, c_int32, c_size_t
from typing import NamedTuple

from ._handles import Owner, Share, owned
from ._library import c, call
from ._types import DType, dtype_of, shape_of
from .errors import InvalidArgument, NotReady, PeerBrokeRules, PeerLost, TimedOut

RING, PYTHON_RING = 0x676e6972, 0x6e727970      # kinds of messages: "ring" (tools/command/share), "pyrn"
_GRAY = 0                                       # isthmus::kernels::PixelFormat
_SHAPE = struct.Struct('<4I')                   # format, width, height, pitch in bytes


class Frames(NamedTuple):
    """What a ring has. A shape of None: bytes in a layout that only the sender knows (NV12, …)."""

    shape: tuple[int, ...] | None
    dtype: DType


class Offer(NamedTuple):
    """A place in a ring for one reader: the descriptor, and what is to be called when it was sent or not."""

    frames: Frames
    descriptor: bytes
    files: Sequence[int]
    sent: Callable[[], None]


def told(frames: Frames, descriptor: bytes) -> tuple[int, bytes]:
    """The message for a reader."""
    shape = frames.shape or ()
    if len(shape) == 2 and frames.dtype.name == 'uint8' and all(0 < size < 2**32 for size in shape):
        return RING, descriptor + _SHAPE.pack(_GRAY, shape[1], shape[0], shape[1])
    about = json.dumps({'shape': list(shape), 'dtype': frames.dtype.name}).encode()
    return PYTHON_RING, struct.pack('<I', len(about)) + about + descriptor


def understood(kind: int, message: bytes) -> tuple[Frames, bytes]:
    """What a message says, which another process wrote: its frames, and the descriptor's bytes."""
    try:
        if kind == RING:
            format, width, height, pitch = _SHAPE.unpack(message[-_SHAPE.size:])
            known = format == _GRAY and pitch == width
            return Frames((height, width) if known else None, dtype_of('u1')), message[:-_SHAPE.size]
        if kind == PYTHON_RING:
            size, = struct.unpack_from('<I', message)
            about = json.loads(message[4:4 + size])
            return Frames(shape_of(about['shape']), dtype_of(about['dtype'])), message[4 + size:]
        raise ValueError(f'its kind is {kind:#x}')
    except (ValueError, KeyError, TypeError, RecursionError, struct.error, InvalidArgument) as problem:
        raise PeerBrokeRules(f"the producer's message is none about a ring: {problem}",
                             'isthmus of this version in both processes') from None


class _Listener(Owner):
    __slots__ = ()

    def __init__(self, directory: str) -> None:
        super().__init__(owned('listener', c.isthmus_listener_create, os.fsencode(directory)))

    def accept(self, wait_ns: int) -> Share:
        return owned('channel', c.isthmus_listener_accept, self._handle, wait_ns)


class Doorkeeper:
    """Sends `offer()` to every process of this user that connects, on a thread of its own. It keeps no object alive whose
    method `offer` is."""

    def __init__(self, directory: str, offer: Callable[[], Offer]) -> None:
        os.makedirs(os.path.dirname(os.path.abspath(directory)), exist_ok=True)
        self._stopped, self._process = threading.Event(), os.getpid()
        self._over = threading.Lock()   # the thread has it until the directory is free
        self._thread = threading.Thread(target=_keep_door, name='isthmus-ring', daemon=True,
                                        args=(_Listener(directory), weakref.WeakMethod(offer), self._stopped, self._over))
        self._over.acquire()
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, which gives up the directory, and waits for that: 10 s at most. It does not wait for the end of
        the thread itself, which takes a lock of `threading`: the collector may have called this within that lock."""
        if os.getpid() != self._process:   # the thread is the parent's
            return
        self._stopped.set()
        if threading.current_thread() is not self._thread and self._over.acquire(timeout=10):
            self._over.release()


def _keep_door(listener: _Listener, offer: weakref.WeakMethod[Callable[[], Offer]], stopped: threading.Event,
               over: threading.Lock) -> None:
    try:
        while not stopped.is_set():
            try:
                channel = listener.accept(100_000_000)
            except (TimedOut, NotReady):
                continue
            except Exception:   # of one connection
                time.sleep(0.01)
                continue
            try:
                _send(channel, offer)
            except Exception:   # no place left, no memory, or it went away: the reader may come again
                pass
            del channel   # closes it, so that the reader does not wait for more
    finally:
        listener.close()
        over.release()


def _send(channel: Share, offer: weakref.WeakMethod[Callable[[], Offer]]) -> None:
    make_offer = offer()
    if make_offer is None:   # stop() comes next
        return
    made = make_offer()
    del make_offer   # the ring may be dropped while this thread sends: its last owner then waits for this thread
    try:
        kind, message = told(made.frames, made.descriptor)
        files = (c_int32 * max(len(made.files), 1))(*made.files)
        call(c.isthmus_channel_send, channel.handle, kind, message, len(message), files, len(made.files))
    finally:
        made.sent()


def received(directory: str, wait: float) -> tuple[Frames, bytes, list[int]]:
    """What a doorkeeper or `isthmus share` sends: the frames, the descriptor's bytes, and its files, which are the
    caller's. The other process may come later, by `wait` seconds, or have no place at the moment."""
    until = time.monotonic() + wait
    while True:
        try:
            kind, message, files = _receive(directory)
            break
        except (PeerLost, TimedOut) as problem:
            if time.monotonic() >= until:
                raise PeerLost(f'no process shares a ring at {directory}, or none has a place: {problem.message}',
                               'start isthmus.SharedRing(…, at=…) or `isthmus share --at …` first, or wait longer (connect=)'
                               ) from None
            time.sleep(0.02)
    try:
        return *understood(kind, message), files
    except BaseException:
        close(files)
        raise


def _receive(directory: str) -> tuple[int, bytes, list[int]]:
    channel = owned('channel', c.isthmus_channel_connect, os.fsencode(directory))
    message = owned('message', c.isthmus_channel_receive, channel.handle, -1)
    size, count = c_size_t(), c_size_t()
    first = c.isthmus_message_bytes(message.handle, byref(size))
    files = c.isthmus_message_fds(message.handle, byref(count))
    taken = [files[at] for at in range(count.value)]
    c.isthmus_message_take_fds(message.handle)
    return c.isthmus_message_kind(message.handle), ctypes.string_at(first, size.value), taken


def close(files: Sequence[int]) -> None:
    for file in files:
        with contextlib.suppress(OSError):   # one that is none: the others are still to be closed
            os.close(file)


def checked_directory(at: str | os.PathLike[str]) -> str:
    if not os.fspath(at):
        raise InvalidArgument('an empty directory to meet at')
    if b'\0' in os.fsencode(at):   # where C would end it
        raise InvalidArgument(f'a directory {at!r} with a null byte')
    return os.fspath(at)
