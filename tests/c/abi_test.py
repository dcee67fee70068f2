#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the binary interfaces that isthmus.h and isthmus_ucx.h declare with the recorded ones, libisthmus-c.abi and
libisthmus-c-ucx.abi (libabigail).

A header is compiled as C with an empty body for each function, so that the record has what callers see, and nothing
of what is behind the handles.

usage: abi_test.py SOURCE_ROOT ABIDIFF ABIDW CC [ARGUMENT...]             compare
       abi_test.py SOURCE_ROOT ABIDIFF ABIDW CC [ARGUMENT...] --record    write the record anew, where functions were added
"""
import os
import re
import subprocess
import sys
import tempfile

FOLDER = 'bindings/c/include'
# Header, record, library, how many functions there are at least, and changes that must be found: another type of a
# parameter, another field, a function less.
INTERFACES = (
    ('isthmus.h', 'tests/c/libisthmus-c.abi', 'libisthmus-c.so.1', 100, (
        ('isthmus_buffer_bytes(const isthmus_buffer* buffer)', 'isthmus_buffer_bytes(uint16_t buffer)'),
        ('uint64_t wait_timeout_ns;', 'uint32_t wait_timeout_ns;'),
        ('void* isthmus_host_view_data(', 'static void* isthmus_host_view_data('))),
    ('isthmus_ucx.h', 'tests/c/libisthmus-c-ucx.abi', 'libisthmus-c-ucx.so.1', 15, (
        ('isthmus_ucx_listener_port(const isthmus_ucx_listener* listener)', 'isthmus_ucx_listener_port(uint16_t listener)'),
        ('uint64_t silence_ns;', 'uint32_t silence_ns;'),
        ('int32_t isthmus_ucx_receiver_producer_is_gone(', 'static int32_t isthmus_ucx_receiver_producer_is_gone('))),
)


def stubs_of(header):
    """The header, and a body for each of its functions."""
    text = re.sub(r'/\*.*?\*/', '', header, flags=re.S)
    bodies = []
    for declaration in re.findall(r'^ISTHMUS_C_API ([^;]*);', text, flags=re.M):
        nothing = declaration.startswith('void ')
        bodies.append(f'{declaration} {{ {"" if nothing else "return 0;"} }}')
    return header + '\n'.join(bodies) + '\n', len(bodies)


def library(work, name, compiler, include, soname, text):
    source, product = os.path.join(work, name + '.c'), os.path.join(work, soname[:-2])
    with open(source, 'w', encoding='utf-8') as file:
        file.write(text)
    subprocess.run([*compiler, '-x', 'c', '-std=c11', '-g', '-O0', '-w', '-fPIC', '-shared',
                    f'-Wl,-soname,{soname}', f'-I{include}', '-o', product, os.path.basename(source)],
                   check=True, cwd=work)
    return product


def differences(abidiff, record, product):
    result = subprocess.run([abidiff, '--no-show-locs', '--no-architecture', '--no-corpus-path', record, product], text=True,
                            capture_output=True, check=False)
    if result.returncode & 3:
        sys.exit(f'abidiff failed: {result.stderr}')
    return result.stdout if result.returncode else ''


def compare(source_root, abidiff, abidw, compiler, recording, interface):
    """How many functions are as recorded; None: some are not."""
    name, record, soname, least, changes = interface
    include, record = os.path.abspath(os.path.join(source_root, FOLDER)), os.path.join(source_root, record)
    with open(os.path.join(include, name), encoding='utf-8') as file:
        header, count = stubs_of(file.read())
    if count < least:
        sys.exit(f'{count} functions were found in {name}')
    with tempfile.TemporaryDirectory() as work:
        product = library(work, 'all', compiler, include, soname, header)
        if recording:
            subprocess.run([abidw, '--no-show-locs', '--no-comp-dir-path', '--no-corpus-path', '--no-architecture',
                            '--no-elf-needed', '--out-file', record, product], check=True)
        found = differences(abidiff, record, product)
        if found:
            print(f'{found}\nIf functions were added and nothing else: {os.path.basename(__file__)} … --record. A change or '
                  'a removal needs another SONAME.')
            return None
        for old, new in changes:  # shows that the check can fail
            changed = header.replace(old, new)
            if changed == header or not differences(abidiff, record, library(
                    work, 'changed', compiler, include, soname, changed.replace('ISTHMUS_C_API static', 'static'))):
                print(f'the change of {old} was not found')
                return None
    return count


def main(source_root, abidiff, abidw, *compiler):
    recording = '--record' in compiler
    compiler = [word for word in compiler if word != '--record']
    counts = [compare(source_root, abidiff, abidw, compiler, recording, interface) for interface in INTERFACES]
    if None in counts:
        return 1
    print(f'{sum(counts)} functions as recorded')
    return 0


sys.exit(main(*sys.argv[1:]))
