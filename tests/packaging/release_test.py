#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/release: what docs/release.md shows of given results, and that each part's programs are told to it.

    release_test.py ROOT
"""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile


def load(path):
    loader = importlib.machinery.SourceFileLoader('release', path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('release', loader))
    loader.exec_module(module)
    return module


def record(date, outcome='passed', result='fine'):
    return {'outcome': outcome, 'result': result, 'commit': 'abc', 'date': f'2026-01-{date:02} 00:00', 'cores': 4,
            'processor': 'x86_64', 'seconds': 7}


def main(root):
    sys.dont_write_bytecode = True
    script = os.path.join(root, 'tools/release')
    release = load(script)

    def names(results):
        return {name: found for _, name, found in release.shown(results) if name.startswith('mutants')}

    old, new = record(1), record(2)
    assert names({}) == {'mutants': None}
    assert names({'mutants': old}) == {'mutants': old}
    # Some slices stand beside the older whole, all of them in place of it; a newer whole stands in place of them.
    assert names({'mutants': old, 'mutants 2/2': new}) == {'mutants': old, 'mutants 1/2': None, 'mutants 2/2': new}
    both = {'mutants 1/2': new, 'mutants 2/2': record(3, 'FAILED')}
    assert names({'mutants': old, **both}) == both
    assert names({**both, 'mutants': record(4)}) == {'mutants': record(4)}
    # Slices of the newest division count.
    assert names({**both, 'mutants 1/3': record(4)}) == {'mutants 1/3': record(4), 'mutants 2/3': None,
                                                         'mutants 3/3': None}
    # The page gives back what it was written from.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'release.md')
        results = {'kills': old, **both}
        with open(path, 'w', encoding='utf-8') as file:
            file.write(release.page(results))
        assert release.results_of_page(path) == results, release.results_of_page(path)
    assert release.merged({'kills': old}, {'kills': new}) == {'kills': new}
    assert release.merged({'kills': new}, {'kills': old}) == {'kills': new}

    # Both libraries are compared with what is recorded of them, by programs that a machine may lack.
    parts = {name: needs.split() for name, _, needs, _ in release.PARTS}
    for name, recorded in (('abi.c', ['tests/c/libisthmus-c.abi', 'tests/c/libisthmus-c-ucx.abi']),
                           ('abi.c++', ['packaging/abi/libisthmus-symbols.abi.xz',
                                        'packaging/abi/libisthmus-types.abi.xz'])):
        assert {'abidiff', 'abidw'} <= set(parts[name]), parts[name]
        for path in recorded:
            assert os.path.getsize(os.path.join(root, path)) > 1000, path

    class Told:
        """In place of Run: keeps the commands, each of which says "as recorded"."""
        top, jobs = root, 1

        def __init__(self):
            self.commands = []

        def setup(self, *arguments):
            pass

        def command(self, arguments):
            self.commands.append(arguments)
            return ['as recorded']

    told = Told()
    assert release.interface_in_c(told) == 'as recorded'
    assert told.commands == [['tests/c/abi_test.py', release.ROOT, 'abidiff', 'abidw', 'gcc']], told.commands
    release.bare_library, told = lambda run, machine: ('folder', f'library of {machine}'), Told()
    assert release.interface_in_cpp(told) == 'as recorded'
    assert told.commands == [['tests/packaging/library_abi.py', release.ROOT, 'abidiff', 'abidw', 'library of x86-64',
                              'folder/runtime/vocabulary', 'g++']], told.commands

    for arguments in (['--part', 'kills', '--slice', '1/2'], ['--part', 'mutants', '--slice', '3/2'],
                      ['--part', 'mutants', '--slice', '0/2'], ['--part', 'mutants', '--slice', '2']):
        done = subprocess.run([script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode != 0 and b'slice' in done.stdout, (arguments, done.stdout)

    # All slices together are the whole, each mutant in one of them.
    def listed(*arguments):
        return subprocess.run([os.path.join(root, 'tests/mutants/run_mutants'), '--list', *arguments], text=True,
                              capture_output=True, check=True).stdout.splitlines()

    whole = listed()
    assert len(whole) > 100 and sorted(whole) == sorted(line for at in (1, 2, 3) for line in listed('--slice', f'{at}/3'))
    # tools/release builds what run_faults names.
    programs = subprocess.run([os.path.join(root, 'tests/faults/run_faults'), '--programs'], text=True, capture_output=True,
                              check=True).stdout.split()
    assert 'tests/conformance/test_native_sticky' in programs, programs
    return 0


sys.exit(main(sys.argv[1]))
