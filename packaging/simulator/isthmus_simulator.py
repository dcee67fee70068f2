#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program of the CUDA driver API on a simulated machine: isthmus-simulate --machine orin -- ./my-program

Needs the simulator alone, not the runtime. `isthmus simulate` does the same with a report and a matrix of machines.
"""
from __future__ import annotations

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

CANNOT_START, NOT_FOUND = 126, 127  # as shells answer


def simulator() -> pathlib.Path | None:
    """The simulated libcuda.so.1: beside this file (wheel), or in the library folder of this file's prefix."""
    here = pathlib.Path(__file__).resolve().parent
    found = [here / 'lib' / 'libcuda.so.1']
    for pattern in ('lib/isthmus/sim', 'lib64/isthmus/sim', 'lib/*/isthmus/sim'):
        found += sorted(path / 'libcuda.so.1' for path in here.parent.glob(pattern))
    return next((path for path in found if path.is_file()), None)


def environment(folder: str, library: pathlib.Path, machine: str, strict: bool) -> dict[str, str]:
    before = os.environ.get('LD_LIBRARY_PATH')
    added = {'LD_LIBRARY_PATH': folder + (f':{before}' if before else ''), 'ISTHMUS_CUDA_LIBRARY': str(library),
             'ISTHMUS_SIM': machine}
    if strict:
        added['ISTHMUS_SIM_STRICT'] = '1'
    return {**os.environ, **added}


def run(library: pathlib.Path, machine: str, strict: bool, command: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix='isthmus-simulate-') as folder:
        for name in ('libcuda.so.1', 'libcuda.so'):
            os.symlink(library, os.path.join(folder, name))
        # The program gets the terminal's signals itself; this process waits for it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            program = subprocess.Popen(command, env=environment(folder, library, machine, strict),
                                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        except OSError as problem:
            print(f'isthmus-simulate: {command[0]}: {problem.strerror}', file=sys.stderr)
            return NOT_FOUND if isinstance(problem, FileNotFoundError) else CANNOT_START
        code = program.wait()
        return code if code >= 0 else 128 - code


def main() -> int:
    parser = argparse.ArgumentParser(prog='isthmus-simulate', description=(__doc__ or '').split('\n')[0])
    parser.add_argument('--machine', required=True, help='orin, thor, h200, gh200-numa, ..., or the path of a record')
    parser.add_argument('--strict', action='store_true',
                        help='abort the program where a real driver leaves a call undefined')
    parser.add_argument('command', nargs='+', metavar='PROGRAM', help='the program and its arguments, behind --')
    asked = parser.parse_args()
    library = simulator()
    if library is None:
        print('isthmus-simulate: the simulated libcuda.so.1 is not where it was installed', file=sys.stderr)
        return CANNOT_START
    return run(library, asked.machine, asked.strict, asked.command)


if __name__ == '__main__':
    sys.exit(main())
