#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program of the CUDA driver API on a simulated machine: isthmus-simulate --machine orin -- ./my-program

Needs the simulator alone, not the runtime. --report says at the end what the machine's rules caught, what calls
answered, and what the program did. `isthmus simulate` does the same with a report as JSON and a matrix of machines.
"""
from __future__ import annotations

import argparse
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

CANNOT_START, NOT_FOUND = 126, 127  # as shells answer
PASSED_ON = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
             signal.SIGCONT, signal.SIGWINCH}
PR_SET_PDEATHSIG = 1  # linux/prctl.h
ELF_HEADER_BYTES = 20


class Calls(ctypes.Structure):
    """As all structures here: the layout of driver_abi/sim_statistics.h."""
    _fields_ = [('name', ctypes.c_char * 56), ('count', ctypes.c_uint64)]


class Keyed(ctypes.Structure):
    _fields_ = [('key', ctypes.c_uint64), ('count', ctypes.c_uint64)]


class Message(ctypes.Structure):
    _fields_ = [('key', ctypes.c_uint64), ('count', ctypes.c_uint64), ('written', ctypes.c_uint32),
                ('text', ctypes.c_char * 244)]


class Amount(ctypes.Structure):
    _fields_ = [('count', ctypes.c_uint64), ('bytes', ctypes.c_uint64)]


class Statistics(ctypes.Structure):
    _fields_ = [('magic', ctypes.c_uint64), ('size_bytes', ctypes.c_uint64), ('processes', ctypes.c_uint64),
                ('dropped', ctypes.c_uint64), ('copies', Amount * 9), ('fills', Amount), ('kernels', ctypes.c_uint64),
                ('kernels_from_ptx', ctypes.c_uint64), ('faults', Keyed * 16), ('calls', Calls * 1024), ('refused', Calls * 1024), ('answers', Keyed * 1024),
                ('messages', Message * 256)]


STATISTICS_MAGIC = 0x3174617473736968
PLACES = ('host', 'device', 'managed')
ABOUT_THE_SIMULATOR = ('not modelled', 'no kernel with a registered CPU twin', 'no function stands in')


def section(title: str, rows: list[tuple[int, str]]) -> list[str]:
    """Rows with their counts, the most frequent first."""
    shown = [f'  {count:>8}  {what}' for count, what in sorted(rows, key=lambda row: (-row[0], row[1]))]
    return [title, *(shown or ['  nothing'])]


def report(machine: str, file: bytes) -> str:
    """The counts of a run as text."""
    if not file:
        return (f'simulated on {machine}: no call of the simulated driver was made. A program that opens the driver by '
                'its full path meets that driver.')
    if len(file) != ctypes.sizeof(Statistics):
        return f'simulated on {machine}: the counts are damaged, or the library is of another version'
    counts = Statistics.from_buffer_copy(file)
    if counts.magic != STATISTICS_MAGIC or counts.size_bytes != len(file):
        return f'simulated on {machine}: the counts are damaged, or the library is of another version'
    names = [one.name.decode(errors='replace') for one in counts.calls]
    caught: list[tuple[int, str]] = []
    lacking = [(one.count, one.name.decode(errors='replace')) for one in counts.refused if one.name and one.count]
    for one in counts.messages:
        text = one.text.decode(errors='replace').removeprefix('isthmus simulator: ')
        if one.written:
            about = any(words in text for words in ABOUT_THE_SIMULATOR)
            (lacking if about else caught).append((one.count, text))
    answers = [(one.count, f'{names[((one.key >> 32) - 1) % len(names)]} answered {one.key & 0xffffffff}')
               for one in counts.answers if one.key]
    moved = [(one.count, f'copies from {PLACES[i // 3]} to {PLACES[i % 3]} memory, {one.bytes} bytes')
             for i, one in enumerate(counts.copies) if one.count]
    if counts.fills.count:
        moved.append((counts.fills.count, f'fills, {counts.fills.bytes} bytes'))
    if counts.kernels:
        moved.append((counts.kernels, f'kernels, {counts.kernels_from_ptx} of them from PTX'))
    lost = ', '.join(str(one.key) for one in counts.faults if one.key) or 'none'
    calls = [(one.count, name) for one, name in zip(counts.calls, names) if name and one.count]
    return '\n'.join([f'simulated on {machine}; devices lost: {lost}', *section('caught', caught),
                      *section('refused calls', answers), *section('not modelled', lacking),
                      *section('copies, fills and kernels that ran', moved), *section('calls', calls)])


class Refused(Exception):
    """The program cannot be started; the text says why."""


def architecture(path: pathlib.Path) -> tuple[bytes, bytes] | None:
    """Class and byte order (EI_CLASS, EI_DATA), and e_machine of an ELF file; None: it cannot be read or is no ELF."""
    try:
        with path.open('rb') as file:
            header = file.read(ELF_HEADER_BYTES)
    except OSError:
        return None
    return (header[4:6], header[18:20]) if len(header) == ELF_HEADER_BYTES and header[:4] == b'\x7fELF' else None


def simulator() -> pathlib.Path:
    """The simulated libcuda.so.1 of this Python's architecture: beside this file (wheel), or in a library folder of
    this file's prefix. Several architectures may be installed there."""
    here = pathlib.Path(__file__).resolve().parent
    places = [here / 'lib' / 'libcuda.so.1']
    for pattern in ('lib/isthmus/sim', 'lib64/isthmus/sim', 'lib/*/isthmus/sim'):
        places += sorted(path / 'libcuda.so.1' for path in here.parent.glob(pattern))
    found = [path for path in places if path.is_file()]
    if not found:
        raise Refused('the simulated libcuda.so.1 is not where it was installed')
    own = architecture(pathlib.Path('/proc/self/exe'))
    for path in found:
        if own is None or architecture(path) == own:
            return path
    raise Refused(f'{found[0]} is built for another architecture than this Python')


def record_or_name(machine: str) -> str:
    """A record's path is made absolute, because the program may change its folder. What is a path, the library decides
    so too."""
    is_path = '/' in machine or machine.endswith('.json')
    return os.path.abspath(machine) if is_path and os.path.isfile(machine) else machine


def environment(folder: str, library: pathlib.Path, machine: str, strict: bool, counts: str | None) -> dict[str, str]:
    before = os.environ.get('LD_LIBRARY_PATH')
    added = {'LD_LIBRARY_PATH': folder + (f':{before}' if before else ''), 'ISTHMUS_CUDA_LIBRARY': str(library),
             'ISTHMUS_SIM': record_or_name(machine)}
    if strict:
        added['ISTHMUS_SIM_STRICT'] = '1'
    if counts:
        added['ISTHMUS_SIM_STATISTICS'] = counts
    return {**os.environ, **added}


def wait_for(program: subprocess.Popen[bytes]) -> int:
    """The exit code, as a shell gives it. Passes signals on; SIGCHLD and those of PASSED_ON are blocked."""
    while program.poll() is None:
        came = signal.sigwaitinfo({signal.SIGCHLD, *PASSED_ON})
        # A terminal's signal (SI_KERNEL, positive) has reached the program itself.
        if came.si_signo != signal.SIGCHLD and came.si_code <= 0:
            program.send_signal(came.si_signo)
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


def run(library: pathlib.Path, machine: str, strict: bool, with_report: bool, command: list[str]) -> int:
    # They stay blocked until this process ends: a signal must not end it before the folder is removed.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *PASSED_ON})
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the caller may ignore it; then no program could be waited for
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def in_the_program() -> None:
        prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
        if os.getppid() != parent:  # it ended before prctl()
            os._exit(1)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own; a caller that ignores SIGINT is followed
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    with tempfile.TemporaryDirectory(prefix='isthmus-simulate-') as folder:
        if ':' in folder or ';' in folder:
            raise Refused(f"the folder {folder} cannot be named in LD_LIBRARY_PATH because its path has ':' or ';'; "
                          'set TMPDIR to another folder')
        for name in ('libcuda.so.1', 'libcuda.so'):
            os.symlink(library, os.path.join(folder, name))
        counts = pathlib.Path(folder, 'counts')
        if with_report:
            counts.touch()
        try:
            added = environment(folder, library, machine, strict, str(counts) if with_report else None)
            program = subprocess.Popen(command, env=added, preexec_fn=in_the_program)
        except OSError as problem:
            print(f'isthmus-simulate: {command[0]}: {problem.strerror}', file=sys.stderr)
            return NOT_FOUND if isinstance(problem, FileNotFoundError) else CANNOT_START
        code = wait_for(program)
        if with_report:
            ended = f'exit code {code}' if program.returncode >= 0 else f'ended by signal {-program.returncode}'
            print(f'{report(machine, counts.read_bytes())}\n{ended}', file=sys.stderr)
        return code


def main() -> int:
    parser = argparse.ArgumentParser(prog='isthmus-simulate', description=(__doc__ or '').split('\n')[0])
    parser.add_argument('--machine', required=True, help='orin, thor, h200, gh200-numa, ..., or the path of a record')
    parser.add_argument('--strict', action='store_true',
                        help='abort the program where a real driver leaves a call undefined')
    parser.add_argument('--report', action='store_true',
                        help='print on standard error what was caught, refused, copied and called')
    parser.add_argument('command', nargs='+', metavar='PROGRAM', help='the program and its arguments, behind --')
    asked = parser.parse_args()
    try:
        return run(simulator(), asked.machine, asked.strict, asked.report, asked.command)
    except Refused as problem:
        print(f'isthmus-simulate: {problem}', file=sys.stderr)
        return CANNOT_START


if __name__ == '__main__':
    sys.exit(main())
