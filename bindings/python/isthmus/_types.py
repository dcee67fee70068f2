# SPDX-License-Identifier: Apache-2.0
"""Element types: what 'u1', 'float32', numpy.float32 and torch.float32 have in common."""
from __future__ import annotations

import dataclasses
import operator
import struct
import sys
from typing import Any

from .errors import InvalidArgument

INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6   # DLDataTypeCode


@dataclasses.dataclass(frozen=True)
class DType:
    """An element type. `name` as NumPy writes it, `format` as the struct module does ('' where it cannot)."""

    name: str
    code: int
    itemsize: int
    format: str

    @property
    def typestr(self) -> str:
        """As the array interfaces write it: '<f4'."""
        letter = {INT: 'i', UINT: 'u', FLOAT: 'f', BFLOAT: 'V', COMPLEX: 'c', BOOL: 'b'}[self.code]
        order = '|' if self.itemsize == 1 else ('<' if sys.byteorder == 'little' else '>')
        return f'{order}{letter}{self.itemsize}'

    def bytes_of(self, value: Any) -> bytes:
        """An element with this value."""
        try:
            if self.code == BOOL:
                return bytes([bool(value)])
            if self.code == COMPLEX:
                number = complex(value)
                return struct.pack({8: '=2f', 16: '=2d'}[self.itemsize], number.real, number.imag)
            if self.code == BFLOAT:
                return _bfloat16(float(value))
            if self.code == FLOAT:
                return struct.pack('=' + (self.format or 'e'), float(value))
            return operator.index(value).to_bytes(self.itemsize, sys.byteorder, signed=self.code == INT)
        except OverflowError:
            raise InvalidArgument(f'{value} is no {self.name}', 'a number that the element type has') from None

    def __str__(self) -> str:
        return self.name


def _bfloat16(value: float) -> bytes:
    """The nearest one; of two the one whose last bit is 0."""
    bits, = struct.unpack('=I', struct.pack('=f', value))
    rounded = bits + 0x7fff + (bits >> 16 & 1) if value == value else bits | 0x400000
    return struct.pack('=H', rounded >> 16)


_all = [DType('bool', BOOL, 1, '?'), DType('bfloat16', BFLOAT, 2, ''), DType('float16', FLOAT, 2, ''),
        DType('float32', FLOAT, 4, 'f'), DType('float64', FLOAT, 8, 'd'), DType('complex64', COMPLEX, 8, ''),
        DType('complex128', COMPLEX, 16, '')]
for _size, _letter in ((1, 'b'), (2, 'h'), (4, 'i'), (8, 'q')):
    _all.append(DType(f'int{8 * _size}', INT, _size, _letter))
    _all.append(DType(f'uint{8 * _size}', UINT, _size, _letter.upper()))

_by_name = {one.name: one for one in _all}
_by_name |= {'float': _by_name['float64'], 'int': _by_name['int64'], 'complex': _by_name['complex128']}
_by_short = {one.typestr[1:]: one for one in _all} | {'?': _by_name['bool'], 'b1': _by_name['bool']}
_by_code = {(one.code, one.itemsize): one for one in _all}
_NATIVE = {'l': ('int', 8), 'L': ('uint', 8), 'n': ('int', 8), 'N': ('uint', 8), 'c': ('uint', 1), 'e': ('float', 2)}


def dtype_of(given: Any) -> DType:
    """The element type that is meant by a name, a NumPy or array-API dtype, or Python's float, int, bool."""
    if isinstance(given, DType):
        return given
    if isinstance(given, type):
        words = given.__name__
    elif isinstance(given, str):
        words = given
    elif getattr(given, 'byteorder', '=') == ('>' if sys.byteorder == 'little' else '<'):
        raise InvalidArgument(f'elements of {given!r} have the other byte order', 'convert them first')
    else:   # numpy.dtype('uint8'), torch.float32, array_api_strict.float32
        words = str(getattr(given, 'name', given))
    words = words.rsplit('.', 1)[-1]
    order = words[:1]
    if order in '<>=|' and order:
        if order == ('>' if sys.byteorder == 'little' else '<'):
            raise InvalidArgument(f'elements of {given!r} have the other byte order', 'convert them first')
        words = words[1:]
    found = _by_name.get(words) or _by_short.get(words)
    if found is None:
        raise InvalidArgument(f'{given!r} is no element type', 'one of ' + ', '.join(sorted(one.name for one in _all)))
    return found


def dtype_of_format(format: str, itemsize: int) -> DType:
    """The element type of a buffer's format ('B', '<f', 'l')."""
    letter = format.lstrip('@=<>|')
    if format[:1] == ('>' if sys.byteorder == 'little' else '<') and itemsize > 1:
        raise InvalidArgument(f'elements of format {format!r} have the other byte order', 'convert them first')
    for one in _all:
        if one.format == letter and one.itemsize == itemsize:
            return one
    if letter in _NATIVE:
        return _by_name[f'{_NATIVE[letter][0]}{8 * itemsize}']
    if letter in ('Zf', 'Zd'):
        return _by_name[f'complex{8 * itemsize}']
    raise InvalidArgument(f'elements of format {format!r} are no numbers', 'adopt numbers, or a view of bytes')


def dtype_of_dlpack(code: int, bits: int, lanes: int) -> DType:
    found = _by_code.get((code, bits // 8)) if lanes == 1 and bits % 8 == 0 else None
    if found is None:
        raise InvalidArgument(f'DLPack elements of code {code} with {bits} bits and {lanes} lanes are not supported',
                              'view them as bytes')
    return found


_MOST = 2**58   # elements of 16 bytes, and of which every size and stride fits in 63 bits


def number_of(given: Any, what: str, most: int = 2**64 - 1) -> int:
    """A number for C, which would take another one modulo 2**64."""
    number = operator.index(given)
    if not 0 <= number <= most:
        raise InvalidArgument(f'{what} of {number}', f'0 to {most}')
    return number


def shape_of(given: Any) -> tuple[int, ...]:
    """A shape as a tuple: 480, (480, 640), [480, 640]."""
    sizes = (given,) if hasattr(given, '__index__') else tuple(given)
    shape = tuple(operator.index(size) for size in sizes)
    if any(size < 0 for size in shape):
        raise InvalidArgument(f'the shape {shape} has a negative size')
    if count_of(tuple(max(size, 1) for size in shape)) >= _MOST:
        raise InvalidArgument(f'the shape {shape} is larger than any machine', 'sizes whose product is below 2**58')
    return shape


def count_of(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def wait_of(seconds: float | None) -> int:
    """Seconds as the library takes them; None: the runtime's own limit, 0: do not wait."""
    if seconds is None:
        return -1
    if not seconds >= 0:   # also not a number
        raise InvalidArgument(f'a wait of {seconds} seconds', '0 not to wait, None for the limit of the runtime')
    nanoseconds = seconds * 1e9
    if nanoseconds >= 2**63:
        return 2**63 - 1
    return max(int(nanoseconds), 1) if seconds else 0   # a short wait is a wait
