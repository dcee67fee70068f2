#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`isthmus replay`: recordings of one machine on every simulated one, held against the machines' facts.

usage: replay_command_test.py ISTHMUS TRACES MACHINE...
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

COMMAND = []  # under emulation: the wrapper that Meson names, then the program
TRACES = ''
MACHINES = []
FRAMES = 4


def run(*arguments, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(('ISTHMUS_', 'XDG_CONFIG'))}
    clean['XDG_CONFIG_HOME'] = '/nonexistent'
    clean.update(environment)
    return subprocess.run([*COMMAND, *arguments], env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=200)


class Facts:
    """What `isthmus caps` says of a simulated machine's default device."""

    def __init__(self, machine):
        done = run('caps', '--machine', machine, '--json')
        devices = [one for one in json.loads(done.stdout)['devices'] if one['row'] != 'cpu']
        self.gpu = bool(devices)
        self.features = devices[0]['features'] if devices else {}

    def has(self, feature):
        return self.features.get(feature, {}).get('state') == 'yes'


class Recorded:
    """A trace, event by event, as libisthmus-trace writes it."""

    def __init__(self):
        self.events = []

    def event(self, phase, category, name, **arguments):
        self.events.append({'ph': phase, 'pid': 1, 'tid': 1, 'ts': len(self.events) + 0.5, 'cat': category,
                            'name': name, 'args': arguments})
        return self

    def buffer(self, address, size, how='shared', reason='host=writes_often device=reads_and_writes'):
        return self.event('i', 'buffer', 'buffer: ' + how, address=address, bytes=size, memory='pinned', reason=reason)

    def launch(self, *uses, name='brighten', **end):
        self.event('B', 'launch', name, stream=7)
        for use, address, size, *memory in uses:
            kind = {'memory': memory[0]} if memory else {}
            self.event('i', 'argument', 'argument: ' + use, address=address, bytes=size, reason='checked', **kind)
        return self.event('E', 'launch', name, stream=7, position=1, **end)

    def open_view(self, use, address, size):
        how = 'a view for reading' if use == 'read' else 'a view for writing'
        self.event('b', 'host_view', how, address=address, bytes=size, memory='pinned')
        return self.event('i', 'argument', 'argument: ' + use, address=address, bytes=size, memory='pinned')

    def close_view(self, use, address, size):
        how = 'a view for reading' if use == 'read' else 'a view for writing'
        return self.event('e', 'host_view', how, address=address, bytes=size, memory='pinned')

    def view(self, use, address, size):
        return self.open_view(use, address, size).close_view(use, address, size)

    def text(self):
        return json.dumps({'otherData': {'isthmus': '0.1.0', 'recorded': len(self.events), 'dropped': 0},
                           'traceEvents': self.events})


class Replays(unittest.TestCase):  # keeps O4
    @classmethod
    def setUpClass(cls):
        if run('caps', '--machine', MACHINES[0]).returncode == 3:
            raise unittest.SkipTest('this build has no simulator')
        cls.facts = {machine: Facts(machine) for machine in MACHINES}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as file:
            file.write(text)
        return self.path(name)

    def record(self, machine, *arguments):
        """`isthmus run` on a simulated machine, recorded."""
        picture, file = self.path('picture.pgm'), self.path('trace.json')
        with open(picture, 'wb') as out:
            out.write(b'P5 96 64 255\n' + bytes((x * 7 + y * 13) % 256 for y in range(64) for x in range(96)))
        done = run('run', picture, '--frames', str(FRAMES), '--machine', machine, '--trace', file, *arguments)
        self.assertEqual(done.returncode, 0, done)
        return file

    def replay(self, file, *machines):
        """The outcome on each machine, by its name."""
        done = run('replay', file, '--machines', ','.join(machines or MACHINES), '--json')
        self.assertEqual(done.returncode, 0, done)
        outcomes = {one['machine']: one for one in json.loads(done.stdout)['machines']}
        for machine, outcome in outcomes.items():
            self.assertNotIn('problem', outcome, machine)
        return outcomes

    def test_the_recording_of_an_h100_on_every_machine(self):
        for machine, outcome in self.replay(os.path.join(TRACES, 'isthmus-run-h100.json')).items():
            with self.subTest(machine=machine):
                self.assertEqual(outcome['frames'], 12)
                self.assertTrue(outcome['frames_of_rings'])
                self.assertEqual(outcome['refusals'], [])
                self.assertEqual(outcome['skipped'], 0)
                self.assertEqual(outcome['copied'], 0)
                gpu = self.facts[machine].gpu
                self.assertEqual(outcome['waited'] > 0, gpu, outcome['waits'])
                kinds = {group['kind'] for group in outcome['memory'] if group['made'] == 'shared'}
                integrated = self.facts[machine].has('host_page_tables')
                self.assertEqual(kinds, {'host'} if not gpu or integrated else {'pinned'})

    def test_managed_memory_is_refused_attached_or_moved(self):
        file = self.record('h200', '--memory', 'managed')
        for machine, outcome in self.replay(file).items():
            facts = self.facts[machine]
            with self.subTest(machine=machine):
                self.assertEqual(outcome['refused'] == 0, facts.has('managed'), outcome['refusals'])
                self.assertEqual(outcome['skipped'] == 0, facts.has('managed'))
                by_turns = facts.has('managed') and not facts.has('concurrent_managed')
                self.assertEqual(outcome['attaches'] > 0, by_turns, outcome)
                paths = {group['path'] for group in outcome['memory'] if group['kind'] == 'managed'}
                self.assertEqual('attach' in paths, by_turns)
                self.assertEqual(outcome['prefetches'] > 0, 'prefetch' in paths)
                for refusal in outcome['refusals']:
                    self.assertNotEqual(refusal['error'], '')
                    self.assertNotEqual(refusal['remedy'], '')
                    self.assertEqual(refusal['recorded'], 0)

    def test_ordinary_host_memory_is_refused_where_the_gpu_faults_on_it(self):
        if 'gh200-numa' not in MACHINES:
            self.skipTest('not played here')
        file = self.record('gh200-numa', '--memory', 'host')
        for machine, outcome in self.replay(file).items():
            facts = self.facts[machine]
            with self.subTest(machine=machine):
                fine = not facts.gpu or facts.has('pageable_access')
                self.assertEqual(outcome['refused'] == 0, fine, outcome['refusals'])

    def test_the_recorded_machine_does_as_recorded(self):
        """Copies and their bytes are those of the recording, and a frame of it has as many on each machine."""
        if 'h200' not in MACHINES:
            self.skipTest('not played here')
        file = self.record('h200', '--memory', 'device')
        summary = json.loads(run('trace', file, '--json').stdout)
        self.assertGreater(summary['copied_bytes'], 0)
        for machine, outcome in self.replay(file).items():
            with self.subTest(machine=machine):
                gpu = self.facts[machine].gpu
                self.assertEqual(outcome['copied_bytes'], summary['copied_bytes'] if gpu else 0)
                self.assertEqual(outcome['copied'], sum(one['count'] for one in summary['copies']) if gpu else 0)

    def test_a_launch_beside_an_open_view_is_refused_everywhere(self):
        file = self.write('open.json', Recorded().buffer('0x1000', 4096).open_view('read', '0x1000', 4096)
                          .launch(('read_write', '0x1000', 4096, 'pinned'), code='in_use', error='K005')
                          .launch(('read_write', '0x1000', 4096, 'pinned'))
                          .close_view('read', '0x1000', 4096)
                          .launch(('read_write', '0x1000', 4096, 'pinned')).text())
        for machine, outcome in self.replay(file).items():
            with self.subTest(machine=machine):
                self.assertEqual(outcome['refused'], 2)
                self.assertEqual([(one['call'], one['code'], one['count'], one['recorded'])
                                  for one in outcome['refusals']], [('launch brighten', 'in_use', 2, 1)])

    def test_a_plain_pointer_is_refused_where_the_gpu_faults_on_it(self):
        file = self.write('pointer.json', Recorded().launch(('read', '0x7000', 64)).text())
        for machine, outcome in self.replay(file).items():
            facts = self.facts[machine]
            with self.subTest(machine=machine):
                fine = not facts.gpu or facts.has('pageable_access')
                self.assertEqual([one['error'] for one in outcome['refusals']], [] if fine else ['L003'])
                self.assertIn('plain pointers', ' '.join(outcome['notes']))

    def test_each_wait_for_running_work_counts_once(self):
        recorded = Recorded().buffer('0x1000', 4096).buffer('0x2000', 4096)
        for _ in range(5):
            recorded.view('write', '0x1000', 4096).launch(('read_write', '0x1000', 4096, 'pinned'))
            recorded.view('write', '0x2000', 4096)  # the launch does not use it
            recorded.view('read', '0x1000', 4096)
        for machine, outcome in self.replay(self.write('waits.json', recorded.text())).items():
            with self.subTest(machine=machine):
                gpu = self.facts[machine].gpu
                self.assertEqual(outcome['frames'], 5)
                mine = [one for one in outcome['waits'] if one['waits_for'] == 'brighten']
                self.assertEqual([(one['inside'], one['count']) for one in mine],
                                 [('a view for reading', 5)] if gpu else [])

    def test_memory_of_before_the_recording_is_said(self):
        file = self.write('before.json', Recorded().launch(('read_write', '0x9000', 64, 'pinned'))
                          .view('read', '0x9000', 64).text())
        for machine, outcome in self.replay(file).items():
            with self.subTest(machine=machine):
                self.assertEqual(outcome['refused'], 0)
                self.assertEqual([group['made'] for group in outcome['memory']], ['made before the recording'])
                self.assertIn('before the recording', ' '.join(outcome['notes']))

    def test_more_memory_than_a_machine_has_is_refused(self):
        file = self.write('large.json', Recorded().buffer('0x1000', 1 << 62).view('read', '0x1000', 1 << 62)
                          .launch(('read_write', '0x1000', 1 << 62, 'pinned')).text())
        for machine, outcome in self.replay(file).items():
            with self.subTest(machine=machine):
                self.assertEqual([one['call'] for one in outcome['refusals']], ['allocate'])
                self.assertEqual(outcome['skipped'], 2)

    def test_a_profile_tells_costs(self):
        if 'orin' not in MACHINES or 'h200' not in MACHINES:
            self.skipTest('not played here')
        profile = self.path('profile.json')
        done = run('tune', '--machine', 'orin', '--budget', '2', '--output', profile)
        self.assertEqual(done.returncode, 0, done)
        reason = 'host=writes_once device=reads_once'
        file = self.write('small.json', Recorded().buffer('0x1000', 64, reason=reason).view('write', '0x1000', 64)
                          .launch(('read', '0x1000', 64, 'pinned')).text())
        done = run('replay', file, '--machines', 'orin,h200', '--profile', profile, '--json')
        self.assertEqual(done.returncode, 0, done)
        orin, h200 = json.loads(done.stdout)['machines']
        # A slow machine measures little in this time.
        self.assertEqual('hand_over_seconds' in orin, 'nothing of what is used' not in orin['profile'])
        self.assertIn('Orin', orin['profile'])
        self.assertNotIn('another device', orin['profile'])
        self.assertIn('another device', h200['profile'])
        self.assertNotIn('hand_over_seconds', self.replay(file, 'orin')['orin'])

    def test_one_machine_as_text(self):
        file = self.record('h200', '--memory', 'managed')
        done = run('replay', file, '--machine', MACHINES[0])
        self.assertEqual(done.returncode, 0, done)
        for words in ('replay on ' + MACHINES[0], 'memory', 'refused', 'waits of the host', 'published by rings'):
            self.assertIn(words, done.stdout)
        table = run('replay', file, '--machines', 'all')
        self.assertEqual(table.returncode, 0, table)
        for machine in MACHINES:
            self.assertIn(machine, table.stdout)
        self.assertEqual(table.stderr, '')

    def test_a_replay_can_be_recorded_and_played_again(self):
        first = self.write('first.json', Recorded().buffer('0x1000', 4096).view('write', '0x1000', 4096)
                           .launch(('read_write', '0x1000', 4096, 'pinned')).view('read', '0x1000', 4096).text())
        second = self.path('second.json')
        done = run('replay', first, '--machine', MACHINES[0], '--trace', second, '--json')
        self.assertEqual(done.returncode, 0, done)
        again = run('replay', second, '--machine', MACHINES[0], '--json')
        self.assertEqual(again.returncode, 0, again)
        one, other = json.loads(done.stdout), json.loads(again.stdout)
        for same in ('frames', 'launches', 'refused', 'copied', 'copied_bytes', 'memory'):
            self.assertEqual(one[same], other[same], same)

    def test_what_is_no_recording_is_refused(self):
        whole = Recorded().buffer('0x1000', 4096).text()
        for content, says in (('', 'JSON'), ('{}', 'no trace'), ('{"traceEvents":[]}', 'did not write'),
                              (whole[:-5], 'JSON'), (Recorded().text(), 'no memory and no call'),
                              ('[' * 100000, 'JSON')):
            done = run('replay', self.write('no-trace.json', content), '--machine', MACHINES[0])
            self.assertEqual(done.returncode, 2, done)
            self.assertEqual(done.stdout, '')
            self.assertIn(says, done.stderr)
        file = self.write('trace.json', whole)
        for wrong in (['--machines', 'nowhere'], ['--machines', MACHINES[0], '--machine', MACHINES[0]],
                      ['--profile', self.path('missing.json')], ['--profile', file]):
            self.assertEqual(run('replay', file, *wrong).returncode, 2, wrong)
        self.assertEqual(run('replay', self.path('missing.json')).returncode, 2)
        self.assertEqual(run('replay').returncode, 2)


if __name__ == '__main__':
    COMMAND = [*shlex.split(os.environ.get('MESON_EXE_WRAPPER', '')), sys.argv[1]]
    TRACES, MACHINES = sys.argv[2], sys.argv[3:]
    unittest.main(argv=sys.argv[:1], verbosity=2)
