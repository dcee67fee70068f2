# SPDX-License-Identifier: Apache-2.0
"""Owners of handles. An owner is closed once, by whoever comes first: `close()`, the end of a `with`, the last tensor
that was exported, or the garbage collector, on any thread and in any order.

After fork() the library's frees do nothing in the child, so owners may be dropped there.
"""
from __future__ import annotations

import ctypes
import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, SupportsIndex

from ._library import address, c, call, glue, glue_locked
from ._types import DType
from .errors import InvalidHandle, OutOfMemory

_new = glue_locked.isthmus_python_share_new
_references = glue_locked.isthmus_python_share_references
_take = glue_locked.isthmus_python_share_take
_place = glue_locked.isthmus_python_share_place
_unref: Callable[[int], None] = glue.isthmus_python_share_unref


class OfThisProcess:
    """Objects that name memory of this process, which no copy and no other process may end once more."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        raise TypeError(f'a {type(self).__name__} of isthmus belongs to this process and is neither copied nor pickled. '
                        'Try: its content (numpy.array(scope), scope.tobytes()), or isthmus.SharedRing for other processes')


class Share(OfThisProcess):
    """A counted handle. DLPack tensors hold references to it beside this object (bindings/python/glue/shares.h)."""

    __slots__ = ('pointer', '_as_parameter_', '__weakref__')
    pointer: int
    _as_parameter_: int   # the handle: ctypes takes a share for it, and keeps the share until the call has ended

    def __init__(self, handle: int, release: int, first: Share | None = None, second: Share | None = None) -> None:
        self._as_parameter_ = handle
        self.pointer = _new(handle, release, first.pointer if first else None, second.pointer if second else None)
        if not self.pointer:
            self.pointer = 0
            raise OutOfMemory('no memory for a handle')

    @classmethod
    def of(cls, pointer: int) -> Share:
        """Takes over a reference that a C function made."""
        share = cls.__new__(cls)
        share.pointer, share._as_parameter_ = pointer, 0
        return share

    @classmethod
    def of_copy(cls, source: int, size: int) -> tuple[Share, int]:
        """A share of a copy of host memory, and the copy's address."""
        copy = ctypes.c_void_p()
        pointer = glue_locked.isthmus_python_copy(source, size, ctypes.byref(copy))
        if not pointer:
            raise OutOfMemory(f'no memory for a copy of {size} bytes')
        return cls.of(pointer), copy.value or 0

    @property
    def handle(self) -> int:
        """The handle, for structures: calls take the share itself."""
        return self._as_parameter_

    @handle.setter
    def handle(self, handle: int) -> None:
        self._as_parameter_ = handle

    def place(self) -> ctypes.c_void_p:
        """Where C writes the handle of a share that has none yet: also where a signal's handler raises behind that call, the
        share has it."""
        return ctypes.c_void_p.from_address(_place(self.pointer))

    def exported(self) -> int:
        """How many exported tensors live."""
        return int(_references(self.pointer)) - 1

    def end_view(self, _end: Callable[[int], int] = glue.isthmus_python_end_view) -> int:
        """Gives up this object's reference to a view; how many tensors keep it open."""
        pointer, self.pointer = self.pointer, 0
        return _end(pointer) if pointer else 0

    def take(self) -> int:
        """The handle, which the caller has to free now; 0: somebody took it before."""
        self._as_parameter_ = 0
        return _take(self.pointer) or 0

    def __del__(self, _unref: Callable[[int], None] = _unref) -> None:
        pointer, self.pointer = getattr(self, 'pointer', 0), 0
        if pointer:
            _unref(pointer)


class Owner(OfThisProcess):
    """An object of this package with a handle; a closed one raises where it is used."""

    __slots__ = ('_share', '__weakref__')
    _share: Share | None

    def __init__(self, share: Share) -> None:
        self._share = share

    @property
    def _handle(self) -> Share:
        """For calls: close() on another thread ends the handle behind them."""
        return self._share or self._refused()

    _live = _handle

    def _refused(self) -> NoReturn:
        raise InvalidHandle(f'this {type(self).__name__} is closed', 'use it before close() and inside its `with`')

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._share is None

    def close(self) -> None:
        """Gives up this object's part in it. Closing twice is harmless."""
        self._share = None


# What handles know of each other. They keep the objects themselves and not their modules: a buffer's device makes
# buffers, and modules that named each other for that would be a circle.

class DeviceHandle(Protocol):
    """A `Device`, for what it makes."""

    _runtime_share: Share

    @property
    def _handle(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def is_cpu(self) -> bool: ...
    @property
    def ordinal(self) -> int: ...
    @property
    def stream(self) -> Any: ...
    def wrap_stream(self, handle: int) -> Any: ...


class StreamHandle(Protocol):
    """A `Stream`, for scopes."""

    @property
    def _handle(self) -> Share: ...
    def wait(self, other: Any) -> None: ...


class BufferHandle(Protocol):
    """A `Buffer`, for scopes."""

    home: Any
    shape: tuple[int, ...]
    dtype: DType
    readonly: bool

    @property
    def _handle(self) -> Share: ...
    @property
    def _live(self) -> Share: ...


def handle_of(given: Any, kind: str) -> Any:
    """The handle of a 'Stream', a 'Device' or a 'Buffer': C would take one for another."""
    if getattr(given, '_handle_kind', '') != kind:
        raise TypeError(f'a {type(given).__name__} where a {kind} of isthmus belongs')
    return given._handle


def refuse_array(of: object) -> NoReturn:
    """For `__array__` of what NumPy cannot read: without it NumPy makes an array of one object."""
    raise TypeError(f"{of!r} is no array. Try: numpy.asarray(scope) with `scope` of its host('r')")


class Turn:
    """The lock of a ring or a reader and of its frames, which one thread at a time may use (isthmus.h). The collector may
    drop a frame on the thread that has it. After fork() the child has a lock of its own: the thread that had the other
    one may be the parent's alone."""

    __slots__ = ('lock', '__weakref__')

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _turns.add(self)


_turns: weakref.WeakSet[Turn] = weakref.WeakSet()


def _renew_turns() -> None:
    for turn in _turns:
        turn.lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_turns)


@functools.cache
def free_of(name: str) -> int:
    """The address of a freeing function of libisthmus-c."""
    function: Any = getattr(c, f'isthmus_{name}_free')
    return address(function)


def owned(kind: str, function: Any, *arguments: Any, first: Share | None = None) -> Share:
    """Calls a fallible function whose last result is a handle, which belongs to the share from the call on. Where a signal's
    handler raises behind the call, the handle is freed at once: the traceback may keep the share."""
    share = Share(0, free_of(kind), first)
    try:
        place = share.place()
        call(function, *arguments, ctypes.byref(place))
        share.handle = place.value or 0
    except BaseException:
        handle = share.take()
        if handle:
            getattr(c, f'isthmus_{kind}_free')(ctypes.c_void_p(handle))
        raise
    return share
