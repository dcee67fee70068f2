#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the wheel of another processor: its files by readelf, the command, and a part of the tests of the package, which
an emulator runs with that processor's CPython, from the unpacked wheel.

usage: run_emulated.py WHEEL_TXT KERNELS MACHINE...

WHEEL_TXT names the wheel (bindings/python/make_wheel.py). Meson names the emulator in MESON_EXE_WRAPPER.
ISTHMUS_EMULATED_PYTHON is the folder of that CPython (tools/scripts/arm64-python); without it only the files are checked,
and the exit code is 77 (skipped).
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PRODUCT_TEST = HERE.parent / 'packaging' / 'product_test.py'
# What may differ between processors: calls through ctypes, structures, the buffer protocol, deleters in C, kernels.
CHOSEN = ['test_adopt.py', 'test_dlpack.py', 'test_host_scopes.py', 'test_kernels.py', 'test_modules.py',
          '-k', 'not scopes_leave_nothing_behind']   # long


def skip(reason):
    print(f'skipped: {reason}')
    sys.exit(77)


def check_files(folder, wheel, readelf):   # keeps Y2
    """The tag, and what stands in the ELF files: the processor, and symbols of glibc 2.35 and older."""
    tag = re.fullmatch(r'isthmus-[\d.]+-py3-none-manylinux_2_(\d+)_aarch64\.whl', wheel.name)
    if not tag or int(tag[1]) > 35:
        sys.exit(f'{wheel.name} is no wheel for aarch64 and glibc 2.35')
    files = [path for path in (folder / 'isthmus' / 'lib').rglob('*') if path.is_file()]
    assert len(files) >= 5, files
    for path in files:
        head = subprocess.run([readelf, '-hW', path], text=True, stdout=subprocess.PIPE, check=True).stdout
        if not re.search(r'Machine:\s+AArch64', head):
            sys.exit(f'{path.name} is for another processor: {head}')
    subprocess.run([sys.executable, PRODUCT_TEST, 'versions', readelf, *files], check=True)
    print(f'{wheel.name}: {len(files)} files for aarch64, and glibc 2.{tag[1]}', flush=True)


def environment_of(folder, root, wrapper):
    """For the emulated programs; the emulator itself is linked statically, and its own libraries are the system's."""
    libraries = root / 'usr' / 'lib' / 'aarch64-linux-gnu'
    places = [libraries, root / 'lib' / 'aarch64-linux-gnu']
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith('PYTHON') and name not in ('ISTHMUS_SIM', 'ISTHMUS_CUDA_LIBRARY')}
    return kept | {'LD_LIBRARY_PATH': ':'.join(map(str, places)), 'PYTHONPATH': str(folder), 'ISTHMUS_PROFILE': 'none',
                   'PYTHONPYCACHEPREFIX': str(root / 'compiled'), 'ISTHMUS_TEST_EMULATOR': shlex.join(wrapper)}


def check_command(folder, wrapper, environment, machines):   # keeps Y2
    command = folder / 'isthmus' / 'lib' / 'isthmus'
    if not command.exists():
        print('this wheel was packed without the command: the leg aarch64-tools has it', flush=True)
        return
    command.chmod(0o755)
    for machine in machines:
        done = subprocess.run([*wrapper, command, '--machine', machine, 'caps', '--json'], text=True, check=False,
                              stdout=subprocess.PIPE, env=environment)
        if done.returncode != 0 or '"devices"' not in done.stdout:
            sys.exit(f'isthmus --machine {machine} caps ended with {done.returncode}: {done.stdout}')
        print(f'isthmus --machine {machine} caps: works', flush=True)


def main():
    wheel_text, kernels, *machines = sys.argv[1:]
    wheel = pathlib.Path(pathlib.Path(wheel_text).read_text(encoding='utf-8').strip())
    wrapper = shlex.split(os.environ.get('MESON_EXE_WRAPPER', ''))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        readelf = shutil.which('readelf')
        if not readelf:
            skip('no readelf')
        check_files(folder, wheel, readelf)
        root = pathlib.Path(os.environ.get('ISTHMUS_EMULATED_PYTHON', '/nonexistent'))
        if not (root / 'complete').exists() or not wrapper or not pathlib.Path(wrapper[0]).name.startswith('qemu'):
            skip('no CPython of that processor (ISTHMUS_EMULATED_PYTHON, tools/scripts/arm64-python), or no qemu')
        environment = environment_of(folder, root, wrapper)
        check_command(folder, wrapper, environment, machines)
        for machine in machines:
            environment |= {'ISTHMUS_TEST_MACHINE': machine, 'ISTHMUS_TEST_KERNELS': str(pathlib.Path(kernels).resolve())}
            subprocess.run([*wrapper, root / 'usr' / 'bin' / 'python3', '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-r',
                            's', *CHOSEN], cwd=HERE, env=environment, check=True)


if __name__ == '__main__':
    main()
