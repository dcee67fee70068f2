# SPDX-License-Identifier: Apache-2.0
"""Kernels by name, modules of GPU code, and CUDA C++ by NVRTC.

    isthmus.kernels.load('build/libmy_kernels.so')             # a library whose ISTHMUS_KERNELs register themselves
    isthmus.kernels.brighten(stream, n, buffer, 40)            # n: the index space, an int or a tuple
    isthmus.kernels.find('camera.to_gray')(stream, (640, 480), source, target)

Arguments are buffers and numbers, in the order of the kernel's parameters: `print(isthmus.kernels.brighten)` shows them.
The call does not wait; a scope that is open on one of the buffers refuses it (`isthmus.InUse`). On the CPU device the
kernel's CPU version runs.

    isthmus.kernels.module(device, 'brighten.cubin')           # ready-made GPU code: see isthmus.modules
    isthmus.kernels.compile(device, cuda_source)               # by NVRTC, where it is installed: see isthmus.nvrtc
"""
from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from ctypes import c_uint64, c_void_p
from os import PathLike
from typing import TYPE_CHECKING, Any

from . import modules, nvrtc
from ._arguments import RAW, number, packed, refuse_readonly, three
from ._handles import handle_of
from ._library import FOLDER, c, call, text
from ._types import DType, dtype_of_format
from .buffers import Buffer
from .errors import InvalidArgument
from .modules import Module, StandIn

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


def _element_of(parameter: str) -> DType | None:
    """The element type of 'View<const std::uint8_t> frame'; None: one that Python does not know, or no view."""
    found = re.match(r'(?:isthmus::)?(?:View|Out)<\s*(?:const\s+)?(?:std::)?([\w ]+?)\s*>', parameter)
    format = _FORMATS.get(found[1]) if found else None
    return dtype_of_format(format, struct.calcsize(format)) if format else None


def _argument(kernel: str, parameter: str, value: Any) -> bytes | Buffer:
    """An argument for a parameter; ctypes objects and packed structures are taken as they are."""
    if isinstance(value, Buffer):
        element = _element_of(parameter)
        if element not in (None, value.dtype):
            raise InvalidArgument(f"kernel '{kernel}': a buffer of {value.dtype} for its parameter '{parameter}'",
                                  f"a buffer of {element}, or Buffer.reshaped(…, '{element}') for the same bytes")
        if not re.search(r'\bconst\b', parameter):
            refuse_readonly(kernel, parameter, value)
        return value
    if isinstance(value, RAW):
        return bytes(value)
    format = _FORMATS.get(_type_of(parameter))
    if format is None:
        raise InvalidArgument(f"kernel '{kernel}': a {type(value).__name__} for its parameter '{parameter}'",
                              'bytes, or a ctypes.Structure as the parameter is laid out')
    return number(kernel, parameter, format, value)


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
        array, kept = packed([_argument(self.name, parameter, one)
                              for one, parameter in zip(arguments, self.parameters)])
        sizes = (c_uint64 * 3)(*three(extent))
        call(c.isthmus_stream_launch, handle_of(stream, 'Stream'), self._pointer, sizes, array, len(arguments))
        del kept

    def __repr__(self) -> str:
        return f'<isthmus kernel {self.name}({", ".join(self.parameters)}), {self.rank} dimensions>'


def module(device: Device, image: bytes | str | PathLike[str], *, stand_ins: Mapping[str, StandIn] | None = None,
           cache_folder: str | PathLike[str] | None = None) -> Module:
    """Loads a cubin, a fatbin or PTX from memory (bytes) or a file (a path): see `isthmus.modules`.

    stand_ins:    what runs in place of entries on the CPU device and on simulated machines
    cache_folder: keeps what the driver makes of PTX; it must exist. None: the driver's own cache
    Raises `NoGpuCode` for other GPUs' code, and PTX that does not compile.
    """
    return modules.load(device, image, stand_ins, cache_folder)


def compile(device: Device, source: str | bytes, *, name: str = 'kernels.cu', options: Sequence[str] = (),
            headers: Mapping[str, str | bytes] | None = None, entries: Sequence[str] = (),
            stand_ins: Mapping[str, StandIn] | None = None) -> Module:
    """Compiles CUDA C++ for this device by NVRTC, and loads it.

    name:      of the source, in messages
    options:   of NVRTC: '--use_fast_math', '--include-path=…'; also '--gpu-architecture=…' in place of the device's
    headers:   texts by the names under which the source includes them
    entries:   entries by their names in C++ that `Module.find()` shall know: 'scale<float>'. `extern "C"` ones need none
    stand_ins: as for `module()`
    Raises `Unsupported` where NVRTC is not installed, and `NoGpuCode` with the compiler's words. `Module.log` has its
    warnings.
    """
    image = nvrtc.compiled(source, nvrtc.architecture_of(device), name, options, headers or {}, entries)
    return modules.load(device, image.data, stand_ins, lowered=image.names, log=image.log)


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
