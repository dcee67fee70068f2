#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the sources of the library that could need exceptions with -fno-exceptions, otherwise as the build did.

usage: no_exceptions_test.py BUILD_DIR SOURCE_ROOT
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

# A source without any of these words has nothing that -fno-exceptions refuses; a few are compiled all the same, for the
# headers that all of them include.
WORDS = re.compile(r'\b(throw|try|catch)\b')
ALWAYS = ('runtime/launch/launch.cpp', 'runtime/memory/allocation.cpp', 'platform/os/host_pages.cpp', 'platform/cuda/open_devices.cpp',
          'platform/table/detect.cpp', 'platform/cpu/cpu_driver.cpp')
LIBRARY = ('runtime/', 'platform/os/', 'platform/table/', 'platform/cpu/', 'platform/cuda/', 'platform/driver_list.cpp',
           'bindings/c/')


def without_exceptions(entry):
    command = shlex.split(entry['command'])
    # A header precompiled with exceptions cannot be used without them, and sources include what they need themselves.
    for option in ('-o', '-MF', '-MQ', '-include', '-include-pch'):
        if option in command:
            at = command.index(option)
            del command[at:at + 2]
    command = [word for word in command if word not in ('-c', '-MD', '-MMD') and not word.startswith('-fsanitize')]
    command += ['-fno-exceptions', '-fsyntax-only', '-Werror']
    return subprocess.run(command, cwd=entry['directory'], text=True, capture_output=True, check=False)


def has_words(source_root, path):
    with open(os.path.join(source_root, path), encoding='utf-8') as source:
        return WORDS.search(source.read()) is not None


def main(build_dir, source_root):
    with open(os.path.join(build_dir, 'compile_commands.json'), encoding='utf-8') as file:
        entries = {}
        for entry in json.load(file):
            path = os.path.relpath(os.path.join(entry['directory'], entry['file']), source_root)
            if path.startswith(LIBRARY) and path.endswith('.cpp'):
                entries[path] = entry
    known = len(entries)
    entries = {path: entry for path, entry in entries.items() if path in ALWAYS or has_words(source_root, path)}
    if not any(path.startswith('platform/cuda/') for path in entries) or not all(path in entries for path in ALWAYS):
        sys.exit('the library was not found in compile_commands.json')
    # Shows that the check can fail: a source that throws is refused with the options of the others.
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
    print(f'{len(results) - len(failed)} of {len(results)} sources build without exceptions; {known - len(results)} more '
          'have no word of them')
    sys.exit(1 if failed else 0)


main(*sys.argv[1:])
