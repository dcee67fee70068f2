#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel isthmus-simulator in a fresh environment: it runs a program on a simulated machine, without the runtime."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = '''
import ctypes, sys
cuda = ctypes.CDLL(sys.argv[1])
name = ctypes.create_string_buffer(64)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetName(name, 64, 0) == 0
print(name.value.decode())
if len(sys.argv) > 2:
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0 and cuda.cuStreamDestroy_v2(stream) == 0
    cuda.cuStreamDestroy_v2(stream)
sys.exit(7)
'''


ENDLESS = '''
import os, signal, sys, time
def end(number, frame):
    sys.exit(40 + number)
for number in (signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, end)
print(os.getpid(), signal.getsignal(signal.SIGINT) == signal.SIG_IGN, flush=True)
time.sleep(60)
'''


def runs(process: int) -> bool:
    try:
        state = pathlib.Path(f'/proc/{process}/stat').read_text(encoding='utf-8').rsplit(')', 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ('Z', 'X')


def check_signals(launcher: list[str | pathlib.Path], folder: pathlib.Path) -> None:
    """A signal for the launcher alone reaches the program, and the launcher removes its folder."""
    places = folder / 'places'
    places.mkdir()

    def started(ignores: bool = False) -> tuple[subprocess.Popen[str], int, bool]:
        command = [*launcher, '--machine', 'orin', '--', sys.executable, '-c', ENDLESS]
        one = subprocess.Popen(command, env={**os.environ, 'TMPDIR': str(places)}, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN if ignores
                                                                else signal.SIG_DFL))
        assert one.stdout
        process, ignored = one.stdout.readline().split()
        assert len(list(places.iterdir())) == 1
        return one, int(process), ignored == 'True'

    for number, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131), (signal.SIGINT, 130),
                         (signal.SIGUSR1, 40 + signal.SIGUSR1), (signal.SIGUSR2, 40 + signal.SIGUSR2)):
        one, process, _ = started()
        one.send_signal(number)
        assert one.wait(30) == code, (number, one.returncode)
        assert not runs(process) and not list(places.iterdir()), number
    for ignores in (True, False):  # as a shell starts a command in the background
        one, process, ignored = started(ignores)
        assert ignored == ignores
        one.send_signal(signal.SIGINT)
        if ignores:
            time.sleep(0.3)
            assert runs(process) and one.poll() is None
            one.terminate()
        assert one.wait(30) == (143 if ignores else 130) and not runs(process)
    one, process, _ = started()
    one.kill()
    one.wait(30)
    until = time.monotonic() + 30
    while runs(process) and time.monotonic() < until:
        time.sleep(0.02)
    assert not runs(process), 'the program goes on without the launcher'


def check_places(library: pathlib.Path, folder: pathlib.Path) -> None:
    """Libraries of two architectures in one prefix, and a folder that LD_LIBRARY_PATH cannot name."""
    prefix = folder / 'prefix'
    (prefix / 'bin').mkdir(parents=True)
    launcher = prefix / 'bin' / 'isthmus-simulate'
    shutil.copy(ROOT / 'packaging' / 'simulator' / 'isthmus_simulator.py', launcher)
    content = library.read_bytes()
    other = content[:18] + bytes([content[18] ^ 0x55]) + content[19:]  # e_machine
    for place, what in (('lib/aa', other), ('lib/zz', content)):
        sim = prefix / place / 'isthmus' / 'sim'
        sim.mkdir(parents=True)
        (sim / 'libcuda.so.1').write_bytes(what)

    def simulate(**changed: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, launcher, '--machine', 'orin', '--', sys.executable, '-c', PROGRAM, 'libcuda.so.1']
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **changed})

    reported = subprocess.run([sys.executable, launcher, '--machine', 'orin', '--report', '--', sys.executable, '-c',
                               PROGRAM, 'libcuda.so.1', 'twice'], capture_output=True, text=True, check=False)
    for words in ('simulated on orin; devices lost: none', 'cuStreamDestroy of a stream that is already destroyed',
                  '  cuStreamCreate', 'ended by signal 11', 'not modelled\n  nothing'):
        assert words in reported.stderr, (words, reported.stderr)
    unused = subprocess.run([sys.executable, launcher, '--machine', 'orin', '--report', '--', 'true'],
                            capture_output=True, text=True, check=False)
    assert unused.returncode == 0 and 'no call of the simulated driver was made' in unused.stderr, unused
    assert 'simulated on' not in simulate().stderr  # only on request

    two = simulate()
    assert two.returncode == 7 and 'Orin' in two.stdout, two
    for character in ':;':
        place = folder / f'with{character}it'
        place.mkdir()
        refused = simulate(TMPDIR=str(place))
        assert refused.returncode == 126 and 'LD_LIBRARY_PATH' in refused.stderr, refused
        assert not list(place.iterdir())
    shutil.rmtree(prefix / 'lib' / 'zz')
    wrong = simulate()
    assert wrong.returncode == 126 and 'another architecture' in wrong.stderr, wrong


def main() -> None:
    for number in (signal.SIGHUP, signal.SIGQUIT):   # nohup and shells in the background ignore them
        signal.signal(number, signal.SIG_DFL)
    library = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sys.path.insert(0, str(ROOT / 'packaging' / 'simulator'))
        import simulator_backend
        wheel = folder / simulator_backend.build_wheel(name, {'library': str(library)})
        names = zipfile.ZipFile(wheel).namelist()
        assert not [each for each in names if 'libisthmus' in each], names
        venv.create(folder / 'environment', with_pip=True)
        binaries = folder / 'environment' / 'bin'
        subprocess.run([binaries / 'pip', 'install', '--quiet', '--no-index', '--no-deps', wheel], check=True)

        def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [binaries / 'isthmus-simulate', *arguments]
            return subprocess.run(command, capture_output=True, text=True, cwd=folder)

        python = [sys.executable, '-c', PROGRAM]
        for library_name in ('libcuda.so.1', 'libcuda.so'):
            orin = simulate('--machine', 'orin', '--', *python, library_name)
            assert orin.returncode == 7 and 'Orin' in orin.stdout, orin
        h200 = simulate('--machine', 'h200', '--', *python, 'libcuda.so.1')
        assert h200.returncode == 7 and 'H200' in h200.stdout, h200
        strict = simulate('--machine', 'h200', '--strict', '--', *python, 'libcuda.so.1', 'twice')
        assert strict.returncode == 134 and 'already destroyed' in strict.stderr, strict
        unknown = simulate('--machine', 'nothing', '--', *python, 'libcuda.so.1')
        assert unknown.returncode == 1 and 'ISTHMUS_SIM=nothing' in unknown.stderr, unknown
        shutil.copy(ROOT / 'platform' / 'machines' / 'h200.json', folder / 'record.json')
        moved = simulate('--machine', 'record.json', '--', *python[:2], 'import os; os.chdir("/")' + PROGRAM,
                         'libcuda.so.1')
        assert moved.returncode == 7 and 'H200' in moved.stdout, moved
        assert simulate('--machine', 'orin', '--', './absent').returncode == 127
        assert simulate('--', 'true').returncode == 2  # no machine is named
        check_signals([binaries / 'isthmus-simulate'], folder)
        check_places(library, folder)


if __name__ == '__main__':
    main()
