# SPDX-License-Identifier: Apache-2.0
"""Arguments of launches, as libisthmus-c takes them."""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from . import _structures as structures
from .buffers import Buffer
from .errors import InvalidArgument

RAW = (bytes, ctypes.Structure, ctypes.Array, ctypes._SimpleCData)   # values that are laid out already


def number(kernel: str, parameter: str, format: str, value: Any) -> bytes:
    """The bytes of a number; `format` is struct's."""
    try:
        return struct.pack(format, value.__index__() if format not in '?efd' and hasattr(value, '__index__') else value)
    except (struct.error, OverflowError) as problem:
        raise InvalidArgument(f"kernel '{kernel}': {value!r} is no value for its parameter '{parameter}': {problem}",
                              'a number that the parameter holds') from None


def refuse_readonly(kernel: str, parameter: str, buffer: Buffer) -> None:
    """For parameters that the kernel writes: adoption of read-only memory promised that nothing does."""
    if buffer.readonly:
        raise InvalidArgument(f"kernel '{kernel}': it writes its parameter '{parameter}', and {buffer!r} was adopted from "
                              'read-only memory', 'another buffer, or a kernel that reads the parameter')


def packed(values: Sequence[bytes | Buffer]) -> tuple[Any, list[Any]]:
    """The isthmus_argument array, and what it points to."""
    array = (structures.Argument * max(len(values), 1))()
    kept: list[Any] = []
    for at, value in enumerate(values):
        if isinstance(value, Buffer):
            share = value._handle
            array[at].buffer = share.handle
            kept.append(share)   # another thread may close the buffer
        else:
            memory = ctypes.create_string_buffer(value, len(value))
            kept.append(memory)
            array[at].value, array[at].value_bytes = ctypes.addressof(memory), len(value)
    return array, kept


def three(extent: Any, otherwise: int = 1) -> list[int]:
    """An int, or a tuple of up to 3, as three numbers."""
    sizes = [extent] if hasattr(extent, '__index__') else list(extent)
    if not 1 <= len(sizes) <= 3:
        raise InvalidArgument(f'the index space {extent!r} has {len(sizes)} dimensions', 'an int, or a tuple of up to 3')
    numbers = [size.__index__() for size in sizes]
    if min(numbers) < 0 or max(numbers) >= 2**64:
        raise InvalidArgument(f'the index space {extent!r} has a size that is negative or too large', 'sizes of 1 and more')
    return numbers + [otherwise] * (3 - len(sizes))
