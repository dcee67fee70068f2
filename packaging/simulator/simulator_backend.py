# SPDX-License-Identifier: Apache-2.0
"""The build backend of the wheel isthmus-simulator (PEP 517).

    pip wheel packaging/simulator --no-deps                            # isthmus_simulator-X.Y.Z-py3-none-....whl
    pip wheel packaging/simulator --no-deps -C library=build/platform/sim/libcuda.so.1    # of a tree that is built
"""
from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / 'bindings' / 'python'))
import make_wheel  # noqa: E402

OPTIONS = ['-Dtests=false', '-Dexamples=false', '-Dbench=disabled', '-Ddocs=false', '-Dnuma=disabled',
           '-Dkernels_gpu=disabled', '-Dsimulator=true', '--buildtype=debugoptimized']


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    if 'library' in (config_settings or {}):
        return []
    return [tool for tool in ('meson', 'ninja') if not shutil.which(tool)]


def version() -> str:
    found = re.search(r"version: '([0-9.]+)'", (ROOT / 'meson.build').read_text(encoding='utf-8'))
    if not found:
        sys.exit('simulator_backend.py: meson.build states no version')
    return found.group(1)


def built_library(folder: pathlib.Path) -> pathlib.Path:
    subprocess.run(['meson', 'setup', str(folder), str(ROOT), *OPTIONS], check=True)
    subprocess.run(['meson', 'compile', '-C', str(folder), 'cuda'], check=True)
    return folder / 'platform' / 'sim' / 'libcuda.so.1'


def metadata() -> str:
    lines = ['Metadata-Version: 2.1', 'Name: isthmus-simulator', f'Version: {version()}',
             'Summary: A simulated CUDA driver that plays recorded machines, for tests without a GPU',
             'License: Apache-2.0', 'Requires-Python: >=3.10', 'Classifier: Operating System :: POSIX :: Linux',
             'Description-Content-Type: text/markdown', '', (ROOT / 'docs' / 'simulate.md').read_text(encoding='utf-8')]
    return '\n'.join(lines)


def build_wheel(wheel_directory: str, config_settings: dict[str, Any] | None = None,
                metadata_directory: str | None = None) -> str:
    with tempfile.TemporaryDirectory() as folder:
        given = (config_settings or {}).get('library')
        library = ROOT / given if given else built_library(pathlib.Path(folder) / 'build')
        machine = make_wheel.machine_of(make_wheel.Elf(library))
        elf = make_wheel.Elf(make_wheel.stripped(library, pathlib.Path(folder), shutil.which('strip')))
    tag, reasons = make_wheel.platform_of({'libcuda.so.1': elf}, machine)
    name = f'isthmus_simulator-{version()}'
    info = f'{name}.dist-info'
    path = pathlib.Path(wheel_directory) / f'{name}-py3-none-{tag}.whl'
    wheel = make_wheel.Wheel(path, info)
    wheel.add('isthmus_simulator/__init__.py', (HERE / 'isthmus_simulator.py').read_bytes())
    wheel.add('isthmus_simulator/lib/libcuda.so.1', bytes(elf.data), executable=True)
    wheel.add(f'{info}/licenses/LICENSE', (ROOT / 'LICENSE').read_bytes())
    wheel.add(f'{info}/METADATA', metadata().encode())
    wheel.add(f'{info}/WHEEL', ('Wheel-Version: 1.0\nGenerator: isthmus simulator_backend.py\nRoot-Is-Purelib: false\n'
                                f'Tag: py3-none-{tag}\n').encode())
    wheel.add(f'{info}/entry_points.txt', b'[console_scripts]\nisthmus-simulate = isthmus_simulator:main\n')
    wheel.close()
    for reason in reasons:
        print(f'simulator_backend.py: linux and not manylinux: {reason}', file=sys.stderr)
    return path.name
