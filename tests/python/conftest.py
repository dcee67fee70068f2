# SPDX-License-Identifier: Apache-2.0
"""One process tests one machine: $ISTHMUS_TEST_MACHINE, a simulated one, 'cpu', or 'here' (this machine's own driver)."""
import gc
import os
import pathlib
import shlex
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import isthmus

MACHINE = os.environ.get('ISTHMUS_TEST_MACHINE', 'cpu')
# Where an emulator runs the tests, it has to run the processes that they start, too (run_emulated.py).
PYTHON = [*shlex.split(os.environ.get('ISTHMUS_TEST_EMULATOR', '')), sys.executable]


def opened(**options):
    if MACHINE in ('cpu', 'here'):
        return isthmus.open(cuda=MACHINE == 'here', **options)
    return isthmus.open(machine=MACHINE, **options)


@pytest.fixture(scope='session')
def runtime():
    with opened() as one:
        yield one


@pytest.fixture
def device(runtime):
    return runtime.default_device


@pytest.fixture
def stream(device):
    return device.create_stream()


@pytest.fixture
def ticks():
    """A list to which another thread adds once in a millisecond, while it may run."""
    made, ended = [], threading.Event()

    def tick():
        while not ended.is_set():
            made.append(time.monotonic())
            time.sleep(0.001)
    thread = threading.Thread(target=tick)
    thread.start()
    yield made
    ended.set()
    thread.join()


@pytest.fixture
def kernels():
    """The module, with the kernels of kernels.cpp."""
    path = os.environ.get('ISTHMUS_TEST_KERNELS')
    if not path:
        pytest.skip('the kernels of the tests are not built ($ISTHMUS_TEST_KERNELS)')
    isthmus.kernels.load(path)
    return isthmus.kernels


@pytest.fixture
def numpy():
    return pytest.importorskip('numpy')


@pytest.fixture(autouse=True)
def nothing_left():
    """A test's objects do not live on into the next one."""
    yield
    gc.collect()


@pytest.fixture
def in_new_process():
    """Runs Python in a process of its own: run(source, …) → its output. `opened()` there opens the machine of the tests."""
    def run(source, *arguments, expect=0, prelude=True):
        head = (f'import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n'
                'import isthmus\nfrom conftest import opened\n') if prelude else ''
        done = subprocess.run([*PYTHON, '-X', 'faulthandler', '-c', head + textwrap.dedent(source), *arguments],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
        assert done.returncode == expect, done.stdout
        return done.stdout
    return run
