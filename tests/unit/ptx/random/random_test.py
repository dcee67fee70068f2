#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random PTX programs (random_ptx.py) on the simulated machine that ISTHMUS_SIM names, beside what a GPU made of them.

recorded.bin has 8 bytes for each seed from 0 on: the digest of all results of its program on a GPU; 0 where none was
recorded. Without the file the comparison is skipped, and the rest is tested. ISTHMUS_RANDOM_PTX=all compares all seeds
instead of a sample.

usage: random_test.py
       random_test.py --record RESULTS [SEED...]   adds the output of random_runner.py or random_recorder.py on a GPU
                                                   to recorded.bin, without these seeds
       random_test.py --compare RESULTS            runs the same programs here, and names the first step that differs
"""
import collections
import os
import re
import subprocess
import sys
import tempfile
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


def record(path, left_out):
    """Adds results to those recorded."""
    digests = recorded()
    digests.update({seed: line[1] for seed, line in lines_of(path).items() if seed not in left_out})
    with open(RECORD, 'wb') as file:
        for seed in range(max(digests) + 1):
            file.write(bytes.fromhex(digests.get(seed, '0' * 16)))
    print(f'{len(digests)} digests')


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


# Runs the recorder where one program never ends, one ends its process, and one fails.
RECORDER = '''
import os, sys, time
sys.path.insert(0, sys.argv[1])
import random_recorder as recorder
first = recorder.rp.SINGLES
recorder.SECONDS['batch'] = recorder.SECONDS['run'] = 4.0
def line_of(seed, rows, whole=recorder.runner.line_of):
    if seed == first + 5:
        time.sleep(1000)
    if seed == first + 20:
        os._exit(0)
    if seed == first + 60:
        raise recorder.runner.Failure('cuStreamQuery answered 700')
    return whole(seed, rows)
recorder.runner.line_of = line_of
whole = recorder.Recording(first, first + 150, sys.argv[2], 2, 100, None).run()
os._exit(3 if not whole else 0)
'''


class Recorder(unittest.TestCase):
    def test_programs_that_never_end_cost_no_others_their_results(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, 'results')
            done = subprocess.run([sys.executable, '-c', RECORDER, os.path.dirname(RECORD), out], timeout=120,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 3, done)
            with open(out + '.stuck', encoding='ascii') as file:
                stuck = {int(line.split()[0]) - rp.SINGLES: line.split(' ', 1)[1].strip() for line in file}
            self.assertEqual(stuck, {5: 'run took more than 4 s', 20: 'run ended', 60: 'run cuStreamQuery answered 700'})
            found = lines_of(out)
            wanted = {rp.SINGLES + at for at in range(150)} - {rp.SINGLES + at for at in stuck}
            self.assertEqual(set(found), wanted)
            here = run_here(sorted(wanted)[:20])
            self.assertEqual([found[seed] for seed in here], list(here.values()))


class Generator(unittest.TestCase):
    def test_programs_jump_back_by_counters_alone(self):
        """Every jump back is the end of a loop whose counter is at most 15 and was just lowered."""
        loops = 0
        for seed in range(rp.SINGLES, rp.SINGLES + 300):
            lines = [line.strip() for line in rp.make(seed).lines]
            labels = {line[:-1]: at for at, line in enumerate(lines) if line.endswith(':')}
            for at, line in enumerate(lines):
                jump = re.fullmatch(r'(@!?%p\d+ )?bra(?:\.uni)? (\w+);', line)
                targets = [jump[2]] if jump else []
                if '.branchtargets' in line:
                    targets = line.split('.branchtargets ')[1].rstrip(';').split(', ')
                for target in targets:
                    begin = labels[target]
                    if begin > at:
                        continue
                    loops += 1
                    count = re.fullmatch(r'sub\.u32 (%r\d+), \1, 1;', lines[at - 1])[1]
                    test = re.fullmatch(r'setp\.eq\.u32 (%p\d+), (%r\d+), 0;', lines[begin + 1])
                    self.assertEqual(test[2], count)
                    self.assertRegex(lines[begin + 2], f'@{test[1]} bra ')
                    before = [one for one in lines[:begin] if re.match(rf'\S+ {count},', one)]
                    self.assertRegex(before[-1], rf'and\.b32 {count}, \S+, (3|7|15);')
                    within = [one for one in lines[begin:at] if re.search(rf'^(@!?%p\d+ )?\S+ {count},', one)]
                    self.assertEqual(len(within), 1, within)      # the counter is written once in a turn
        self.assertGreater(loops, 100)

    def test_programs_keep_away_from_what_ptxas_compiles_otherwise(self):
        """docs/hardware.md: `set` with floats, flags of selp, atomics on halves, recursion that parts the lanes."""
        seen = collections.Counter()
        for seed in range(rp.SINGLES, rp.SINGLES + 300):
            maker = rp.make(seed)
            lines = [line.strip() for line in maker.lines]
            for at, line in enumerate(lines):
                made = re.match(r'set\.\w+\.(?:f32|f16)\.\w+ (%[rh]\d+),', line)
                if made:
                    seen['set'] += 1
                    reads = [one for one in lines if re.search(rf'{made[1]}\b', one)]
                    self.assertRegex(' '.join(reads), rf'^\S+ {made[1]}, .*; st\.global\.b(32|16) \S+, {made[1]};$')
                flag = re.match(r'selp\.u32 (%r\d+), 1, 0,', line)
                if flag:
                    seen['flag'] += 1
                    reads = [one for one in lines if re.search(rf' (?!{flag[1]},).*{flag[1]}\b', one)]
                    self.assertEqual([one for one in reads if one.startswith('cvt') and '.f' in one], [], line)
                if line.startswith('call (c), descend'):
                    seen['descend'] += 1
                    self.assertRegex(lines[at - 6], r'shr\.u32 %r\d+, %number, 5;')
                if re.match(r'st\S*\.b8 ', line):
                    seen['st.b8'] += 1
                    stored = re.search(r'(%h\d+);$', line)[1]
                    self.assertFalse([one for one in lines if re.match(rf'atom\S+ {stored},', one)], line)
        self.assertGreater(min(seen.values()), 50, seen)
        self.assertEqual(len(seen), 4)

    def test_every_step_occurs(self):
        steps = {step for _, step in rp.Maker.STEPS}
        names = {name for seed in range(rp.SINGLES, rp.SINGLES + 300) for name in rp.make(seed).names}
        marks = ['add.', 'rem.', 'setp.', 'and.pred', 'carry', 'mov.b64 of', 'shared memory', 'ld.v4.b32', 'ld.const',
                 'global new', 'of a block', 'shfl.', 'redux.', 'bar.red', '%lane', '@ ', 'branch', 'loop', 'brx.idx',
                 'recursive call']
        self.assertEqual(len(marks), len(steps))
        for mark in marks:
            self.assertTrue(any(mark in name for name in names), mark)

    def test_lanes_wait_for_those_that_come(self):
        """Instructions of .sync name all lanes, or those of their side of a branch."""
        for seed in range(rp.SINGLES, rp.SINGLES + 300):
            lines = [line.strip() for line in rp.make(seed).lines]
            for at, line in enumerate(lines):
                if not re.search(r'\.sync(\.|\s)', line) or line.startswith('bar.sync'):
                    continue
                members = re.search(r'(\S+);$', line)[1]
                if members == '0xffffffff':
                    continue
                ballot = next(one for one in reversed(lines[:at]) if one.startswith('vote.sync.ballot')
                              and one.endswith('0xffffffff;'))
                taken, condition = re.match(r'vote\.sync\.ballot\.b32 (%r\d+), (%p\d+), ', ballot).groups()
                begin = lines.index(ballot)
                rest = re.fullmatch(rf'not\.b32 (%r\d+), {taken};', lines[begin + 1])[1]
                other = next(re.fullmatch(rf'@!{condition} bra (\w+);', one)[1] for one in lines[begin:at]
                             if one.startswith(f'@!{condition} bra '))
                self.assertEqual(members, rest if lines.index(other + ':') < at else taken, line)


if __name__ == '__main__':
    if len(sys.argv) >= 3 and sys.argv[1] == '--record':
        record(sys.argv[2], {int(seed) for seed in sys.argv[3:]})
    elif len(sys.argv) == 3 and sys.argv[1] == '--compare':
        compare(sys.argv[2])
    else:
        unittest.main()
