#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Driver-API samples under `isthmus simulate`, on each machine, with and without --strict: they end well, or say what the
machine lacks, and nothing is caught, refused or missing.

usage: samples_test.py COMMAND RECORDS PTX MACHINE[,MACHINE...] PROGRAM...
RECORDS: the folder of the machines' records
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMMAND, RECORDS, PTX, MACHINES, *PROGRAMS = sys.argv[1:]


def lacks(machine, program):
    """Whether the machine's record says that this sample cannot run there."""
    record = json.loads((pathlib.Path(RECORDS) / (machine + '.json')).read_text(encoding='utf-8'))
    if not record['devices']:
        return True
    attributes = record['devices'][0]['attributes']
    needs = {'shared_by_descriptor': ['VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED',
                                      'HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED'],
             'mapped_memory': ['CAN_MAP_HOST_MEMORY']}
    return any(attributes.get(one, 0) == 0 for one in needs.get(program, []))


class Samples(unittest.TestCase):
    def run_on(self, machine, program, strict, report):
        options = ['--machine', machine, '--quiet', '--output', report] + (['--strict'] if strict else [])
        kept = {key: value for key, value in os.environ.items() if not key.startswith('ISTHMUS_')}
        return subprocess.run([COMMAND, 'simulate', *options, '--', program, PTX], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120, check=False, env=kept)

    def test_each_sample_on_each_machine(self):
        ran = 0
        for program in PROGRAMS:
            name = os.path.basename(program).removeprefix('sample_')
            for machine in MACHINES.split(','):
                for strict in (False, True):
                    with self.subTest(program=name, machine=machine, strict=strict), \
                            tempfile.TemporaryDirectory() as place:
                        report = os.path.join(place, 'report.json')
                        done = self.run_on(machine, program, strict, report)
                        self.assertEqual(done.returncode, 77 if lacks(machine, name) else 0, done.stderr)
                        if done.returncode == 77:
                            continue
                        said = json.loads(pathlib.Path(report).read_text(encoding='utf-8'))
                        for part in ('caught', 'faults', 'refusals', 'unsupported'):
                            self.assertEqual(said[part], [], part)
                        self.assertEqual(said['kernels_from_ptx'], said['kernels'])
                        self.assertEqual(said['kernels'], 1)
                        self.assertEqual(said['processes'], 2 if name == 'shared_by_descriptor' else 1)
                        ran += 1
        self.assertGreater(ran, 0)


if __name__ == '__main__':
    sys.argv[1:] = []
    unittest.main()
