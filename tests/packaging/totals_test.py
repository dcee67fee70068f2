#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/scripts/test-totals with results that are written here: it counts cases, names those that failed, and repeats what a failed test said last.

    totals_test.py TEST_TOTALS
"""
import json
import os
import subprocess
import sys
import tempfile


def main(totals):
    with tempfile.TemporaryDirectory() as folder:
        def results(name, by_meson, cases):
            logs = os.path.join(folder, name, 'meson-logs')
            os.makedirs(logs)
            with open(os.path.join(logs, 'testlog.json'), 'w', encoding='utf-8') as file:
                file.writelines(json.dumps({'name': test, 'result': result, **dict(zip(['stdout'], said))}) + '\n'
                                for test, result, *said in by_meson)
            with open(os.path.join(logs, 'testlog.junit.xml'), 'w', encoding='utf-8') as file:
                file.write('<testsuites><testsuite name="unit">')
                file.writelines(f'<testcase classname="Suite" name="{case}">{inside}</testcase>' for case, inside in cases)
                file.write('</testsuite></testsuites>')
            return os.path.join(folder, name)

        def run(*arguments):
            done = subprocess.run([totals, *arguments], text=True, capture_output=True, check=False)
            return done.returncode, done.stdout.splitlines()

        good = results('good', [('a', 'OK')], [('One', ''), ('Two', '<skipped/>')])
        assert run('--plus', '3', '0', '1', good) == (0, ['4 passed, 0 failed, 2 skipped'])
        failure = '<failure message="x_test.cpp:7&#10;Expected: 1"/>'
        bad = results('bad', [('a', 'FAIL'), ('b', 'OK')], [('One', failure), ('Two', failure), ('Three', '')])
        code, lines = run(bad)
        assert code == 1 and lines[-1] == '1 passed, 2 failed, 0 skipped', lines
        assert 'bad: a: FAIL' in lines and 'bad: Suite.One: x_test.cpp:7 Expected: 1' in lines, lines
        hung = results('hung', [('a', 'TIMEOUT')], [('One', '')])  # no case of it failed
        assert run(hung) == (1, ['hung: a: TIMEOUT', '1 passed, 1 failed, 0 skipped'])
        script = results('script', [('p', 'FAIL', 'one\n\n' * 9 + 'last\n'), ('g', 'FAIL', '[==========] 1 test ran')], [('One', failure)])
        code, lines = run(script)
        assert lines[:9] == ['script: p: FAIL', *['    one'] * 7, '    last'] and lines[9] == 'script: g: FAIL', lines
        many = results('many', [(str(each), 'FAIL') for each in range(50)], [])
        code, lines = run(many, os.path.join(folder, 'nothing'))
        assert code == 1 and lines[-2:] == ['and 10 lines more', '0 passed, 50 failed, 0 skipped'] and len(lines) == 42


main(*sys.argv[1:])
