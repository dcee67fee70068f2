# SPDX-License-Identifier: Apache-2.0
"""What make_wheel.py packs: the platform comes from the files, and files that do not fit are refused."""
import pathlib
import struct
import sys
import zipfile

import pytest

import isthmus

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bindings' / 'python'))
make_wheel = pytest.importorskip('make_wheel')

LIBRARY = pathlib.Path(isthmus.__file__).parent / 'lib' / 'libisthmus-python.so'
X86_64, AARCH64 = 62, 183


@pytest.fixture
def library(tmp_path):
    """library(name, machine=…, glibc=…): a copy of a small library, for that processor and that glibc."""
    if not LIBRARY.exists():
        pytest.skip('the package is not installed')

    def made(name, machine=AARCH64, glibc=b'2.34'):
        data = bytearray(LIBRARY.read_bytes())
        struct.pack_into('<H', data, 18, machine)
        newest = max(number for family, number in make_wheel.Elf(LIBRARY).symbol_versions() if family == 'GLIBC')
        text = b'\0GLIBC_' + '.'.join(map(str, newest)).encode() + b'\0'
        other = b'\0GLIBC_' + glibc + b'\0'
        assert len(text) >= len(other) and data.count(text) == 1
        at = data.index(text)
        data[at:at + len(text)] = other.ljust(len(text), b'\0')
        path = tmp_path / name
        path.write_bytes(data)
        return path
    return made


def packed(folder, *files, manylinux=True):
    return make_wheel.pack(folder / 'wheel', '1.2.3', ROOT / 'bindings' / 'python' / 'isthmus',
                           {path.name: path for path in files}, strip=False, manylinux=manylinux)


def test_the_platform_is_that_of_the_files(library, tmp_path):   # keeps Y2
    wheel = packed(tmp_path, library('a.so', AARCH64, b'2.34'), library('b.so', AARCH64, b'2.35'))
    assert wheel.name == 'isthmus-1.2.3-py3-none-manylinux_2_35_aarch64.whl'
    with zipfile.ZipFile(wheel) as files:
        assert {'isthmus/lib/a.so', 'isthmus/lib/b.so', 'isthmus/__init__.py'} <= set(files.namelist())
    assert packed(tmp_path, library('a.so', X86_64)).name.endswith('manylinux_2_34_x86_64.whl')


def test_files_for_several_processors_are_refused(library, tmp_path):   # keeps Y2
    with pytest.raises(SystemExit, match=r'several processors: a.so \(aarch64\), b.so \(x86_64\)'):
        packed(tmp_path, library('a.so', AARCH64), library('b.so', X86_64))


def test_a_wheel_to_publish_asks_for_glibc_2_35_at_most(library, tmp_path):   # keeps Y2
    with pytest.raises(SystemExit, match='b.so needs GLIBC_2.36'):
        packed(tmp_path, library('a.so'), library('b.so', glibc=b'2.36'))
    assert packed(tmp_path, library('b.so', glibc=b'2.36'), manylinux=False).name.endswith('manylinux_2_36_aarch64.whl')


def test_what_is_no_elf_file_is_refused(tmp_path):
    (tmp_path / 'text').write_text('hello')
    with pytest.raises(ValueError, match='ELF'):
        packed(tmp_path, tmp_path / 'text')
