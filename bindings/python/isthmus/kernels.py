# SPDX-License-Identifier: Apache-2.0
"""Kernels by name, and modules of GPU code.

    isthmus.kernels.load('build/libmy_kernels.so')             # a library whose ISTHMUS_KERNELs register themselves
    isthmus.kernels.brighten(stream, n, buffer, 40)            # n: the index space, an int or a tuple
    isthmus.kernels.find('camera.to_gray')(stream, (640, 480), source, target)

Arguments are buffers and numbers, in the order of the kernel's parameters: `print(isthmus.kernels.brighten)` shows them.
The call does not wait; a scope that is open on one of the buffers refuses it (`isthmus.InUse`). On the CPU device the
kernel's CPU version runs.
"""
from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator, Sequence
from ctypes import byref, c_uint64, c_void_p
from os import PathLike, fsencode
from typing import TYPE_CHECKING, Any

from . import _structures as structures
from ._handles import Owner, free_of
from ._library import FOLDER, c, call, make, text
from ._types import dtype_of
from .buffers import Buffer
from .errors import InvalidArgument

if TYPE_CHECKING:
    from .runtime import Device
    from .streams import Stream

# C++ types of value parameters, as struct writes them.
_FORMATS = {'bool': '?', 'char': 'b', 'signed char': 'b', 'unsigned char': 'B', 'short': 'h', 'unsigned short': 'H',
            'int': 'i', 'unsigned int': 'I', 'unsigned': 'I', 'long': 'l', 'unsigned long': 'L', 'long long': 'q',
            'unsigned long long': 'Q', 'float': 'f', 'double': 'd', 'int8_t': 'b', 'uint8_t': 'B', 'int16_t': 'h',
            'uint16_t': 'H', 'int32_t': 'i', 'uint32_t': 'I', 'int64_t': 'q', 'uint64_t': 'Q', 'size_t': 'Q',
            'ptrdiff_t': 'q'}


def _split(parameters: str) -> list[str]:
    """The parameters of a declaration: 'Index i, View<float> out' without the commas inside of <>."""
    found, depth, begin = [], 0, 0
    for at, letter in enumerate(parameters):
        depth += (letter in '<([') - (letter in '>)]')
        if letter == ',' and depth == 0:
            found.append(parameters[begin:at])
            begin = at + 1
    found.append(parameters[begin:])
    return [one.strip() for one in found if one.strip()]


def _type_of(parameter: str) -> str:
    words = re.sub(r'\bstd::|\bconst\b|&', '', parameter).split()
    return ' '.join(words[:-1] if len(words) > 1 else words)


def _value(kernel: str, parameter: str, value: Any) -> bytes:
    """The bytes of a number for a parameter; ctypes objects and packed structures are taken as they are."""
    if isinstance(value, (bytes, ctypes.Structure, ctypes.Array, ctypes._SimpleCData)):
        return bytes(value)
    format = _FORMATS.get(_type_of(parameter))
    if format is None:
        raise InvalidArgument(f"kernel '{kernel}': a {type(value).__name__} for its parameter '{parameter}'",
                              'bytes, or a ctypes.Structure as the parameter is laid out')
    try:
        return struct.pack(format, value.__index__() if format not in '?fd' and hasattr(value, '__index__') else value)
    except (struct.error, OverflowError) as problem:
        raise InvalidArgument(f"kernel '{kernel}': {value!r} is no value for its parameter '{parameter}': {problem}",
                              'a number that the parameter holds') from None


def _packed(values: Sequence[bytes | Buffer]) -> tuple[Any, list[Any]]:
    """The isthmus_argument array, and what it points to."""
    array = (structures.Argument * max(len(values), 1))()
    kept: list[Any] = []
    for at, value in enumerate(values):
        if isinstance(value, Buffer):
            array[at].buffer = value._handle
        else:
            memory = ctypes.create_string_buffer(value, len(value))
            kept.append(memory)
            array[at].value, array[at].value_bytes = ctypes.addressof(memory), len(value)
    return array, kept


def _three(extent: Any) -> list[int]:
    sizes = [extent] if hasattr(extent, '__index__') else list(extent)
    if not 1 <= len(sizes) <= 3:
        raise InvalidArgument(f'the index space {extent!r} has {len(sizes)} dimensions', 'an int, or a tuple of up to 3')
    return [size.__index__() for size in sizes] + [1] * (3 - len(sizes))


class Kernel:
    """A registered kernel: call it with a stream, the index space, and its arguments."""

    __slots__ = ('name', 'parameters', 'rank', '_pointer')

    def __init__(self, name: str, pointer: int) -> None:
        self.name, self._pointer = name, pointer
        self.rank = int(c.isthmus_kernel_rank(pointer))
        all = _split(text(c.isthmus_kernel_parameters(pointer)))
        # The first one is the place in the index space, which the launch fills in.
        self.parameters = tuple(one for one in all if not re.match(r'(const )?(isthmus::)?(Index|Block)\w*\b', one))

    def __call__(self, stream: Stream, extent: int | tuple[int, ...], /, *arguments: Any) -> None:
        """Launches it over `extent` (an int, or a tuple (x, y, z)). Does not wait."""
        if len(arguments) != len(self.parameters):
            raise InvalidArgument(f"kernel '{self.name}' takes {len(self.parameters)} arguments, not {len(arguments)}",
                                  ', '.join(self.parameters))
        array, kept = _packed([one if isinstance(one, Buffer) else _value(self.name, parameter, one)
                               for one, parameter in zip(arguments, self.parameters)])
        sizes = (c_uint64 * 3)(*_three(extent))
        call(c.isthmus_stream_launch, stream._handle, self._pointer, sizes, array, len(arguments))
        del kept

    def __repr__(self) -> str:
        return f'<isthmus kernel {self.name}({", ".join(self.parameters)}), {self.rank} dimensions>'


class ModuleKernel(Owner):
    """An entry of a module: call it with a stream, grid, block, and its arguments, as <<<grid, block>>>."""

    __slots__ = ('name', '_parameters')

    def __init__(self, handle: int, name: str, parameters: tuple[str, ...]) -> None:
        super().__init__(handle, free_of('module_kernel'))
        self.name, self._parameters = name, parameters

    def __call__(self, stream: Stream, grid: Any, block: Any, /, *arguments: Any, shared_bytes: int = 0) -> None:
        """Launches it. Does not wait."""
        if len(arguments) != len(self._parameters):
            raise InvalidArgument(f"'{self.name}' takes {len(self._parameters)} arguments, not {len(arguments)}",
                                  ', '.join(self._parameters))
        values: list[bytes | Buffer] = []
        for one, parameter in zip(arguments, self._parameters):
            values.append(one if isinstance(one, (Buffer, bytes))
                          else struct.pack(_FORMATS[dtype_of(parameter).name + '_t'] if 'int' in dtype_of(parameter).name
                                           else dtype_of(parameter).format, one))
        array, kept = _packed(values)
        shape = structures.sized(structures.LaunchShape, grid=(c_uint64 * 3)(*_three(grid)),
                                 block=(c_uint64 * 3)(*_three(block)), shared_bytes=shared_bytes)
        call(c.isthmus_stream_launch_module, stream._handle, self._handle, byref(shape), array, len(values))
        del kept


class Module(Owner):
    """Loaded GPU code; made by `isthmus.kernels.module()`."""

    __slots__ = ()

    def __init__(self, handle: int) -> None:
        super().__init__(handle, free_of('module'))

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of its entries, as far as they can be read."""
        return tuple(text(c.isthmus_module_entry(self._handle, at))
                     for at in range(c.isthmus_module_entry_count(self._handle)))

    def find(self, entry: str, *parameters: str) -> ModuleKernel:
        """An entry and its parameters, which are compared with the image's: 'int32', 'float32', … for values; 'r float32',
        'w uint8', 'rw int32' for pointers to elements that the kernel reads, writes, or both."""
        array = (structures.Parameter * max(len(parameters), 1))()
        for at, parameter in enumerate(parameters):
            mode, _, element = parameter.rpartition(' ')
            if mode not in ('', 'r', 'w', 'rw'):
                raise InvalidArgument(f'{parameter!r} is no parameter', "'int32', or 'r float32', 'w uint8', 'rw int32'")
            array[at].flags = {'': 0, 'r': 1, 'w': 2, 'rw': 3}[mode]
            array[at].bytes = dtype_of(element).itemsize
        made = make(c.isthmus_module_find, self._handle, entry.encode(), array, len(parameters))
        return ModuleKernel(made, entry, tuple(one.rpartition(' ')[2] for one in parameters))


def module(device: Device, image: bytes | str | PathLike[str]) -> Module:
    """Loads a cubin, a fatbin or PTX from memory (bytes) or a file (a path)."""
    if isinstance(image, bytes):
        return Module(make(c.isthmus_device_load_module, device._handle, image, len(image), None))
    return Module(make(c.isthmus_device_load_module_file, device._handle, fsencode(image), None))


_loaded: list[ctypes.CDLL] = []


def load(path: str | PathLike[str]) -> tuple[str, ...]:
    """Loads a library with kernels that register themselves (<isthmus/c_kernels.hpp>), for the rest of the process. The
    names that are new."""
    before = set(_Kernels())
    _loaded.append(ctypes.CDLL(str(path)))
    return tuple(name for name in _Kernels() if name not in before)


def load_camera() -> tuple[str, ...]:
    """Registers the camera kernels of the wheel ('camera.to_gray', …); again is harmless."""
    library = ctypes.CDLL(str(FOLDER / 'libisthmus-c-camera.so.1'))
    register = library.isthmus_camera_register_kernels
    register.restype, register.argtypes = ctypes.c_int32, [ctypes.POINTER(c_void_p)]
    before = set(_Kernels())
    call(register)
    return tuple(name for name in _Kernels() if name not in before)


def find(name: str) -> Kernel:
    """The registered kernel of this name."""
    pointer = c.isthmus_kernel_by_name(name.encode())
    if not pointer and name.startswith('camera.'):
        load_camera()
        pointer = c.isthmus_kernel_by_name(name.encode())
    if not pointer:
        import difflib
        names = list(_Kernels())
        near = difflib.get_close_matches(name, names, 1)
        raise InvalidArgument(f'no kernel is registered as {name!r}',
                              f'{near[0]!r}' if near else 'isthmus.kernels.load(…), a library with kernels; registered: '
                              + (', '.join(names) or 'none'))
    return Kernel(name, pointer)


class _Kernels:
    """The names of the registered kernels."""

    def __iter__(self) -> Iterator[str]:
        for at in range(c.isthmus_kernel_count()):
            yield text(c.isthmus_kernel_name(at))


def names() -> tuple[str, ...]:
    """The names of the registered kernels."""
    return tuple(_Kernels())


def __getattr__(name: str) -> Kernel:
    if name.startswith('_'):
        raise AttributeError(name)
    try:
        return find(name)
    except InvalidArgument as problem:
        raise AttributeError(str(problem)) from None
