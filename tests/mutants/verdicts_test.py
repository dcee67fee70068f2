#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_mutants: how it reads entries and the end of a test, what it builds for a test, its last line, and how a run goes on.

    verdicts_test.py RUN_MUTANTS
"""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile


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

    def mutant_of(test):
        mutant = play.Mutant('some', 'some.mutants:1')
        mutant.test = test
        return mutant

    tests = [{'name': 'unit.some', 'cmd': ['/b/unit/some', '--x'], 'depends': ['some', 'fake']},
             {'name': 'unit.other', 'cmd': ['/b/unit/other'], 'depends': ['other']},
             {'name': 'by.script', 'cmd': ['/usr/bin/python3', '/b/unit/some'], 'depends': ['tool', 'gone']}]
    targets = [{'id': name, 'filename': [f'/b/unit/{name}']} for name in ('some', 'fake', 'other', 'tool')]
    assert play.started_beside([mutant_of('unit/some')], tests, targets, '/b') == {'unit/some', 'unit/fake'}
    assert play.started_beside([mutant_of('meson:by.script')], tests, targets, '/b') == {'unit/tool'}
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'some.mutants'), 'w', encoding='utf-8') as file:
            file.write('mutant some\nbuild one two\nbuild three\n')
        assert play.read_mutants(folder)[0].build == ['one', 'two', 'three']

    def result(name, promise, verdict):
        mutant = play.Mutant(name, 'some.mutants:1')
        mutant.keeps = [promise]
        return mutant, verdict

    results = [result('a', 'K1', play.NOTICED), result('b', 'K1', play.NOTICED), result('c', 'K2', play.WRONG)]
    assert play.summary(results) == '3 mutants of 2 promises, 2 noticed, 1 failed', play.summary(results)
    results += [result('e', 'K3', play.NOT_JUDGED), result('d', 'K3', play.NOT_JUDGED)]
    assert play.summary(results) == ('5 mutants of 3 promises, 2 noticed, 1 failed, 2 not judged because the test is skipped '
                                     'or not built here: d, e'), play.summary(results)
    # A stopped run goes on: a mutant stays noticed until its entry or its source changes.
    with tempfile.TemporaryDirectory() as play.ROOT:
        source = os.path.join(play.ROOT, 'some.cpp')
        with open(source, 'w', encoding='utf-8') as file:
            file.write('int some() { return 1; }\n')
        mutant, _ = results[0]
        mutant.file, mutant.old, mutant.new = 'some.cpp', ['int some() { return 1; }'], ['int some() { return 2; }']
        noticed = os.path.join(play.ROOT, 'noticed')
        assert play.read_lines(noticed) == set()
        with open(noticed, 'w', encoding='utf-8') as file:
            file.write(mutant.line() + '\n')
        assert mutant.line() in play.read_lines(noticed)
        mutant.filter = 'Some.Other'
        assert mutant.line() not in play.read_lines(noticed)
        mutant.filter = '*'
        with open(source, 'a', encoding='utf-8') as file:
            file.write('int other();\n')
        assert mutant.line() not in play.read_lines(noticed)

    # What a build does not have is not asked for.
    place = play.Workplace.__new__(play.Workplace)
    place.known = {'tests/unit/some', 'meson:some', 'libfake.so'}
    for test, build, lacking in (('tests/unit/some', [], None), ('meson:some', ['libfake.so'], None),
                                 ('meson:gstreamer.cpu', [], 'meson:gstreamer.cpu'),
                                 ('tests/unit/some', ['libother.so'], 'libother.so')):
        mutant.test, mutant.build = test, build
        assert place.lacks(mutant) == lacking, (test, build)

    # Nothing was proved where no mutant was noticed.
    assert play.exit_code(results[:2]) == 0
    assert play.exit_code(results[:2] + results[3:]) == 0
    assert play.exit_code(results) == 1
    assert play.exit_code(results[3:]) == 1


if __name__ == '__main__':
    main(sys.argv[1])
