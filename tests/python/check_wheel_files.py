#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of a built wheel, by readelf: make_wheel.py knows the versions of their symbols, the tag tells the truth, and no
file asks for symbols newer than promised (glibc 2.35, GLIBCXX_3.4.30).

usage: check_wheel_files.py WHEEL_TXT READELF BOARD; BOARD: true in a build with -Dboard=true

Without -Dboard=true a system whose libc is newer may bring newer symbols: then the exit code is 77 (skipped), and the tag
has to say so.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PRODUCT_TEST = HERE.parent / 'packaging' / 'product_test.py'
sys.path.insert(0, str(HERE.parents[1] / 'bindings' / 'python'))
sys.dont_write_bytecode = True
import make_wheel  # noqa: E402

FILES = {'libisthmus.so.0', 'libisthmus-c.so.1', 'libisthmus-c-camera.so.1', 'libisthmus-python.so', 'isthmus',
         'libcuda.so.1'}


def versions(readelf, path):
    """(family, version) of the symbols that the file needs, as make_wheel.Elf.symbol_versions() has them."""
    said = subprocess.run([readelf, '--version-info', '-W', path], text=True, stdout=subprocess.PIPE, check=True).stdout
    return {(family, tuple(map(int, number.split('.'))))
            for family, number in re.findall(r'Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)', said)}


def main(wheel_text, readelf, board):
    wheel = pathlib.Path(pathlib.Path(wheel_text).read_text(encoding='utf-8').strip())
    tag = re.fullmatch(r'isthmus-[\d.]+-py3-none-(manylinux_2_(\d+)|linux)_\w+\.whl', wheel.name)
    if not tag:
        sys.exit(f'{wheel.name} has no tag of a wheel of isthmus')
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        files = sorted(path for path in (folder / 'isthmus' / 'lib').rglob('*') if path.is_file())
        if {path.name for path in files} != FILES:
            sys.exit(f'{wheel.name} has {", ".join(path.name for path in files)}')
        found = {path: versions(readelf, path) for path in files}
        for path, symbols in found.items():
            if make_wheel.Elf(path).symbol_versions() != symbols:
                sys.exit(f'make_wheel.py finds {make_wheel.Elf(path).symbol_versions()} in {path.name}, and not {symbols}')
        newest = max(number[:2] for symbols in found.values() for family, number in symbols if family == 'GLIBC')
        if tag[2] and (2, int(tag[2])) != max(newest, (2, 17)):   # 2.17: the oldest tag there is
            sys.exit(f'{wheel.name}: its files need glibc {newest[0]}.{newest[1]}')
        checked = subprocess.run([sys.executable, PRODUCT_TEST, 'versions', readelf, *files], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if checked.returncode == 0:
        print(f'{wheel.name}: {len(files)} files, glibc {newest[0]}.{newest[1]}')
        return 0
    print(checked.stdout)
    if board == 'true':
        return 1
    print(f'skipped: this system links against a libc newer than 2.35, and the build is not -Dboard=true; {wheel.name}')
    return 77


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
