#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the binary interface that isthmus.h declares with the recorded one, libisthmus-c.abi (libabigail).

The header is compiled as C with an empty body for each function, so that the record has what callers see, and nothing
of what is behind the handles.

usage: abi_test.py SOURCE_ROOT ABIDIFF ABIDW CC [ARGUMENT...]             compare
       abi_test.py SOURCE_ROOT ABIDIFF ABIDW CC [ARGUMENT...] --record    write the record anew, where functions were added
"""
import os
import re
import subprocess
import sys
import tempfile

RECORD = 'tests/c/libisthmus-c.abi'


def stubs_of(header):
    """The header, and a body for each of its functions."""
    text = re.sub(r'/\*.*?\*/', '', header, flags=re.S)
    bodies = []
    for declaration in re.findall(r'^ISTHMUS_C_API ([^;]*);', text, flags=re.M):
        nothing = declaration.startswith('void ')
        bodies.append(f'{declaration} {{ {"" if nothing else "return 0;"} }}')
    return header + '\n'.join(bodies) + '\n', len(bodies)


def library(work, name, compiler, text):
    source, product = os.path.join(work, name + '.c'), os.path.join(work, 'libisthmus-c.so')
    with open(source, 'w', encoding='utf-8') as file:
        file.write(text)
    subprocess.run([*compiler, '-x', 'c', '-std=c11', '-g', '-O0', '-w', '-fPIC', '-shared',
                    '-Wl,-soname,libisthmus-c.so.1', '-o', product, os.path.basename(source)], check=True, cwd=work)
    return product


def differences(abidiff, record, product):
    result = subprocess.run([abidiff, '--no-show-locs', '--no-architecture', '--no-corpus-path', record, product], text=True,
                            capture_output=True, check=False)
    if result.returncode & 3:
        sys.exit(f'abidiff failed: {result.stderr}')
    return result.stdout if result.returncode else ''


def main(source_root, abidiff, abidw, *compiler):
    recording = '--record' in compiler
    compiler = [word for word in compiler if word != '--record']
    record = os.path.join(source_root, RECORD)
    with open(os.path.join(source_root, 'bindings/c/include/isthmus.h'), encoding='utf-8') as file:
        header, count = stubs_of(file.read())
    if count < 100:
        sys.exit(f'{count} functions were found in isthmus.h')
    with tempfile.TemporaryDirectory() as work:
        product = library(work, 'all', compiler, header)
        if recording:
            subprocess.run([abidw, '--no-show-locs', '--no-comp-dir-path', '--no-corpus-path', '--no-architecture',
                            '--no-elf-needed', '--out-file', record, product], check=True)
        found = differences(abidiff, record, product)
        if found:
            print(f'{found}\nIf functions were added and nothing else: {os.path.basename(__file__)} … --record. A change or '
                  'a removal needs another SONAME.')
            return 1
        # Shows that the check can fail: another type of a parameter, another field, a function less.
        for old, new in (('isthmus_buffer_bytes(const isthmus_buffer* buffer)', 'isthmus_buffer_bytes(uint16_t buffer)'),
                         ('uint64_t wait_timeout_ns;', 'uint32_t wait_timeout_ns;'),
                         ('void* isthmus_host_view_data(', 'static void* isthmus_host_view_data(')):
            changed = header.replace(old, new)
            if changed == header or not differences(abidiff, record, library(work, 'changed', compiler, changed.replace(
                    'ISTHMUS_C_API static', 'static'))):
                print(f'the change of {old} was not found')
                return 1
    print(f'{count} functions as recorded')
    return 0


sys.exit(main(*sys.argv[1:]))
