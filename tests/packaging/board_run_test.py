#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs cross/board-run against a stand-in for ssh: a program on PATH that runs commands here, in an environment and a
home of its own, as another machine would.

usage: board_run_test.py BOARD_RUN
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BOARD_RUN = sys.argv[1]

# Arguments: options, the host, then the command for the remote shell. It gets no environment of this test. What names a
# path of this machine must not work there: the stand-in records the commands for the tests.
FAKE_SSH = '''#!/bin/sh
user=
while [ $# -gt 0 ]; do
    case $1 in
        -o) shift 2 ;;
        -l) user=$2@; shift 2 ;;  # how rsync names the user
        -*) shift ;;
        *) break ;;
    esac
done
[ "$user$1" = tester@board ] || exit 255
shift
printf '%s\\n' "$*" >>"{home}/commands"
cd "{home}/there" && exec env -i HOME="{home}/there" PATH=/usr/bin:/bin sh -c "$*"
'''

PROGRAM = '''#!/bin/sh
echo "sim=$ISTHMUS_SIM secret=$SECRET filter=$GTEST_FILTER"
echo "arguments:$#:$1:$2"
echo "here=$0"
for argument in "$@"; do
    case $argument in
        --gtest_output=xml:*) echo "<result/>" >"${argument#--gtest_output=xml:}" ;;
        --read=*) cat "${argument#--read=}" ;;
        --exit=*) exit "${argument#--exit=}" ;;
        --stdin) cat ;;
    esac
done
'''


class BoardRun(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home)
        os.makedirs(os.path.join(self.home, 'bin'))
        os.makedirs(os.path.join(self.home, 'there'))
        os.makedirs(os.path.join(self.home, 'build'))
        self.program = self.write('build/program', PROGRAM)
        self.write('bin/ssh', FAKE_SSH.format(home=self.home))

    def write(self, name, text):
        path = os.path.join(self.home, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def run_there(self, *arguments, board='tester@board', **variables):
        environment = {'PATH': os.path.join(self.home, 'bin') + ':' + os.environ['PATH'], 'HOME': self.home,
                       'TMPDIR': self.home, 'SECRET': 'not for the board', **variables}
        if board:
            environment['ISTHMUS_BOARD'] = board
        return subprocess.run([BOARD_RUN, *arguments], env=environment, text=True, capture_output=True, check=False,
                              input='typed here')

    def test_the_program_runs_there_with_its_arguments_and_our_variables_only(self):
        result = self.run_there(self.program, 'two words', "a 'quote' and $HOME", ISTHMUS_SIM='orin', GTEST_FILTER='*Read*')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('sim=orin secret= filter=*Read*', result.stdout)
        self.assertIn("arguments:2:two words:a 'quote' and $HOME", result.stdout)
        self.assertIn(f'here={self.home}/there/isthmus-board{self.program}', result.stdout)

    def test_the_exit_status_comes_back_skipped_included(self):
        for status in (0, 1, 77, 134):
            self.assertEqual(self.run_there(self.program, f'--exit={status}').returncode, status)

    def test_files_that_arguments_and_variables_name_are_there_under_their_new_name(self):
        data = self.write('build/data.txt', 'the content\n')
        result = self.run_there(self.program, f'--read={data}', ISTHMUS_CUDA_LIBRARY=data)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('the content', result.stdout)
        self.assertTrue(os.path.exists(f'{self.home}/there/isthmus-board{data}'))
        with open(os.path.join(self.home, 'commands'), encoding='utf-8') as file:
            self.assertIn(f'ISTHMUS_CUDA_LIBRARY={self.home}/there/isthmus-board{data}', file.read())

    def test_a_file_that_changed_is_copied_again(self):
        data = self.write('build/data.txt', 'first\n')
        self.assertIn('first', self.run_there(self.program, f'--read={data}').stdout)
        self.write('build/data.txt', 'second\n')
        self.assertIn('second', self.run_there(self.program, f'--read={data}').stdout)

    def test_further_files_come_along(self):
        extra = self.write('build/extra.txt', '')
        self.run_there(self.program, ISTHMUS_BOARD_FILES=extra, ISTHMUS_BOARD_DIR='elsewhere')
        self.assertTrue(os.path.exists(f'{self.home}/there/elsewhere{extra}'))

    def test_the_result_of_googletest_is_brought_back(self):
        result_file = os.path.join(self.home, 'build', 'result.xml')
        self.assertEqual(self.run_there(self.program, f'--gtest_output=xml:{result_file}').returncode, 0)
        with open(result_file, encoding='utf-8') as file:
            self.assertEqual(file.read(), '<result/>\n')

    def test_a_program_that_wrote_no_result_leaves_none(self):
        result_file = os.path.join(self.home, 'build', 'result.xml')
        self.assertEqual(self.run_there(self.program, '--exit=3', f'--gtest_output=xml:{result_file}').returncode, 3)
        self.assertFalse(os.path.exists(result_file))

    def test_standard_input_reaches_the_program(self):
        self.assertIn('typed here', self.run_there(self.program, '--stdin').stdout)

    def test_a_missing_or_silent_board_is_said_and_nothing_runs(self):
        missing = self.run_there(self.program, board=None)
        self.assertEqual(missing.returncode, 2)
        self.assertIn('ISTHMUS_BOARD', missing.stderr)
        silent = self.run_there(self.program, board='tester@nowhere')
        self.assertEqual(silent.returncode, 255)
        self.assertIn('does not answer', silent.stderr)
        self.assertFalse(os.path.exists(f'{self.home}/there/isthmus-board'))


unittest.main(argv=sys.argv[:1])
