#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs the wheel of the Python package from a build tree; needs nothing but Python (and strip, where there is one).

The wheel has the package, the libraries, the command and the simulator:

    isthmus/*.py, py.typed
    isthmus/lib/libisthmus.so.0, libisthmus-c.so.1, libisthmus-c-camera.so.1, libisthmus-python.so
    isthmus/lib/isthmus             the command, which the console script `isthmus` becomes
    isthmus/lib/sim/libcuda.so.1    the simulator: no dynamic linker looks there

Its tag is `py3-none-PLATFORM`: nothing in it depends on the version of CPython. PLATFORM is manylinux_2_N, where the
newest glibc that a file asks for is 2.N and the files need only libraries that manylinux allows; otherwise linux. Check it
with `auditwheel show`. --require-manylinux refuses a wheel that is none, or that asks for a glibc newer than 2.35, which
JetPack 6 and Ubuntu 22.04 have. All files have to be for one processor, which may be another one than this machine's.

usage: make_wheel.py --output FOLDER --version X.Y.Z --package DIR --library NAME=FILE... [--no-strip] [--require-manylinux]
"""
from __future__ import annotations

import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import zipfile

SUMMARY = 'One buffer for CPU and GPU: shared where the machine can, copied only where it has to'
ENTRY_POINTS = '[console_scripts]\nisthmus = isthmus.command:main\n'
# Shared libraries that manylinux allows (PEP 600), beside those of the wheel itself.
ALLOWED = re.compile(r'^(lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+)\.so\.\d+|ld-linux[\w-]*\.so\.\d+)$')
# The newest symbol versions of libstdc++ and libgcc on systems with that glibc (auditwheel's policies).
MOST_GLIBC = (2, 35)   # of published wheels
NEWEST = {'GLIBCXX': (3, 4, 30), 'CXXABI': (1, 3, 13), 'GCC': (12, 0, 0)}


class Elf:
    """The dynamic section of a 64-bit little-endian ELF file."""

    NEEDED, STRTAB, SONAME, RPATH, RUNPATH = 1, 5, 14, 15, 29

    def __init__(self, path: pathlib.Path) -> None:
        self.data = bytearray(path.read_bytes())
        if self.data[:6] != b'\x7fELF\x02\x01':
            raise ValueError(f'{path} is no 64-bit little-endian ELF file')
        offset, = struct.unpack_from('<Q', self.data, 32)
        size, count = struct.unpack_from('<HH', self.data, 54)
        self.segments = [struct.unpack_from('<IIQQQQQQ', self.data, offset + at * size) for at in range(count)]
        dynamic = next(one for one in self.segments if one[0] == 2)
        self.entries = []
        for at in range(dynamic[2], dynamic[2] + dynamic[5], 16):
            tag, value = struct.unpack_from('<QQ', self.data, at)
            if tag == 0:
                break
            self.entries.append((tag, value))
        self.strings = self._offset(next(value for tag, value in self.entries if tag == self.STRTAB))

    def _offset(self, address: int) -> int:
        for kind, _, offset, begin, _, size, _, _ in self.segments:
            if kind == 1 and begin <= address < begin + size:
                return offset + address - begin
        raise ValueError('an address outside of the file')

    def texts(self, wanted: int) -> list[str]:
        return [self.data[self.strings + value:self.data.index(0, self.strings + value)].decode()
                for tag, value in self.entries if tag == wanted]

    def set_run_path(self, text: str) -> None:
        """Overwrites the search path that the build left, in place."""
        for tag, value in self.entries:
            if tag in (self.RPATH, self.RUNPATH):
                begin = self.strings + value
                room = self.data.index(0, begin) - begin
                if len(text) > room:
                    raise ValueError(f'the search path has {room} bytes, and {text} does not fit')
                self.data[begin:begin + room] = text.encode().ljust(room, b'\0')

    def symbol_versions(self) -> set[tuple[str, tuple[int, ...]]]:
        found = re.findall(rb'\0(GLIBC|GLIBCXX|CXXABI|GCC)_(\d+(?:\.\d+)+)(?=\0)', bytes(self.data))
        return {(family.decode(), tuple(map(int, number.split(b'.')))) for family, number in found}


def platform_of(files: dict[str, Elf], machine: str) -> tuple[str, list[str]]:
    """The wheel's platform, and what keeps it from being a manylinux one."""
    own = {os.path.basename(name) for name in files}
    reasons, glibc = [], (2, 17)
    for name, elf in files.items():
        for needed in elf.texts(Elf.NEEDED):
            if needed not in own and not ALLOWED.match(needed):
                reasons.append(f'{name} needs {needed}')
        for family, number in elf.symbol_versions():
            if family == 'GLIBC':
                glibc = max(glibc, number[:2])
            elif number > NEWEST[family]:
                reasons.append(f'{name} needs {family}_{".".join(map(str, number))}')
    if reasons:
        return f'linux_{machine}', sorted(set(reasons))
    return f'manylinux_2_{glibc[1]}_{machine}', []


def too_new(files: dict[str, Elf]) -> list[str]:
    """What keeps the files from running with the oldest systems that wheels are published for."""
    return [f'{name} needs GLIBC_{".".join(map(str, number))}, and published wheels run with glibc 2.35'
            for name, elf in sorted(files.items()) for family, number in sorted(elf.symbol_versions())
            if family == 'GLIBC' and number[:2] > MOST_GLIBC]


def stripped(path: pathlib.Path, folder: pathlib.Path, strip: str | None) -> pathlib.Path:
    copy = folder / path.name
    shutil.copyfile(path, copy)
    if strip:
        subprocess.run([strip, '--strip-unneeded', copy], check=True)
    return copy


def machine_of(elf: Elf) -> str:
    number, = struct.unpack_from('<H', elf.data, 18)
    return {62: 'x86_64', 183: 'aarch64'}.get(number, platform.machine())


def one_machine_of(files: dict[str, Elf]) -> str:
    machines = {name: machine_of(elf) for name, elf in files.items()}
    if len(set(machines.values())) > 1:
        sys.exit('make_wheel.py: files for several processors: ' +
                 ', '.join(f'{name} ({machine})' for name, machine in machines.items()))
    return next(iter(machines.values()))


class Wheel:
    """A zip file with the record of its content. Times are fixed, so that equal content gives equal wheels."""

    def __init__(self, path: pathlib.Path, info: str) -> None:
        self.zip = zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=6)
        self.info, self.record = info, []

    def add(self, name: str, data: bytes, executable: bool = False) -> None:
        about = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        about.compress_type = zipfile.ZIP_DEFLATED
        about.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
        self.zip.writestr(about, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
        self.record.append(f'{name},sha256={digest},{len(data)}')

    def close(self) -> None:
        name = f'{self.info}/RECORD'
        self.add(name, ''.join(f'{line}\n' for line in [*self.record, f'{name},,']).encode())
        self.zip.close()


def metadata(version: str, root: pathlib.Path) -> str:
    page = (root / 'docs' / 'python.md').read_text(encoding='utf-8') if (root / 'docs' / 'python.md').exists() else ''
    lines = ['Metadata-Version: 2.1', 'Name: isthmus', f'Version: {version}', f'Summary: {SUMMARY}',
             'License: Apache-2.0', 'Requires-Python: >=3.10', 'Provides-Extra: numpy',
             "Requires-Dist: numpy; extra == 'numpy'", 'Classifier: Programming Language :: Python :: 3',
             'Classifier: Operating System :: POSIX :: Linux',
             'Description-Content-Type: text/markdown', '', page]
    return '\n'.join(lines)


def pack(output: pathlib.Path, version: str, package: pathlib.Path, libraries: dict[str, pathlib.Path], strip: bool,
         manylinux: bool) -> pathlib.Path:
    """Writes the wheel; its path."""
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    machine = one_machine_of({name: Elf(path) for name, path in libraries.items()})
    tool = shutil.which('strip' if machine == platform.machine() else f'{machine}-linux-gnu-strip') if strip else None
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Elf(stripped(path, pathlib.Path(folder), tool)) for name, path in libraries.items()}
    tag, reasons = platform_of(files, machine)
    if manylinux and (reasons or too_new(files)):
        sys.exit('make_wheel.py: this is no manylinux wheel to publish: ' + '; '.join(reasons + too_new(files)))
    output.mkdir(parents=True, exist_ok=True)
    path = output / f'isthmus-{version}-py3-none-{tag}.whl'
    info = f'isthmus-{version}.dist-info'
    wheel = Wheel(path, info)
    for source in sorted([*package.glob('*.py'), package / 'py.typed']):
        wheel.add(f'isthmus/{source.name}', source.read_bytes())
    for name, elf in sorted(files.items()):
        elf.set_run_path('$ORIGIN')
        wheel.add(f'isthmus/lib/{name}', bytes(elf.data), executable=True)
    wheel.add(f'{info}/licenses/LICENSE', (root / 'LICENSE').read_bytes())
    wheel.add(f'{info}/METADATA', metadata(version, root).encode())
    wheel.add(f'{info}/WHEEL', ('Wheel-Version: 1.0\nGenerator: isthmus make_wheel.py\nRoot-Is-Purelib: false\n'
                                f'Tag: py3-none-{tag}\n').encode())
    wheel.add(f'{info}/entry_points.txt', ENTRY_POINTS.encode())
    wheel.close()
    for reason in reasons:
        print(f'make_wheel.py: linux and not manylinux: {reason}', file=sys.stderr)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--output', type=pathlib.Path, required=True)
    parser.add_argument('--version', required=True)
    parser.add_argument('--package', type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / 'isthmus')
    parser.add_argument('--library', action='append', required=True, metavar='NAME=FILE')
    parser.add_argument('--no-strip', dest='strip', action='store_false')
    parser.add_argument('--require-manylinux', dest='manylinux', action='store_true')
    asked = parser.parse_args()
    for older in asked.output.glob('isthmus-*.whl'):
        older.unlink()
    libraries = {name: pathlib.Path(file) for name, _, file in (one.partition('=') for one in asked.library)}
    print(pack(asked.output, asked.version, asked.package, libraries, asked.strip, asked.manylinux))


if __name__ == '__main__':
    main()
