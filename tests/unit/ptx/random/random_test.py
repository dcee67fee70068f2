#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random PTX programs (random_ptx.py) on the simulated machine that ISTHMUS_SIM names, beside what a GPU made of them.

recorded.bin has 8 bytes for each seed from 0 on: the digest of all results of its program on a GPU; 0 where none was
recorded. Without the file the comparison is skipped, and the rest is tested. ISTHMUS_RANDOM_PTX=all compares all seeds
instead of a sample.

usage: random_test.py
       random_test.py --record RESULTS       writes recorded.bin from the output of random_runner.py on a GPU
       random_test.py --compare RESULTS      runs the same programs here, and names the first step that differs
"""
import collections
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import random_ptx as rp  # noqa: E402
import random_runner as runner  # noqa: E402

RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'recorded.bin')
BATCH = 50
SAMPLE = 600     # programs of many steps, beside those of one instruction


def recorded():
    if not os.path.exists(RECORD):
        return {}
    with open(RECORD, 'rb') as file:
        data = file.read()
    digests = [data[at:at + 8].hex() for at in range(0, len(data), 8)]
    return {seed: digest for seed, digest in enumerate(digests) if digest != '0' * 16}


def run_here(seeds):
    """The line of each seed, as random_runner.py writes it: [seed, digest, digests of rows]."""
    driver = runner.Driver()
    room = driver.allocate(BATCH * runner.INPUT_BYTES), driver.allocate(BATCH * runner.PROGRAM_BYTES)
    lines = {}
    for at in range(0, len(seeds), BATCH):
        for seed, rows in runner.results_of(driver, seeds[at:at + BATCH], room):
            failed = isinstance(rows, runner.Failure)
            lines[seed] = [str(seed), 'error', str(rows)] if failed else runner.line_of(seed, rows).split()
    return lines


def step_of(seed, row):
    if seed < rp.SINGLES:
        return rp.single(seed)[0]
    names = rp.make(seed).names
    return names[row] if row < len(names) else '?'


def lines_of(path):
    with open(path, encoding='ascii') as file:
        lines = [line.split() for line in file]
    return {int(line[0]): line for line in lines if line[0].isdigit() and line[1] != 'error'}


def record(path):
    lines = lines_of(path)
    with open(RECORD, 'wb') as file:
        for seed in range(max(lines) + 1):
            file.write(bytes.fromhex(lines[seed][1]) if seed in lines else bytes(8))
    print(f'{len(lines)} digests')


def compare(path):
    theirs = lines_of(path)
    ours = run_here(sorted(theirs))
    counts = collections.Counter()
    seeds = {}
    for seed, line in sorted(theirs.items()):
        mine = ours[seed]
        if mine[1] == line[1]:
            continue
        if mine[1] == 'error':
            step = mine[2]
        else:
            rows = [(line[2][at:at + 4], mine[2][at:at + 4]) for at in range(0, max(len(line[2]), len(mine[2])), 4)]
            row = next((at for at, (there, here) in enumerate(rows) if there != here), 0)
            step = step_of(seed, row) if row < len(rows) - 1 or seed < rp.SINGLES else 'the row of all threads'
        counts[step] += 1
        seeds.setdefault(step, seed)
    for step, count in counts.most_common():
        print(f'{count} programs differ first in: {step}   (seed {seeds[step]})')
    print(f'{len(theirs) - sum(counts.values())} of {len(theirs)} programs agree')


class RandomPtx(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        known = recorded()
        cls.known = known
        seeds = set(range(rp.SINGLES + SAMPLE))
        if os.environ.get('ISTHMUS_RANDOM_PTX') == 'all':
            seeds |= set(known)
        cls.seeds = sorted(seeds)
        cls.lines = run_here(cls.seeds)

    def test_every_program_runs(self):
        failed = [line for line in self.lines.values() if line[1] == 'error']
        self.assertEqual(failed, [])

    # The digest of a row that holds 1 for each thread.
    def test_approximations_lie_within_their_errors(self):
        near = f'{runner.zlib.crc32(bytes([1]) * rp.LANES) & 0xffff:04x}' * rp.SINGLE_ROWS
        for seed in range(rp.SINGLES - len(rp.APPROXIMATIONS), rp.SINGLES):
            self.assertEqual(self.lines[seed][2], near, rp.single(seed)[0])

    # A generator whose programs do not depend on their seed would prove nothing.
    def test_results_differ_between_programs(self):
        digests = [self.lines[seed][1] for seed in range(rp.SINGLES, rp.SINGLES + SAMPLE)]
        self.assertEqual(len(set(digests)), SAMPLE)

    def test_results_are_those_of_a_gpu(self):
        if not self.known:
            self.skipTest('no results of a GPU are recorded')
        different = [seed for seed in self.seeds if seed in self.known and self.lines[seed][1] != self.known[seed]]
        self.assertEqual(different, [], 'random_test.py --compare names the steps')
        print(f'{sum(seed in self.known for seed in self.seeds)} programs as on a GPU')


if __name__ == '__main__':
    if len(sys.argv) == 3 and sys.argv[1] == '--record':
        record(sys.argv[2])
    elif len(sys.argv) == 3 and sys.argv[1] == '--compare':
        compare(sys.argv[2])
    else:
        unittest.main()
