#!/usr/bin/env python3
"""Compiles every source of the library with -fno-exceptions, as the build compiled it otherwise.

usage: no_exceptions_test.py BUILD_DIR SOURCE_ROOT
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
import tempfile

LIBRARY = ('runtime/', 'platform/os/', 'platform/table/', 'platform/cpu/', 'platform/cuda/', 'platform/driver_list.cpp')


def without_exceptions(entry):
    command = shlex.split(entry['command'])
    for option in ('-o', '-MF', '-MQ'):
        if option in command:
            at = command.index(option)
            del command[at:at + 2]
    command = [word for word in command if word not in ('-c', '-MD', '-MMD') and not word.startswith('-fsanitize')]
    command += ['-fno-exceptions', '-fsyntax-only', '-Werror']
    return subprocess.run(command, cwd=entry['directory'], text=True, capture_output=True, check=False)


def main(build_dir, source_root):
    with open(os.path.join(build_dir, 'compile_commands.json'), encoding='utf-8') as file:
        entries = {}
        for entry in json.load(file):
            path = os.path.relpath(os.path.join(entry['directory'], entry['file']), source_root)
            if path.startswith(LIBRARY) and path.endswith('.cpp'):
                entries[path] = entry
    if not any(path.startswith('platform/cuda/') for path in entries):
        sys.exit('the library was not found in compile_commands.json')
    # The check can fail: a source that throws is refused with the options of the others.
    with tempfile.NamedTemporaryFile('w', suffix='.cpp') as thrower:
        thrower.write('void throws(); void throws() { throw 1; }\n')
        thrower.flush()
        probe = dict(next(iter(entries.values())))
        probe['command'] = probe['command'].replace(probe['file'], thrower.name)
        if without_exceptions(probe).returncode == 0:
            sys.exit('a source that throws was accepted')
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(entries, pool.map(without_exceptions, entries.values())))
    failed = {path: result.stderr for path, result in results.items() if result.returncode != 0}
    for path, text in failed.items():
        print(f'{path} needs exceptions:\n{text}')
    print(f'{len(results) - len(failed)} of {len(results)} sources build without exceptions')
    sys.exit(1 if failed else 0)


main(*sys.argv[1:])
