#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_mutants: how it reads the end of a test, and its last line.

    verdicts_test.py RUN_MUTANTS
"""
import importlib.machinery
import importlib.util
import sys


def load(path):
    loader = importlib.machinery.SourceFileLoader('run_mutants', path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('run_mutants', loader))
    loader.exec_module(module)
    return module


def of_gtest(passed, skipped, before=''):
    ran = passed + skipped
    text = f'{before}[==========] {ran} tests from 1 test suite ran. (3 ms total)\n[  PASSED  ] {passed} tests.\n'
    return text + (f'[  SKIPPED ] {skipped} test{"s" if skipped > 1 else ""}.\n' if skipped else '')


def of_meson(good, skipped):
    return f'1/1 unit.some OK 0.1s\n\nOk:                 {good}   \nFail:               0   \nSkipped:            {skipped}   \n'


def main(script):
    sys.dont_write_bytecode = True
    play = load(script)
    skip = '../some_test.cpp:21: Skipped\none GPU only\n'
    assert play.outcome(0, of_gtest(2, 0)) == play.PASSES
    assert play.outcome(0, of_gtest(0, 1, skip)) == play.IS_SKIPPED
    assert play.outcome(0, of_gtest(0, 12, skip)) == play.IS_SKIPPED
    assert play.outcome(0, '[  PASSED  ] 0 tests.\n[  SKIPPED ] 1 test, listed below:\n') == play.IS_SKIPPED
    assert play.outcome(1, of_gtest(0, 1, skip)) == play.FAILS
    # One test that ran can notice.
    assert play.outcome(0, of_gtest(1, 1, skip)) == play.PASSES
    assert play.outcome(0, 'a program without GoogleTest') == play.PASSES
    assert play.outcome(-11, '') == play.FAILS
    assert play.why_skipped(of_gtest(0, 1, skip)) == 'one GPU only'
    assert play.count_of('SKIPPED', of_gtest(1, 3)) == 3
    assert play.count_of('SKIPPED', of_gtest(1, 0)) is None

    assert play.outcome_of_meson(0, of_meson(1, 0)) == play.PASSES
    assert play.outcome_of_meson(0, of_meson(0, 1)) == play.IS_SKIPPED
    assert play.outcome_of_meson(0, 'No tests defined.') == play.FAILS
    assert play.outcome_of_meson(1, of_meson(1, 0)) == play.FAILS

    def result(name, promise, verdict):
        mutant = play.Mutant(name, 'some.mutants:1')
        mutant.keeps = [promise]
        return mutant, verdict

    results = [result('a', 'K1', play.NOTICED), result('b', 'K1', play.NOTICED), result('c', 'K2', play.WRONG)]
    assert play.summary(results) == '3 mutants of 2 promises, 2 noticed, 1 failed', play.summary(results)
    results += [result('e', 'K3', play.NOT_JUDGED), result('d', 'K3', play.NOT_JUDGED)]
    assert play.summary(results) == ('5 mutants of 3 promises, 2 noticed, 1 failed, 2 not judged because the test is skipped '
                                     'here: d, e'), play.summary(results)
    # Nothing was proved where no mutant was noticed.
    assert play.exit_code(results[:2]) == 0
    assert play.exit_code(results[:2] + results[3:]) == 0
    assert play.exit_code(results) == 1
    assert play.exit_code(results[3:]) == 1


if __name__ == '__main__':
    main(sys.argv[1])
