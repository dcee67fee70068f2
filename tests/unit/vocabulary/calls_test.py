#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/scripts/call-table in a small tree: the tables that it writes, and what it finds wrong.

usage: calls_test.py SCRIPT
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)
FILES = {
    'docs/calls.md': '# Calls\n\n<!-- generated: calls and loops -->\n<!-- end of calls and loops -->\n',
    'tests/conformance/hot_calls_test.cpp': 'Result<int> made(Scene& s, int) {\n    return s.device.allocate<int>(1);\n}\n',
    'tests/conformance/hot_calls.inc':
        '    {"a view", ok, {0, 1, -1, 2}, [](Scene& s) { return code_of(s.viewed.read_on_host()); }},\n'
        '    {"refused: two", Code::in_use, {0, 0, 0, 0},\n     [](Scene& s) { return code_of(s.viewed.close()); }},\n',
    'tests/conformance/hot_buffers.inc':
        '    {"a buffer", ok, {0, 3, 0, 0}, [](Scene& s) { return code_of(made(s, 1)); }},\n',
    'tests/conformance/sealed_loops.inc':
        '    {"ring", LoopReport::gpu, Origin::library, {SYS_futex, SYS_ppoll},\n     "it " "waits"},\n',
    'tests/conformance/sealed_loops.cpp':
        'constexpr SealedLoop loops[] = {\n    {"ring, filled", filled, 1, uncounted},\n};\n',
}


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')

    def run_script(self, *more):
        done = subprocess.run([sys.executable, SCRIPT, self.root, *more], text=True, capture_output=True, check=False)
        self.assertEqual(done.stderr, '')
        return done.returncode, done.stdout

    def expect_problem(self, problem):
        self.run_script()
        code, said = self.run_script('--check')
        self.assertEqual(code, 1)
        self.assertIn(problem, said)

    def test_each_row_is_a_line(self):
        self.assertEqual(self.run_script()[0], 0)
        self.assertEqual(self.run_script('--check')[0], 0)
        page = (self.root / 'docs/calls.md').read_text(encoding='utf-8')
        for line in ['| a view | `read_on_host` | 0 | 1 | while it waits | 2 |',
                     '| two (`in_use`) | `close` | 0 | 0 | 0 | 0 |',
                     '| a buffer | `allocate` | 0 | 3 | 0 | 0 |',
                     '| ring, filled | 1 | 3 for each millisecond of a wait |',
                     '| ring | GPU | the library | `futex`, `ppoll` | it waits |']:
            self.assertIn(line + '\n', page)

    def test_a_changed_row_is_found(self):
        self.run_script()
        name = 'tests/conformance/hot_calls.inc'
        self.write(name, FILES[name].replace('{0, 1, -1, 2}', '{0, 4, -1, 2}'))
        code, said = self.run_script('--check')
        self.assertEqual(code, 1)
        self.assertIn('not as generated', said)

    def test_a_row_that_cannot_be_read_is_found(self):
        name = 'tests/conformance/hot_calls.inc'
        self.write(name, FILES[name].replace('{0, 1, -1, 2}', '{0, one, -1, 2}'))
        self.expect_problem('hot_calls.inc: 2 rows begin, 1 can be read')

    def test_system_calls_of_no_loop_are_found(self):
        name = 'tests/conformance/sealed_loops.inc'
        self.write(name, FILES[name].replace('"ring"', '"wheel"'))
        self.expect_problem('"wheel" is no loop')


if __name__ == '__main__':
    unittest.main()
