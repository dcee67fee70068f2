#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the wheel into an environment of its own and runs pytest from there, on one machine.

usage: run_tests.py MACHINE WHEEL_TXT ENVIRONMENT KERNELS [FILE OR ARGUMENT OF PYTEST...]

WHEEL_TXT names the wheel (bindings/python/make_wheel.py). The environment is made once, with NumPy, pytest and
array-api-strict from PyPI, or without network from what the system has. Exit code 77 (skipped) where neither works.
ISTHMUS_TEST_NUMPY asks PyPI for another NumPy than the newest one (for instance numpy<2), in another environment.
ISTHMUS_TEST_PRELOAD names the runtime of AddressSanitizer, for libraries that were built with it. Leaks are not looked for:
Python leaves objects behind at its end. Python's own memory comes from malloc() then, so that the sanitizer knows it.
"""
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys

NUMPY = os.environ.get('ISTHMUS_TEST_NUMPY', 'numpy')
WANTED = [NUMPY, 'pytest', 'array-api-strict']
OPTIONAL = ['iceoryx2']   # without it its example is skipped
HERE = pathlib.Path(__file__).resolve().parent


def skip(reason):
    print(f'skipped: {reason}')
    sys.exit(77)


def ran(*command, **more):
    try:
        done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False,
                              env={**os.environ, 'PIP_DISABLE_PIP_VERSION_CHECK': '1'}, **more)
    except subprocess.TimeoutExpired as late:
        return False, f'not over after {late.timeout:g} s'
    return done.returncode == 0, done.stdout


def new_environment(folder, *options):
    shutil.rmtree(folder, ignore_errors=True)
    made, said = ran(sys.executable, '-m', 'venv', *options, folder)
    if not made:
        skip(f'this Python makes no environments (Debian: apt-get install python3-venv): {said.strip()}')


def make(folder):
    """An environment with pytest and NumPy."""
    new_environment(folder)
    pip = [folder / 'bin' / 'pip', 'install', '--quiet', '--retries', '3', '--timeout', '15', '--only-binary', ':all:']
    installed, said = ran(*pip, *WANTED, timeout=180)
    if installed:
        ran(*pip, *OPTIONAL, timeout=180)
        return
    if NUMPY != 'numpy':
        shutil.rmtree(folder, ignore_errors=True)
        skip(f'PyPI did not give {NUMPY}: {said.strip()[-300:]}')
    new_environment(folder, '--system-site-packages')   # without network
    if not ran(folder / 'bin' / 'python', '-c', 'import numpy, pytest')[0]:
        shutil.rmtree(folder, ignore_errors=True)
        skip(f'NumPy and pytest are not installed, and PyPI did not give them: {said.strip()[-300:]}')


def prepare(folder, wheel):
    """The environment with this wheel; only one test at a time makes it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / 'environment.lock', 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = folder / 'wheel'
        state = f'{wheel} {wheel.stat().st_mtime_ns} {sys.version}'
        if mark.exists() and mark.read_text() == state:
            return
        if not (folder / 'bin' / 'python').exists() or not ran(folder / 'bin' / 'python', '-c', 'import numpy, pytest')[0]:
            make(folder)
        installed, said = ran(folder / 'bin' / 'pip', 'install', '--quiet', '--no-index', '--no-deps', '--force-reinstall',
                              wheel)
        if not installed:
            sys.exit(f'pip did not install {wheel}: {said}')
        mark.write_text(state)


def main():
    machine, wheel_text, folder, kernels, *more = sys.argv[1:]
    folder = pathlib.Path(folder + ('' if NUMPY == 'numpy' else '-' + re.sub(r'\W', '_', NUMPY)))
    prepare(folder, pathlib.Path(pathlib.Path(wheel_text).read_text(encoding='utf-8').strip()))
    environment = {name: value for name, value in os.environ.items()
                   if name not in ('PYTHONPATH', 'ISTHMUS_SIM', 'ISTHMUS_CUDA_LIBRARY', 'ISTHMUS_PYTHON_LIBRARIES')}
    environment |= {'ISTHMUS_TEST_MACHINE': machine, 'ISTHMUS_TEST_KERNELS': kernels, 'ISTHMUS_PROFILE': 'none',
                    'PYTHONDONTWRITEBYTECODE': '1', 'PYTHONFAULTHANDLER': '1'}
    if environment.get('ISTHMUS_TEST_PRELOAD'):
        options = environment.get('ASAN_OPTIONS', '')
        environment |= {'LD_PRELOAD': environment['ISTHMUS_TEST_PRELOAD'], 'PYTHONMALLOC': 'malloc',
                        'ASAN_OPTIONS': f'{options}:detect_leaks=0'.lstrip(':')}
    os.chdir(HERE)
    python = str(folder / 'bin' / 'python')
    os.execve(python, [python, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-r', 'sfE', *(more or ['.'])], environment)


if __name__ == '__main__':
    main()
