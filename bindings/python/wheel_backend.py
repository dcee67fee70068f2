# SPDX-License-Identifier: Apache-2.0
"""The build backend of `pip install .` (PEP 517): builds the libraries with Meson and packs them with make_wheel.py.

    pip wheel . --no-deps                                                   # isthmus-X.Y.Z-py3-none-….whl
    pip wheel . --no-deps -C setup-args=-Dgpu_prebuilt=/path/to/images      # GPU code that was compiled before
    pip wheel . --no-deps -C build-dir=build-wheel                          # keeps what was built, for the next time
    pip wheel . --no-deps -C require-gpu=yes -C require-manylinux=yes -C setup-args=-Dboard=true    # what is published
    pip wheel . --no-deps -C setup-args='--cross-file=cross/aarch64-linux-gnu.ini -Dboard=true'     # for aarch64

setup-args are arguments of `meson setup`, split and quoted as in a shell; where pip allows it (23.1), the setting may also
be repeated. Relative paths begin in the source tree. require-gpu and require-manylinux take yes or no.

Why not meson-python: 0.22.1 tags a wheel with libraries beside the package as cp311-cp311, or as `any` where they are in
purelib, although nothing in it depends on CPython's version; it drops the links of SONAMEs; and it cannot pack a tree that
is built already, so that CI would compile everything twice. make_wheel.py packs both, and needs no package from PyPI.

The command is linked with static libjpeg, libpng and a header-only fmt, so that the wheel needs libc and libstdc++ alone.
libnuma is left out: manylinux has none.
"""
from __future__ import annotations

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import make_wheel  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OPTIONS = ['-Dpython=true', '-Dtests=false', '-Dexamples=false', '-Dbench=disabled', '-Ddocs=false', '-Dnuma=disabled',
           '-Dprefer_static=true', '-Dlibdir=lib', '--buildtype=debugoptimized']
# Targets by the names that the wheel gives their files.
TARGETS = {'libisthmus.so.0': 'isthmus', 'libisthmus-c.so.1': 'isthmus-c', 'libisthmus-c-camera.so.1': 'isthmus-c-camera',
           'libisthmus-python.so': 'isthmus-python', 'isthmus': 'isthmus', 'sim/libcuda.so.1': 'cuda'}


SETTINGS = ('setup-args', 'build-dir', 'require-gpu', 'require-manylinux')


def _list(settings: dict[str, Any] | None, name: str) -> list[str]:
    given = (settings or {}).get(name, [])
    return [given] if isinstance(given, str) else list(given)


def _setup_args(settings: dict[str, Any] | None) -> list[str]:
    return [word for text in _list(settings, 'setup-args') for word in shlex.split(text)]


def _wanted(settings: dict[str, Any] | None, name: str) -> bool:
    given = _list(settings, name)[-1:]
    if given not in ([], ['yes'], ['no']):
        sys.exit(f'wheel_backend.py: {name}={given[0]}: yes or no')
    return given == ['yes']


def _check_names(settings: dict[str, Any] | None) -> None:
    unknown = sorted(set(settings or {}) - set(SETTINGS))
    if unknown:
        sys.exit(f'wheel_backend.py: no such setting: {", ".join(unknown)}; there are {", ".join(SETTINGS)}')


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    wanted = {'meson': '0.63', 'ninja': '1.8'}
    return [f'{package}>={version}' for package, version in wanted.items() if not shutil.which(package)]


def get_requires_for_build_sdist(config_settings: dict[str, Any] | None = None) -> list[str]:
    return []


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr, cwd=ROOT)


def _asked(build: str, what: str) -> Any:
    return json.loads(subprocess.run(['meson', 'introspect', build, '--' + what], check=True, text=True,
                                     stdout=subprocess.PIPE).stdout)


def _file_of(targets: list[dict[str, Any]], file: str, name: str) -> pathlib.Path:
    kind = 'executable' if file == 'isthmus' else 'shared library'
    return pathlib.Path(next(one['filename'][0] for one in targets if one['name'] == name and one['type'] == kind))


def _has_gpu_code(build: str) -> bool:
    """Whether the camera kernels have an image for GPUs."""
    images = list(pathlib.Path(build, 'kernels').glob('*.fatbin'))
    return bool(images) and all(image.stat().st_size > 1024 for image in images)   # else: a line that says so


def _version() -> str:
    about = subprocess.run(['meson', 'introspect', 'meson.build', '--projectinfo'], check=True, text=True, cwd=ROOT,
                           stdout=subprocess.PIPE).stdout
    version: str = json.loads(about)['version']
    return version


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    version = _version()
    folder = pathlib.Path(metadata_directory, f'isthmus-{version}.dist-info')
    folder.mkdir(parents=True)
    (folder / 'METADATA').write_text(make_wheel.metadata(version, ROOT), encoding='utf-8')
    (folder / 'entry_points.txt').write_text(make_wheel.ENTRY_POINTS, encoding='utf-8')
    return folder.name


def build_wheel(wheel_directory: str, config_settings: dict[str, Any] | None = None,
                metadata_directory: str | None = None) -> str:
    _check_names(config_settings)
    require_gpu, require_manylinux = (_wanted(config_settings, name) for name in ('require-gpu', 'require-manylinux'))
    with tempfile.TemporaryDirectory() as temporary:
        kept = _list(config_settings, 'build-dir')
        build = os.path.abspath(kept[0]) if kept else os.path.join(temporary, 'build')
        again = ['--reconfigure'] if os.path.exists(os.path.join(build, 'build.ninja')) else []
        _run('meson', 'setup', *again, build, *OPTIONS, *_setup_args(config_settings))
        targets = _asked(build, 'targets')
        files = {file: _file_of(targets, file, name) for file, name in TARGETS.items()}
        _run('ninja', '-C', build, *(os.path.relpath(file, build) for file in files.values()))
        if not _has_gpu_code(build):
            said = 'the camera kernels have no GPU code: nvcc was not found, and no -Dgpu_prebuilt given'
            if require_gpu:
                sys.exit(f'wheel_backend.py: {said}')
            print(f'wheel_backend.py: {said}; they run on the CPU device', file=sys.stderr)
        wheel = make_wheel.pack(pathlib.Path(wheel_directory), _version(), ROOT / 'bindings' / 'python' / 'isthmus', files,
                                strip=True, manylinux=require_manylinux)
        return wheel.name


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    version = _version()
    name = f'isthmus-{version}'
    files = subprocess.run(['git', 'ls-files', '-z'], check=True, cwd=ROOT, stdout=subprocess.PIPE).stdout.decode()
    about = make_wheel.metadata(version, ROOT).encode()
    with tempfile.TemporaryDirectory() as folder, tarfile.open(
            pathlib.Path(sdist_directory, f'{name}.tar.gz'), 'w:gz', format=tarfile.PAX_FORMAT) as archive:
        for file in sorted(filter(None, files.split('\0'))):
            archive.add(ROOT / file, f'{name}/{file}', recursive=False)
        page = pathlib.Path(folder, 'PKG-INFO')
        page.write_bytes(about)
        archive.add(page, f'{name}/PKG-INFO')
    return f'{name}.tar.gz'
