#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other people's Python programs under `isthmus simulate`: cuda.core's and Numba's kernels, with and without --strict.

ISTHMUS_CLIENTS_PYTHON and ISTHMUS_NUMBA_PYTHON as in tests/unit/sim; what is not installed is skipped.

usage: simulated_clients_test.py COMMAND FOLDER MACHINE[,MACHINE...] NVJITLINK
FOLDER: tests/unit/sim; NVJITLINK: as numba_test.py has it
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMMAND, FOLDER, MACHINES, NVJITLINK = sys.argv[1], sys.argv[2], sys.argv[3].split(','), sys.argv[4]
sys.argv[1:] = []
sys.path.insert(0, FOLDER)
import cuda_core_test  # noqa: E402
import numba_test  # noqa: E402


def simulate(python, code, *words, machine, strict=False, preload=''):
    """The finished command, and the document with its report."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith('ISTHMUS_SIM')}
    environment.pop('LD_LIBRARY_PATH', None)
    if preload:
        environment['LD_PRELOAD'] = preload
    with tempfile.TemporaryDirectory() as place:
        report = pathlib.Path(place) / 'report.json'
        done = subprocess.run([COMMAND, 'simulate', '--machine', machine, *(['--strict'] if strict else []), '--output',
                               str(report), '--', python, '-c', code, *words], text=True, timeout=300, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        return done, json.loads(report.read_text(encoding='utf-8')) if report.exists() else {}


class Clients(unittest.TestCase):
    def check(self, python, package, code, *words, **options):
        if subprocess.run([python, '-c', 'import ' + package], capture_output=True, check=False).returncode != 0:
            self.skipTest(package + ' is not installed')
        ran = 0
        for machine in MACHINES:
            for strict in (False, True):
                done, report = simulate(python, code, *words, machine=machine, strict=strict, **options)
                if 'UNSUPPORTED_PTX_VERSION' in done.stderr + done.stdout:
                    continue  # the compiler is newer than this machine's driver
                self.assertEqual(done.returncode, 0, (machine, strict, done.stderr))
                self.assertGreater(report['kernels_from_ptx'], 0, machine)
                self.assertEqual(report['caught'], [], machine)
                self.assertIn('of them from PTX', done.stdout, machine)
                ran += 1
        self.assertGreater(ran, 0, 'no machine took the PTX of this compiler')

    def test_kernels_of_cuda_core(self):
        self.check(cuda_core_test.PYTHON, 'cuda.core', cuda_core_test.PROGRAM, 'all')

    def test_kernels_of_numba(self):
        self.check(numba_test.PYTHON, 'numba.cuda', numba_test.PROGRAM, 'adds_vectors', 'reduces_in_shared_memory',
                   'updates_atomically', preload=NVJITLINK)


if __name__ == '__main__':
    unittest.main()
