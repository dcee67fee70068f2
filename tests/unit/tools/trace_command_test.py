#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--trace`, ISTHMUS_TRACE and `isthmus trace` as people use them, on simulated machines and the CPU device.

usage: trace_command_test.py ISTHMUS [MACHINE...]
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

COMMAND = []  # under emulation: the wrapper that Meson names, then the program
MACHINES = []
FRAMES = 6


def run(*arguments, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith('ISTHMUS_')}
    clean.update(environment)
    return subprocess.run([*COMMAND, *arguments], env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=200)


class Traces(unittest.TestCase):  # keeps O2
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.picture = self.path('picture.pgm')
        with open(self.picture, 'wb') as file:
            file.write(b'P5 96 64 255\n' + bytes((x * 7 + y * 13) % 256 for y in range(64) for x in range(96)))

    def path(self, name):
        return os.path.join(self.folder, name)

    def camera(self, *arguments, code=0, **environment):
        done = run('run', self.picture, '--frames', str(FRAMES), '--json', *arguments, **environment)
        if done.returncode == 3 and 'simulator' in done.stderr:
            self.skipTest('this build has no simulator')
        self.assertEqual(done.returncode, code, done)
        return done

    def events(self, file):
        with open(file, encoding='utf-8') as read:
            document = json.load(read)
        self.assertEqual(document['otherData']['dropped'], 0)
        events = [event for event in document['traceEvents'] if event['ph'] != 'M']
        times = [event['ts'] for event in events]
        self.assertEqual(times, sorted(times))
        return events

    def summary(self, file, *arguments):
        done = run('trace', file, '--json', *arguments)
        self.assertEqual(done.returncode, 0, done)
        return json.loads(done.stdout)

    def check_pairs(self, events):
        """Begins and ends of each thread nest."""
        open_ones = {}
        for event in events:
            stack = open_ones.setdefault(event['tid'], [])
            if event['ph'] == 'B':
                stack.append(event['name'])
            elif event['ph'] == 'E':
                self.assertEqual(stack.pop(), event['name'])
        self.assertEqual([stack for stack in open_ones.values() if stack], [])

    def test_each_machine_says_what_it_copied(self):
        for machine in MACHINES:
            with self.subTest(machine=machine):
                file = self.path(machine + '.json')
                memory = ['--memory', 'device'] if machine == 'h200' else []
                report = json.loads(self.camera('--machine', machine, '--trace', file, *memory).stdout)
                events = self.events(file)
                self.check_pairs(events)
                summary = self.summary(file)
                self.assertGreaterEqual(summary['launches'], FRAMES)
                self.assertEqual(summary['dropped'], 0)
                copied = summary['copied_bytes']
                self.assertEqual(copied > 0, machine == 'h200', summary)
                for copies in summary['copies']:
                    self.assertNotEqual(copies['reason'], '')
                streams = {event['tid'] for event in events if event['pid'] == 2}
                self.assertGreaterEqual(len(streams), 1)
                arrows = {event['id'] for event in events if event['ph'] == 's'}
                waits = [event for event in events if event['ph'] == 'f']
                self.assertNotEqual(waits, [])
                self.assertLessEqual({event['id'] for event in waits}, arrows)
                self.assertNotEqual(report, {})

    def test_the_environment_names_the_file_and_the_option_goes_before_it(self):
        file, other = self.path('one.json'), self.path('other.json')
        self.camera('--device', 'cpu', ISTHMUS_TRACE=file, ISTHMUS_CUDA_LIBRARY='/nonexistent/libcuda.so.1')
        self.assertNotEqual(self.events(file), [])
        os.remove(file)
        self.camera('--device', 'cpu', '--trace', other, ISTHMUS_TRACE=file,
                    ISTHMUS_CUDA_LIBRARY='/nonexistent/libcuda.so.1')
        self.assertFalse(os.path.exists(file))
        self.assertNotEqual(self.events(other), [])

    def test_the_same_digests_with_and_without_a_trace(self):
        file = self.path('trace.json')
        for machine in MACHINES:
            plain = json.loads(self.camera('--machine', machine).stdout)
            traced = json.loads(self.camera('--machine', machine, '--trace', file).stdout)
            self.assertEqual([plain[key] for key in plain if 'digest' in key],
                             [traced[key] for key in traced if 'digest' in key])

    def test_a_file_that_cannot_be_written_is_an_error(self):
        done = self.camera('--device', 'cpu', '--trace', self.path('missing/trace.json'), code=2,
                           ISTHMUS_CUDA_LIBRARY='/nonexistent/libcuda.so.1')
        self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
        self.assertIn('missing/trace.json', done.stderr)

    def test_what_is_no_trace_is_refused(self):
        for content, says in (('', 'JSON'), ('{}', 'no trace'), ('{"traceEvents":[]}', 'did not write')):
            file = self.path('no-trace.json')
            with open(file, 'w', encoding='utf-8') as out:
                out.write(content)
            done = run('trace', file)
            self.assertEqual(done.returncode, 2, done)
            self.assertEqual(done.stdout, '')
            self.assertIn(says, done.stderr)
        self.assertEqual(run('trace', self.path('missing.json')).returncode, 2)
        self.assertEqual(run('trace').returncode, 2)
        self.assertEqual(run('trace', self.picture, '--warm-up', 'x').returncode, 2)

    def test_text_says_what_to_change(self):
        if 'h200' not in MACHINES:
            self.skipTest('not played here')
        file = self.path('trace.json')
        self.camera('--machine', 'h200', '--trace', file, '--memory', 'device')
        done = run('trace', file)
        self.assertEqual(done.returncode, 0, done)
        for words in ('copies between the two sides of buffers', 'waits of the host', 'what to change', 'SharedUse'):
            self.assertIn(words, done.stdout)


if __name__ == '__main__':
    COMMAND = [*shlex.split(os.environ.get('MESON_EXE_WRAPPER', '')), sys.argv[1]]
    MACHINES = [machine for machine in sys.argv[2:] if machine in ('orin', 'h200')]
    unittest.main(argv=sys.argv[:1], verbosity=2)
