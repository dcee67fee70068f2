# SPDX-License-Identifier: Apache-2.0
"""Ready-made GPU code: a cubin, a fatbin or PTX, and CUDA C++ source that NVRTC compiles.

    module = isthmus.kernels.module(device, 'brighten.cubin')          # or the bytes of an image
    module = isthmus.kernels.compile(device, source)                   # needs NVRTC: see isthmus.nvrtc
    brighten = module.find('brighten', 'rw uint8', 'uint32', 'int32')
    brighten(stream, (n + 255) // 256, 256, buffer, n, 40)             # <<<grid, block>>>; does not wait

`find()` declares the parameters: 'int32', 'float32', … for values; 'r float32', 'w uint8', 'rw int32' for pointers to
elements that the kernel reads, writes, or both. They decide what is waited for, copied and refused, as for other kernels.

No GPU code runs on the CPU device and on simulated machines. There a function of Python can stand in:

    def brighten_on_cpu(shape, pixels, count, by):                     # once for the whole grid
        numpy.ctypeslib.as_array(pixels, (count,))[:] += by            # pixels: a ctypes pointer; shape.grid, shape.block

    isthmus.kernels.module(device, image, stand_ins={
        'brighten': isthmus.kernels.StandIn(brighten_on_cpu, 'rw uint8', 'uint32', 'int32')})
"""
from __future__ import annotations

import ctypes
import dataclasses
import struct
from collections.abc import Callable, Mapping
from ctypes import POINTER, byref, c_uint64, c_void_p
from os import PathLike, fsencode
from typing import TYPE_CHECKING, Any

from . import _structures as structures
from ._arguments import RAW, number, packed, refuse_readonly, three
from ._handles import Owner, Share, handle_of, owned
from ._library import address, c, call, glue, text
from ._types import DType, dtype_of
from .buffers import Buffer
from .errors import InvalidArgument

if TYPE_CHECKING:
    from .runtime import Device
    from .streams import Stream

_MODES = {'r': 1, 'w': 2, 'rw': 3}


class Parameter:
    """A declared parameter: a pointer to elements (`flags`: 1 reads, 2 writes, 3 both), or a value (0)."""

    __slots__ = ('title', 'flags', 'dtype', 'structure')
    dtype: DType | None
    structure: Any

    def __init__(self, declared: Any) -> None:
        self.title, self.flags, self.dtype, self.structure = str(declared), 0, None, None
        if isinstance(declared, type) and issubclass(declared, RAW[1:]):
            self.title, self.structure = declared.__name__, declared
            return
        mode, _, element = declared.rpartition(' ') if isinstance(declared, str) else ('', '', declared)
        if mode not in _MODES and mode != '':
            raise InvalidArgument(f'{declared!r} is no parameter', "'int32' or a ctypes.Structure for a value; 'r float32', "
                                  "'w uint8', 'rw int32' for a pointer")
        self.flags, self.dtype = _MODES.get(mode, 0), dtype_of(element)

    def declare(self, to: Any) -> None:
        to.flags = self.flags
        if self.dtype is not None:
            to.bytes = self.dtype.itemsize
        else:
            to.bytes, to.alignment = ctypes.sizeof(self.structure), ctypes.alignment(self.structure)

    def packed(self, kernel: str, given: Any) -> bytes | Buffer:
        """An argument for it."""
        if self.flags:
            return self._memory(kernel, given)
        if isinstance(given, RAW):
            return bytes(given)
        format = self._format()
        if isinstance(given, Buffer) or not format:
            raise InvalidArgument(f"kernel '{kernel}': a {type(given).__name__} for its parameter '{self.title}'",
                                  'a number' if format else 'bytes, or a ctypes object as the parameter is laid out')
        return number(kernel, self.title, format, given)

    def _memory(self, kernel: str, given: Any) -> Buffer:
        if not isinstance(given, Buffer):
            raise InvalidArgument(f"kernel '{kernel}': a {type(given).__name__} for its parameter '{self.title}'",
                                  'a buffer: Device.allocate_shared(), Device.adopt()')
        if given.dtype != self.dtype:
            raise InvalidArgument(f"kernel '{kernel}': a buffer of {given.dtype} for its parameter '{self.title}'",
                                  f"a buffer of {self.dtype}, or Buffer.reshaped(…, '{self.dtype}') for the same bytes")
        if self.flags & structures.WRITE:
            refuse_readonly(kernel, self.title, given)
        return given

    def _format(self) -> str:
        if self.dtype is None:
            return ''
        return 'e' if self.dtype.name == 'float16' else self.dtype.format

    def read(self, place: int) -> Any:
        """What a stand-in gets of the parameter that lies there."""
        if self.dtype is None:
            return self.structure.from_buffer_copy(ctypes.string_at(place, ctypes.sizeof(self.structure)))
        if self.flags:
            return ctypes.cast(c_void_p.from_address(place).value or 0, POINTER(_element_of(self.dtype)))
        value = ctypes.string_at(place, self.dtype.itemsize)
        format = self._format()
        return struct.unpack(format, value)[0] if format else value


def _element_of(dtype: DType) -> Any:
    """The element of a ctypes pointer; bytes where ctypes has none."""
    name = {'float32': 'float', 'float64': 'double'}.get(dtype.name, dtype.name)
    return getattr(ctypes, f'c_{name}', None) or ctypes.c_uint8 * dtype.itemsize


def _declared(parameters: tuple[Parameter, ...]) -> Any:
    array = (structures.Parameter * max(len(parameters), 1))()
    for one, place in zip(parameters, array):
        one.declare(place)
    return array


class StandIn:
    """A function that runs in place of an entry where no GPU does: function(shape, *parameters), once for the whole grid,
    with `shape.grid`, `shape.block` (tuples) and `shape.shared_bytes`, ctypes pointers for memory, and values. Any thread
    calls it, and it must not call isthmus; an exception in it goes to sys.unraisablehook, and the launch counts as done.
    What it drops, and what the collector drops in it, ends behind it. At the end of the interpreter, behind the handlers of
    atexit, no thread of the library calls it any more, and those that run are waited for, 60 s at most."""

    __slots__ = ('function', 'parameters')

    def __init__(self, function: Callable[..., object], *parameters: Any) -> None:
        self.function, self.parameters = function, tuple(map(Parameter, parameters))


@dataclasses.dataclass(frozen=True)
class Shape:
    """How an entry was launched."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int


_Run = ctypes.CFUNCTYPE(None, c_void_p, POINTER(structures.LaunchShape), POINTER(c_void_p))
# The library calls stand-ins until the last launch of the last kernel has ended, whatever Python dropped before: they stay
# for the rest of the process.
_stay: list[Any] = []
_run_stand_in = address(glue.isthmus_python_run_stand_in)


def _run_of(stand_in: StandIn) -> Any:
    function, parameters = stand_in.function, stand_in.parameters

    def run(_: Any, shape: Any, places: Any) -> None:
        launched = shape.contents
        function(Shape(tuple(launched.grid), tuple(launched.block), launched.shared_bytes),
                 *[one.read(places[at]) for at, one in enumerate(parameters)])
    return _Run(run)


def _options(stand_ins: Mapping[str, StandIn], cache_folder: str | PathLike[str] | None) -> tuple[Any, list[Any]]:
    """The isthmus_module_options, and what it points to."""
    array = (structures.StandIn * max(len(stand_ins), 1))()
    kept: list[Any] = [array]
    for (entry, one), place in zip(stand_ins.items(), array):
        name, parameters, run = entry.encode(), _declared(one.parameters), _run_of(one)
        kept += [name, parameters, run]
        place.entry, place.parameter_count = name, len(one.parameters)
        place.parameters = ctypes.cast(parameters, c_void_p)
        place.run, place.context = _run_stand_in, ctypes.cast(run, c_void_p)
    folder = fsencode(cache_folder) if cache_folder is not None else None
    kept.append(folder)
    return structures.sized(structures.ModuleOptions, cache_folder=folder, stand_ins=ctypes.cast(array, c_void_p),
                            stand_in_count=len(stand_ins)), kept


class ModuleKernel(Owner):
    """An entry of a module: call it with a stream, grid, block, and its arguments, as <<<grid, block>>>."""

    __slots__ = ('name', 'parameters')

    def __init__(self, share: Share, name: str, parameters: tuple[Parameter, ...]) -> None:
        super().__init__(share)
        self.name, self.parameters = name, parameters

    def __call__(self, stream: Stream, grid: Any, block: Any, /, *arguments: Any, shared_bytes: int = 0,
                 cluster: Any = None) -> None:
        """Launches it; grid, block and cluster are ints or tuples (x, y, z). Does not wait."""
        if len(arguments) != len(self.parameters):
            raise InvalidArgument(f"kernel '{self.name}' takes {len(self.parameters)} arguments, not {len(arguments)}",
                                  ', '.join(one.title for one in self.parameters))
        array, kept = packed([one.packed(self.name, given) for one, given in zip(self.parameters, arguments)])
        shape = structures.sized(structures.LaunchShape, grid=(c_uint64 * 3)(*three(grid)),
                                 block=(c_uint64 * 3)(*three(block)), shared_bytes=shared_bytes,
                                 cluster=(c_uint64 * 3)(*(three(cluster) if cluster is not None else (0, 0, 0))))
        call(c.isthmus_stream_launch_module, handle_of(stream, 'Stream'), self._handle, byref(shape), array, len(arguments))
        del kept

    def __repr__(self) -> str:
        return f'<isthmus kernel {self.name}({", ".join(one.title for one in self.parameters)}) of a module>'


class Module(Owner):
    """Loaded GPU code; made by `isthmus.kernels.module()` and `isthmus.kernels.compile()`. Its code is unloaded behind the
    last kernel and the last launch."""

    __slots__ = ('log', '_lowered')

    def __init__(self, share: Share, lowered: Mapping[str, str] | None = None, log: str = '') -> None:
        super().__init__(share)
        self.log, self._lowered = log, dict(lowered or {})   # of the compiler; empty for ready-made images

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of its entries, as far as they can be read."""
        return tuple(text(c.isthmus_module_entry(self._handle, at))
                     for at in range(c.isthmus_module_entry_count(self._handle)))

    def find(self, entry: str, *parameters: Any) -> ModuleKernel:
        """An entry and its parameters, which are compared with the image's: 'int32', 'float32', … or a ctypes.Structure for
        values; 'r float32', 'w uint8', 'rw int32' for pointers to elements that the kernel reads, writes, or both."""
        declared = tuple(map(Parameter, parameters))
        made = owned('module_kernel', c.isthmus_module_find, self._handle, self._lowered.get(entry, entry).encode(),
                     _declared(declared), len(declared))
        return ModuleKernel(made, entry, declared)

    def __repr__(self) -> str:
        return f'<isthmus.Module{", closed" if self.closed else " with " + (", ".join(self.entries) or "no entries")}>'


def load(device: Device, image: bytes | str | PathLike[str], stand_ins: Mapping[str, StandIn] | None = None,
         cache_folder: str | PathLike[str] | None = None, lowered: Mapping[str, str] | None = None, log: str = '') -> Module:
    """What `isthmus.kernels.module()` does; `lowered` has the image's names of entries."""
    named = {(lowered or {}).get(entry, entry): one for entry, one in (stand_ins or {}).items()}
    options, kept = _options(named, cache_folder)
    if isinstance(image, (bytes, bytearray, memoryview)):
        data = bytes(image)
        share = owned('module', c.isthmus_device_load_module, handle_of(device, 'Device'), data, len(data), byref(options))
    else:
        share = owned('module', c.isthmus_device_load_module_file, handle_of(device, 'Device'), fsencode(image),
                      byref(options))
    if named:
        _stay.extend(kept)
    return Module(share, lowered, log)
