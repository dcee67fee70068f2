# SPDX-License-Identifier: Apache-2.0
"""Errors. Every failure of the library is an `isthmus.Error` whose class says of which kind it is.

    try:
        with buffer.host('r', wait=0) as pixels: ...
    except isthmus.NotReady:
        ...                          # the GPU still works on it
    except isthmus.Error as error:
        print(error.code, error.id, error.remedy)

The text of an error says what was asked, which fact refused it, and what works instead. `error.id` names its entry in
docs/errors.md of isthmus.
"""
from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """The kind of a failure; the numbers are those of C and C++."""

    OK = 0
    INVALID_ARGUMENT = 1
    WRONG_DEVICE = 2
    NOT_ACCESSIBLE = 3
    IN_USE = 4
    UNSUPPORTED = 5
    OUT_OF_MEMORY = 6
    NOT_PERMITTED = 7
    TIMED_OUT = 8
    NOT_READY = 9
    DEVICE_LOST = 10
    NO_DRIVER = 11
    DRIVER_TOO_OLD = 12
    DRIVER_MISMATCH = 13
    NO_DEVICE = 14
    SYSTEM_LIMIT = 15
    NO_GPU_CODE = 16
    INVALID_HANDLE = 17
    FORKED = 18
    DRIVER_ERROR = 19
    SYSTEM_ERROR = 20
    CAPTURE_ERROR = 21
    UNVERIFIED = 22
    ALREADY_RELEASED = 23
    INTERIOR_POINTER = 24
    UNKNOWN_POINTER = 25
    NOT_ORDERED = 26
    PEER_LOST = 27
    PEER_BROKE_RULES = 28
    OVERTAKEN = 29
    ENDED = 30


class Error(RuntimeError):
    """A refused or failed call. Subclasses are its kinds: `except isthmus.InUse`.

    code:        the kind, an `isthmus.Code` (an int for a newer library's)
    id:          the entry of docs/errors.md, such as 'K005'; '' for errors of this package
    message:     what was asked, and which fact refused it
    remedy:      what works instead; may be ''
    driver_code: what the driver (CUresult) or the system (errno) answered; 0: neither was asked
    """

    _code: Code = Code.INVALID_ARGUMENT

    def __init__(self, message: str, remedy: str = '', *, code: int | None = None, id: str = '',
                 driver_code: int = 0, text: str | None = None) -> None:
        number = self._code if code is None else code
        self.code: int = Code(number) if number in Code._value2member_map_ else number
        self.id = id
        self.message = message
        self.remedy = remedy
        self.driver_code = driver_code
        super().__init__(text or (f'{message}. Try: {remedy}' if remedy else message))


class InvalidArgument(Error, ValueError):
    """A value that no machine accepts."""
    _code = Code.INVALID_ARGUMENT


class WrongDevice(Error):
    """The object belongs to another device or another runtime."""
    _code = Code.WRONG_DEVICE


class NotAccessible(Error):
    """The device or the CPU may not access this memory on this machine."""
    _code = Code.NOT_ACCESSIBLE


class InUse(Error):
    """Another use is open or still running: a scope, an array made in a scope, a native scope, a frame."""
    _code = Code.IN_USE


class ArrayAlive(InUse, BufferError):
    """A host scope was closed while an array, a tensor or a memoryview of it lives. The scope stays open until the last
    of them is gone."""


class Unsupported(Error):
    """This machine, driver or build lacks it."""
    _code = Code.UNSUPPORTED


class OutOfMemory(Error, MemoryError):
    """Device, host or budget exhausted."""
    _code = Code.OUT_OF_MEMORY


class NotPermitted(Error, PermissionError):
    """Forbidden by the operating system or the driver."""
    _code = Code.NOT_PERMITTED


class TimedOut(Error, TimeoutError):
    """A deadline passed; the work may still be running."""
    _code = Code.TIMED_OUT


class NotReady(Error, BlockingIOError):
    """The caller asked not to wait (`wait=0`), and the work is still running."""
    _code = Code.NOT_READY


class DeviceLost(Error):
    """The device answers nothing else in this process."""
    _code = Code.DEVICE_LOST


class NoGpuCode(Error):
    """A kernel has no code for this GPU."""
    _code = Code.NO_GPU_CODE


class InvalidHandle(Error, ValueError):
    """A closed or released object was used."""
    _code = Code.INVALID_HANDLE


class Forked(Error):
    """The runtime was opened before fork(); the child cannot use it."""
    _code = Code.FORKED


class DriverError(Error):
    """Any other answer of the driver; `driver_code` has it."""
    _code = Code.DRIVER_ERROR


class SystemFailed(Error, OSError):
    """Any other answer of the operating system; `driver_code` is its errno."""
    _code = Code.SYSTEM_ERROR


class CaptureError(Error):
    """Refused because a stream is being captured."""
    _code = Code.CAPTURE_ERROR


class NotOrdered(Error):
    """Memory was used on a stream before it is ordered there."""
    _code = Code.NOT_ORDERED


class PeerLost(Error, ConnectionError):
    """The other process is gone, or gave this one up."""
    _code = Code.PEER_LOST


class PeerBrokeRules(Error):
    """The other process sent what no correct one sends."""
    _code = Code.PEER_BROKE_RULES


class Overtaken(Error):
    """The frame was overwritten while it was read: results made from it are invalid."""
    _code = Code.OVERTAKEN


class Ended(Error):
    """The ring of frames is closed."""
    _code = Code.ENDED


_classes: dict[int, type[Error]] = {}


def _collect(base: type[Error]) -> None:
    for one in base.__subclasses__():
        if '_code' in vars(one):
            _classes.setdefault(int(one._code), one)
        _collect(one)


_collect(Error)


def class_of(code: int) -> type[Error]:
    """The class of errors of this kind; `Error` for kinds without one."""
    return _classes.get(code, Error)
