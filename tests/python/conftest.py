# SPDX-License-Identifier: Apache-2.0
"""One process tests one machine: $ISTHMUS_TEST_MACHINE, a simulated one, 'cpu', or 'here' (this machine's own driver)."""
import contextlib
import ctypes
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
def kernels():
    """The module, with the kernels of kernels.cpp."""
    path = os.environ.get('ISTHMUS_TEST_KERNELS')
    if not path:
        pytest.skip('the kernels of the tests are not built ($ISTHMUS_TEST_KERNELS)')
    isthmus.kernels.load(path)
    return isthmus.kernels


class Gate:
    """Work of a stream that ends when the test opens the gate, so that no test depends on how long work takes."""

    def __init__(self, kernels):
        self.kernels, self.word = kernels, (ctypes.c_uint32 * 1)()

    def hold(self, stream, words):
        """Launches the work, which uses `words`. It gives up after some seconds, so that a failure is not a hang."""
        self.kernels.wait_for_gate(stream, 1, ctypes.addressof(self.word), words, 1 << 35)

    def open(self):
        self.word[0] = 1

    @contextlib.contextmanager
    def open_later(self):
        """Another thread opens the gate 50 ms from now. A wait for the work that keeps the interpreter's lock lasts until
        the work gives up, and the gate is shut behind it."""
        timer = threading.Timer(0.05, self.open)
        timer.start()
        yield
        assert self.word[0]
        timer.join()


@pytest.fixture
def gate(kernels):
    if MACHINE == 'here':
        pytest.skip('not every GPU reads all memory of the process')
    made = Gate(kernels)
    yield made
    made.open()


@pytest.fixture
def numpy():
    return pytest.importorskip('numpy')


@pytest.fixture
def from_dlpack(numpy):
    return getattr(numpy, 'from_dlpack', None) or pytest.skip('NumPy has DLPack since 1.22')


@pytest.fixture
def strict(from_dlpack):
    return pytest.importorskip('array_api_strict')


def asks_for_versions(numpy):
    """Whether NumPy's from_dlpack() takes read-only memory, which the unversioned protocol cannot say."""
    return tuple(int(part) for part in numpy.__version__.split('.')[:2]) >= (2, 1)


def wait_until(condition):
    until = time.monotonic() + 20
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


@pytest.fixture(autouse=True)
def nothing_left():
    """A test's objects do not live on into the next one."""
    yield
    gc.collect()


def raised_at_calls(work, file):
    """Runs `work` again and again, with a signal's exception at its first, second, … call of a function of `file`, until
    it comes through; yields after each run that did not."""
    for at in range(1000):
        left, before = [at], sys.gettrace()

        def trace(frame, event, argument, left=left):
            code = frame.f_code
            if event == 'call' and code.co_filename.endswith(file) and code.co_name != '__del__':
                if not left[0]:
                    left[0] = -1
                    raise KeyboardInterrupt
                left[0] -= 1
        sys.settrace(trace)
        try:
            work()
            return
        except KeyboardInterrupt:   # whose traceback goes here: it has the frame
            pass
        finally:
            sys.settrace(before)
        yield at
    raise AssertionError('it never came through')


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
