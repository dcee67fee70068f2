#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/scripts/promises in a small tree: the table that it writes, and what it finds wrong.

usage: promises_test.py SCRIPT
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)
PAGE = """# Promises

## Memory

* **A1** A first one.
* **A2** A second one,
  on two lines.

<!-- generated: tests of promises -->
<!-- end of the tests of promises -->
"""


def keeps(text):
    """The comment that a test names its promises in; put together here, so that this file names none."""
    return f'// keeps {text}'


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.write('docs/promises.md', PAGE)
        self.write('tests/unit/first_test.cpp', f'TEST(A, First) {{  {keeps("A1, A2")}\n}}\n')

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')

    def run_script(self, *more):
        done = subprocess.run([sys.executable, SCRIPT, self.root, *more], text=True, capture_output=True, check=False)
        self.assertEqual(done.stderr, '')
        return done.returncode, done.stdout

    def check(self):
        """What --check says once the page is as generated."""
        self.run_script()
        return self.run_script('--check')

    def rows(self):
        page = (self.root / 'docs/promises.md').read_text(encoding='utf-8')
        return [line for line in page.splitlines() if line.startswith('| A')]

    def expect_problem(self, problem):
        code, said = self.check()
        self.assertEqual((code, said), (1, problem + '\n'))

    def test_a_tree_without_faults(self):
        self.assertEqual(self.check(), (0, '2 promises, each kept by a test\n'))
        page = (self.root / 'docs/promises.md').read_text(encoding='utf-8')
        self.assertTrue(page.startswith(PAGE.partition('<!--')[0]))
        self.assertTrue(page.endswith('<!-- end of the tests of promises -->\n'))

    def test_comments_belong_to_tests(self):
        self.write('tests/unit/second_test.cpp', '\n'.join([
            f'// All of this file. {keeps("A2")[3:]}', '#include "x.hpp"', '',
            keeps('A1: of two lines'), '// of a comment', 'TEST_F(B, Before) {', '}',
            f'TEST_P(B, Beside) {{  {keeps("A1 and A2")}', f'    check();  {keeps("A2")}', f'    {keeps("A1")}', '}']))
        self.write('tests/unit/third_test.py', f'    def test_it(self):  {keeps("A1").replace("//", "#")}\n')
        self.write('tests/unit/refusals.txt', f'{keeps("A1").replace("//", "#")}\n-- a case\nexpect: x\n')
        self.assertEqual(self.check()[0], 0)
        self.assertEqual(self.rows(), [
            '| A1 | 5 | unit/first_test.cpp, unit/refusals.txt, unit/second_test.cpp 2, unit/third_test.py |',
            '| A2 | 3 | unit/first_test.cpp, unit/second_test.cpp 2 |'])

    def test_a_promise_that_no_test_keeps(self):
        self.write('docs/promises.md', PAGE.replace('* **A1**', '* **A3** A third one.\n* **A1**'))
        self.expect_problem('docs/promises.md: A3 is kept by no test')

    def test_the_ground_of_a_promise_does_not_keep_it(self):
        self.write('tests/unit/first_test.cpp', f'TEST(A, First) {{  {keeps("A1")}\n}}\n'
                   f"TEST(A, Ground) {{  {keeps('A2')}'s ground\n}}\n")
        self.expect_problem('docs/promises.md: A2 is kept by no test')

    def test_a_promise_that_is_listed_twice(self):
        self.write('docs/promises.md', PAGE.replace('* **A1**', '* **A2** Another one.\n* **A1**'))
        self.expect_problem('docs/promises.md: A2 is listed 2 times')

    def test_numbers_that_are_no_promises(self):
        for name, text, line in [
                ('tests/unit/second_test.cpp', f'TEST(B, C) {{  {keeps("A1, B7")}\n}}\n', 1),
                ('tests/unit/ground_test.cpp', f"TEST(B, C) {{  {keeps('B7')}'s ground\n}}\n", 1),
                ('tests/mutants/one.mutants', 'mutant x\nkeeps A1, B7\n', 2),
                ('runtime/room/one.cpp', 'int x;  // in any order (B7), as A1 says\n', 1),
                ('platform/one.hpp', '\n// B7: on -O2 and D16x\n', 2),
                ('runtime/room/one.h', '/* Of A1\n * and of B7. */\n', 2),
                ('kernels/one.cpp', '// of A1, B7.\nint B8;\n', 1),
                ('docs/adr/one.md', 'On SM90 with PPM (P5; P6) it goes on (A1, B7).\n', 1)]:
            with self.subTest(name):
                self.write(name, text)
                self.expect_problem(f'{name}:{line}: B7 is no promise of docs/promises.md')
                (self.root / name).unlink()

    def test_numbers_that_cannot_be_read(self):
        for numbers in ['A1,A2', 'A1 A2', 'A1, and A2', 'A1,', 'A1/A2']:
            with self.subTest(numbers):
                self.write('tests/unit/second_test.cpp', f'TEST(B, C) {{  {keeps(numbers)}\n}}\n')
                self.expect_problem('tests/unit/second_test.cpp:1: write the numbers on one line, as "A13, K4"')

    def test_a_stale_page(self):
        stale = (1, 'docs/promises.md: not as generated; run tools/scripts/promises .\n')
        self.assertEqual(self.run_script('--check'), stale)  # not written yet
        self.assertEqual(self.check()[0], 0)
        self.write('tests/unit/second_test.cpp', f'TEST(B, C) {{  {keeps("A1")}\n}}\n')
        self.assertEqual(self.run_script('--check'), stale)
        self.assertEqual(self.check()[0], 0)


unittest.main()
