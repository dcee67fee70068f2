# SPDX-License-Identifier: Apache-2.0
"""NVRTC, NVIDIA's compiler for CUDA C++ at run time, where it is installed. `isthmus.kernels.compile()` uses it.

    pip install nvidia-cuda-nvrtc-cu12          # or nvidia-cuda-nvrtc, of CUDA 13; a CUDA toolkit has it, too

It is searched in $ISTHMUS_NVRTC (a file), in NVIDIA's wheels, in $CUDA_HOME, $CUDA_PATH and /usr/local/cuda, and then where
the dynamic linker looks; of several in one place the newest is taken. It needs no GPU and no driver.
"""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import glob
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any

from .errors import Error, InvalidArgument, NoGpuCode, OutOfMemory, Unsupported

if TYPE_CHECKING:
    from .runtime import Device

REMEDY = ('pip install nvidia-cuda-nvrtc-cu12 (CUDA 12) or nvidia-cuda-nvrtc (CUDA 13), a CUDA toolkit, or the path of '
          'libnvrtc.so in ISTHMUS_NVRTC; or compile beforehand (nvcc -cubin) and use isthmus.kernels.module()')
_OUT_OF_MEMORY, _INVALID_OPTION, _COMPILATION, _NO_BUILTINS = 1, 5, 6, 7   # of nvrtcResult
_NAMES = ('libnvrtc.so.13', 'libnvrtc.so.12', 'libnvrtc.so.11.2', 'libnvrtc.so')


@dataclasses.dataclass(frozen=True)
class Image:
    """What NVRTC made: a cubin or PTX, its words, and the image's names of the entries that were asked for."""

    data: bytes
    log: str
    names: Mapping[str, str]


def _newest(pattern: str) -> list[str]:
    """The files of a pattern, newest first; without NVIDIA's copies for other C libraries ('libnvrtc.alt.so')."""
    found = [path for path in glob.glob(pattern) if re.search(r'/libnvrtc\.so(\.[\d.]+)?$', path)]
    return sorted(found, key=lambda path: [int(part) for part in re.findall(r'\d+', os.path.basename(path))], reverse=True)


def candidates() -> Iterator[str]:
    """Where NVRTC may be, best first."""
    named = os.environ.get('ISTHMUS_NVRTC')
    if named:
        yield named
        return
    wheels = importlib.util.find_spec('nvidia')
    for folder in (wheels.submodule_search_locations if wheels else None) or ():
        yield from _newest(f'{folder}/cu[0-9]*/lib/libnvrtc.so*')           # nvidia-cuda-nvrtc: nvidia/cu13/lib
        yield from _newest(f'{folder}/cuda_nvrtc/lib/libnvrtc.so*')    # nvidia-cuda-nvrtc-cu12
    for toolkit in (os.environ.get('CUDA_HOME'), os.environ.get('CUDA_PATH'), '/usr/local/cuda'):
        for folder in ('lib64', 'lib'):
            if toolkit:
                yield from _newest(f'{toolkit}/{folder}/libnvrtc.so*')
    yield from _NAMES


@functools.cache
def _opened(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    program, texts = c_void_p, POINTER(c_char_p)
    for name, arguments in (
            ('Version', [POINTER(c_int), POINTER(c_int)]), ('GetNumSupportedArchs', [POINTER(c_int)]),
            ('GetSupportedArchs', [POINTER(c_int)]),
            ('CreateProgram', [POINTER(program), c_char_p, c_char_p, c_int, texts, texts]),
            ('AddNameExpression', [program, c_char_p]), ('CompileProgram', [program, c_int, texts]),
            ('GetProgramLogSize', [program, POINTER(c_size_t)]), ('GetProgramLog', [program, c_char_p]),
            ('GetCUBINSize', [program, POINTER(c_size_t)]), ('GetCUBIN', [program, c_char_p]),
            ('GetPTXSize', [program, POINTER(c_size_t)]), ('GetPTX', [program, c_char_p]),
            ('GetLoweredName', [program, c_char_p, texts]), ('DestroyProgram', [POINTER(program)])):
        function = getattr(library, 'nvrtc' + name)
        function.restype, function.argtypes = c_int, arguments
    library.nvrtcGetErrorString.restype, library.nvrtcGetErrorString.argtypes = c_char_p, [c_int]
    return library


def library() -> ctypes.CDLL:
    """The library; raises `Unsupported` where there is none."""
    problems = []
    for path in candidates():
        try:
            return _opened(path)
        except (OSError, AttributeError) as problem:   # not there, or older than CUDA 11.2
            problems.append(str(problem))
    raise Unsupported('CUDA C++ is compiled by NVRTC, which was not found: ' + '; '.join(problems), REMEDY)


def version() -> tuple[int, int]:
    """Its version, that of its CUDA toolkit."""
    major, minor = c_int(), c_int()
    _checked(library().nvrtcVersion(byref(major), byref(minor)), 'version')
    return major.value, minor.value


def architectures() -> tuple[int, ...]:
    """The architectures that it compiles for: 75, 90, …"""
    count = c_int()
    _checked(library().nvrtcGetNumSupportedArchs(byref(count)), 'architectures')
    found = (c_int * max(count.value, 1))()
    _checked(library().nvrtcGetSupportedArchs(found), 'architectures')
    return tuple(sorted(found[:count.value]))


def architecture_of(device: Device) -> str:
    """What to compile for: 'sm_90' where NVRTC knows the GPU; otherwise PTX for the newest one before it, which the driver
    compiles. Without a GPU the oldest: stand-ins run."""
    major, minor = device.compute_capability or (0, 0)
    asked, known = 10 * major + minor, architectures()
    if asked in known:
        return f'sm_{asked}'
    older = [one for one in known if one < asked]
    if asked and not older:
        raise Unsupported(f'NVRTC {".".join(map(str, version()))} compiles for compute capability {known[0] / 10} and '
                          f"newer, and '{device.name}' has {asked / 10}", 'an older NVRTC (nvidia-cuda-nvrtc-cu12)')
    return f'compute_{older[-1] if asked else known[0]}'


def _checked(answer: int, what: str, log: str = '') -> None:
    if answer == 0:
        return
    library_ = library()
    said = (library_.nvrtcGetErrorString(answer) or b'').decode('utf-8', 'replace')
    message = f'NVRTC, {what}: {said}' + (f'\n{log}' if log else '')
    if answer == _COMPILATION:
        raise NoGpuCode(message, 'correct the source')
    if answer == _INVALID_OPTION:
        raise InvalidArgument(message, "options of NVRTC, each as one text: '--use_fast_math'")
    if answer == _OUT_OF_MEMORY:
        raise OutOfMemory(message)
    if answer == _NO_BUILTINS:
        raise Unsupported(message, 'libnvrtc-builtins.so of the same version beside libnvrtc.so')
    raise Error(message, code=InvalidArgument._code)


def _texts(values: Sequence[bytes]) -> Any:
    return (c_char_p * max(len(values), 1))(*values)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


class _Program:
    """A program of NVRTC, destroyed with this object."""

    def __init__(self, source: bytes, name: str, headers: Mapping[str, str | bytes]) -> None:
        self.library, self.handle, self.name = library(), c_void_p(), name
        texts, names = [_bytes(one) for one in headers.values()], [one.encode() for one in headers]
        _checked(self.library.nvrtcCreateProgram(byref(self.handle), source, name.encode(), len(headers), _texts(texts),
                                                 _texts(names)), name)

    def compile(self, options: Sequence[str], entries: Sequence[str]) -> str:
        """Its words."""
        for entry in entries:
            _checked(self.library.nvrtcAddNameExpression(self.handle, entry.encode()), f"{self.name}, '{entry}'")
        answer = self.library.nvrtcCompileProgram(self.handle, len(options), _texts([one.encode() for one in options]))
        log = self._data('ProgramLog').rstrip(b'\0\n').decode('utf-8', 'replace')
        _checked(answer, self.name, log)
        return log

    def image(self, cubin: bool) -> bytes:
        return self._data('CUBIN') if cubin else self._data('PTX').rstrip(b'\0')

    def lowered(self, entry: str) -> str:
        found = c_char_p()
        _checked(self.library.nvrtcGetLoweredName(self.handle, entry.encode(), byref(found)), f"{self.name}, '{entry}'")
        return (found.value or b'').decode()

    def _data(self, what: str) -> bytes:
        size = c_size_t()
        _checked(getattr(self.library, f'nvrtcGet{what}Size')(self.handle, byref(size)), self.name)
        memory = ctypes.create_string_buffer(max(size.value, 1))
        _checked(getattr(self.library, f'nvrtcGet{what}')(self.handle, memory), self.name)
        return memory.raw[:size.value]

    def __del__(self) -> None:
        if getattr(self, 'handle', None):
            self.library.nvrtcDestroyProgram(byref(self.handle))


def compiled(source: str | bytes, architecture: str, name: str = 'kernels.cu', options: Sequence[str] = (),
             headers: Mapping[str, str | bytes] | None = None, entries: Sequence[str] = ()) -> Image:
    """Compiles CUDA C++ for 'sm_90' (a cubin) or 'compute_90' (PTX); an option of yours may name another one."""
    if isinstance(options, str):
        raise InvalidArgument(f'options={options!r}', 'a list of them')
    own = [one for one in options if re.match(r'(--gpu-architecture|-arch)=', one)]
    chosen = own[-1].partition('=')[2] if own else architecture
    if not re.fullmatch(r'(sm|compute)_\d+[a-z]?', chosen):
        raise InvalidArgument(f'the architecture {chosen!r}', "'sm_90' for a cubin, 'compute_90' for PTX")
    program = _Program(_bytes(source), name, headers or {})
    log = program.compile([*options, *([] if own else [f'--gpu-architecture={chosen}'])], entries)
    return Image(program.image(chosen.startswith('sm_')), log, {entry: program.lowered(entry) for entry in entries})
